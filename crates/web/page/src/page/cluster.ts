// A distributed run: workers with their speed and lag, rejected games and bans.

import { get } from '../api';
import { h, replace } from '../dom';
import { count, short, span } from '../format';
import { pollShowingErrors } from '../part/poll';
import { table } from '../part/table';
import { fact } from './runs';

interface Worker {
  name: string;
  version: string;
  threads: number;
  games: number;
  games_per_second: number;
  duplicates: number;
  rejected: Record<string, number>;
  audited: number;
  held: number;
  silent_s: number;
  is_current: boolean;
}
interface Cluster {
  run: string;
  generation: number | null;
  network: string | null;
  missing: number;
  games: number;
  waiting: number | null;
  rejected: Record<string, number>;
  members: number;
  workers: Worker[];
  bans: Record<string, string>;
}

const PAUSE = 2000;
/** Workers send a message every five seconds; after this many seconds one counts as gone. */
const SILENT = 20;

export function clusterPage(root: HTMLElement): () => void {
  const control = new AbortController();
  const problem = h('div');
  const body = h('div');
  root.append(h('h1', {}, 'Cluster'), problem, body);
  const poll = pollShowingErrors(problem, async () => {
    replace(body, ...parts(await get<Cluster>('/api/cluster', control.signal)));
  }, PAUSE);
  return () => {
    control.abort();
    poll.stop();
  };
}

function parts(cluster: Cluster): HTMLElement[] {
  const { workers } = cluster;
  const alive = workers.filter((worker) => worker.silent_s < SILENT);
  const speed = alive.reduce((sum, worker) => sum + worker.games_per_second, 0);
  const current = workers.filter((worker) => worker.is_current).length;
  const tiles = h(
    'dl',
    { class: 'tiles' },
    fact('Run', cluster.run),
    fact('Generation', cluster.generation === null ? 'training' : count(cluster.generation)),
    fact('Missing games', count(cluster.missing)),
    fact('Accepted games', count(cluster.games)),
    fact('Games per second', short(speed)),
    fact('Waiting at the broker', cluster.waiting === null ? '–' : count(cluster.waiting)),
    fact('Workers', count(cluster.members)),
    // While the learner trains there is no current network.
    fact('With the newest network', cluster.network === null ? '–' : `${count(current)} of ${count(cluster.members)}`),
    fact('Network', cluster.network?.slice(0, 8) ?? '–'),
  );
  const found: HTMLElement[] = [tiles];
  if (workers.length === 0) found.push(h('p', { class: 'hint' }, 'No worker has connected yet.'));
  else found.push(table('Workers', workerColumns, workers.map((worker) => workerRow(worker, cluster.network !== null))));
  const rejected = Object.entries(cluster.rejected);
  if (rejected.length > 0) {
    found.push(table('Rejected games', ['Reason', 'Games'], rejected.map(([kind, games]) => [kind, count(games)])));
  }
  const bans = Object.entries(cluster.bans);
  if (bans.length > 0) found.push(table('Banned workers', ['Worker', 'Reason'], bans));
  return found;
}

const workerColumns = [
  'Worker', 'Threads', 'Games', 'Per second', 'In progress', 'Verified', 'Duplicates', 'Rejected', 'Network', 'Last message',
];

function workerRow(worker: Worker, hasNetwork: boolean): string[] {
  const rejected = Object.entries(worker.rejected).map(([kind, games]) => `${count(games)} ${kind}`);
  return [
    worker.name,
    count(worker.threads),
    count(worker.games),
    short(worker.games_per_second),
    count(worker.held),
    count(worker.audited),
    count(worker.duplicates),
    rejected.length === 0 ? '0' : rejected.join(', '),
    !hasNetwork ? '–' : worker.is_current ? 'newest' : 'older',
    `${span(worker.silent_s)} ago`,
  ];
}
