// One run: live curves, alarms, the newest game, checkpoints, config.

import { failure, get, run } from '../api';
import type { Alarm, Curves, Game, Progress, Rating, Record_, RunDetail } from '../api';
import { announce, h, replace } from '../dom';
import { count, percent, short, span } from '../format';
import { Chart } from '../part/chart';
import type { Column, Line } from '../part/chart';
import { Replay } from '../part/replay';
import { actions, fact, stateNames } from './runs';

const PAUSE = 4000;

interface Plan {
  title: string;
  hint: string;
  /** Curve and label. */
  lines: [string, string][];
  zero?: boolean;
  digits?: (value: number) => string;
}

/** The charts there are. A chart without numbers is not shown. */
const plans: Plan[] = [
  {
    title: 'Loss',
    hint: 'how far the network is from what the games taught',
    lines: [['loss.value', 'value'], ['loss.policy', 'policy']],
    zero: true,
  },
  {
    title: 'Draws',
    hint: 'share of games drawn, and of games cut off',
    lines: [['draw_share', 'drawn'], ['capped_share', 'cut off']],
    zero: true,
    digits: (value) => percent(value),
  },
  { title: 'Game length', hint: 'plies', lines: [['plies', 'plies']], zero: true },
  {
    title: 'Simulations per second',
    hint: 'all threads together',
    lines: [['simulations_per_second', 'simulations/s']],
    zero: true,
  },
  { title: 'Games per second', hint: 'learning included', lines: [['games_per_second', 'games/s']], zero: true },
  {
    title: 'Value spread',
    hint: 'near 0 the network expects the same of every position',
    lines: [['value_spread', 'spread']],
    zero: true,
  },
  {
    title: 'Policy',
    hint: 'nats: how open the search leaves it, and how far the network is from that',
    lines: [['target_entropy', 'entropy'], ['policy_divergence', 'divergence']],
    zero: true,
  },
  {
    title: 'Resignations',
    hint: 'share of games given up, and of those wrongly',
    lines: [['resigned_share', 'given up'], ['wrong_resignations', 'wrongly']],
    zero: true,
    digits: (value) => percent(value, value > 0 && value < 0.1 ? 1 : 0),
  },
];
const colors = ['curve-1', 'curve-2', 'curve-3'];

export function runPage(root: HTMLElement, parts: string[]): () => void {
  const name = parts[0] ?? '';
  const control = new AbortController();
  const head = h('div', {}, h('h1', {}, name));
  const problem = h('div');
  const tiles = h('dl', { class: 'tiles' });
  const alarms = h('div');
  const charts = h('div', { class: 'charts' });
  const live = h('div', { class: 'live' });
  const details = h('div');
  root.append(head, problem, tiles, alarms, charts, live, details);

  const elo = new Chart(
    'Elo',
    [
      { label: 'Elo', color: 'curve-1' },
      { label: 'low', color: 'curve-1', isBand: true },
      { label: 'high', color: 'curve-1', isBand: true },
    ],
    { hint: 'against players of known strength, with the 95 % interval', digits: count },
  );
  const drawn = plans.map((plan) => {
    const lines: Line[] = plan.lines.map(([, label], index) => ({ label, color: colors[index] ?? 'curve-1' }));
    const { hint, zero, digits } = plan;
    return { plan, chart: new Chart(plan.title, lines, { hint, zero, digits }) };
  });
  charts.append(elo.element, ...drawn.map(({ chart }) => chart.element));
  for (const chart of [elo, ...drawn.map((entry) => entry.chart)]) chart.update([]);

  let curves: Curves | null = null;
  let ratings: Rating[] = [];
  let alarmList: Alarm[] = [];
  let feed: EventSource | null = null;
  let timer = 0;

  const draw = (): void => {
    if (curves === null) return;
    for (const { plan, chart } of drawn) {
      const columns = plan.lines.map(([key]) => column(curves as Curves, key));
      chart.update(columns.some((values) => values.some((value) => value !== null)) ? [curves?.elapsed_s ?? [], ...columns] : []);
    }
    elo.update(
      ratings.length === 0
        ? []
        : [
            ratings.map((rating) => rating.elapsed_s),
            ratings.map((rating) => rating.elo),
            ratings.map((rating) => rating.low),
            ratings.map((rating) => rating.high),
          ],
    );
    replace(
      tiles,
      ...([
        ['Generation', curves.generation],
        ['Games', curves.games],
        ['Positions', curves.positions],
        ['Simulations', curves.simulations],
        ['Batches', curves.steps],
      ] as [string, number[]][]).map(([label, values]) => fact(label, short(values.at(-1) ?? 0))),
      fact('Trained', span(curves.elapsed_s.at(-1) ?? 0)),
      fact('Elo', ratings.length === 0 ? '–' : count(ratings.at(-1)?.elo ?? 0)),
    );
    // Of each kind the last one.
    replace(alarms, ...[...new Map(alarmList.map((alarm) => [alarm.name, alarm])).values()].map(alarmView));
  };

  const take = (record: Record_): void => {
    if (record.kind === 'progress') add(curves, record);
    else if (record.kind === 'rating') ratings.push(record);
    else if (record.kind === 'alarm') {
      alarmList.push(record);
      announce(`Alarm: ${record.meaning}`);
    }
  };

  const start = async (): Promise<void> => {
    try {
      const detail = await get<RunDetail>(run(name), control.signal);
      ({ ratings, alarms: alarmList } = detail);
      showHead(detail);
      showDetails(detail);
      if (detail.config === null) {
        // The training has just been started; its folder comes in a moment.
        timer = window.setTimeout(() => void start(), 1000);
        return;
      }
      curves = await get<Curves>(run(name, '/curves'), control.signal);
      draw();
      listen(curves.records);
      timer = window.setTimeout(() => void refresh(), PAUSE);
    } catch (error) {
      replace(problem, failure(error));
    }
  };

  const listen = (after: number): void => {
    feed?.close();
    feed = new EventSource(run(name, `/feed?after=${after}`));
    let waiting = 0;
    feed.addEventListener('record', (event) => {
      take(JSON.parse((event as MessageEvent<string>).data) as Record_);
      // Many records may come at once: they are drawn together.
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(draw);
    });
    feed.addEventListener('restart', () => {
      ratings = [];
      alarmList = [];
      curves = { epoch: 0, records: 0, elapsed_s: [], generation: [], games: [], positions: [], simulations: [], steps: [], values: {} };
    });
  };

  /** What the feed does not tell: state, checkpoints, what the training says. */
  const refresh = async (): Promise<void> => {
    try {
      const detail = await get<RunDetail>(run(name), control.signal);
      showHead(detail);
      showDetails(detail);
      replace(problem);
    } catch (error) {
      replace(problem, failure(error));
    }
    if (!control.signal.aborted) timer = window.setTimeout(() => void refresh(), PAUSE);
  };

  const showHead = (detail: RunDetail): void => {
    replace(
      head,
      h(
        'div',
        { class: 'title-row' },
        h('h1', {}, name),
        h('span', { class: `state state-${detail.state}` }, stateNames[detail.state]),
        h('div', { class: 'row' }, ...actions(detail, refresh), h('a', { class: 'button', href: `#/games/${encodeURIComponent(name)}`, 'data-key': 'games' }, 'Games')),
      ),
      detail.state === 'stopped' && detail.reason !== null && detail.reason !== 'stopped' && h('p', { class: 'hint' }, detail.reason),
    );
  };

  let opened = new Set<string>();
  const showDetails = (detail: RunDetail): void => {
    opened = new Set(
      [...details.querySelectorAll('details[open]')].map((element) => (element as HTMLElement).dataset['name'] ?? ''),
    );
    const fold = (key: string, title: string, content: HTMLElement): HTMLElement =>
      h('details', { 'data-name': key, open: opened.has(key) }, h('summary', { 'data-key': key }, title), content);
    replace(
      details,
      detail.checkpoints.length > 0 &&
        fold('checkpoints', `Checkpoints (${detail.checkpoints.length})`, checkpoints(name, detail)),
      detail.notes.length > 0 && fold('notes', 'Notes', h('ul', {}, ...detail.notes.map((note) => h('li', {}, note)))),
      detail.said.length > 0 && fold('said', 'What the training says', h('pre', { tabindex: 0 }, detail.said.join('\n'))),
      detail.config !== null &&
        fold('config', 'Config', h('pre', { tabindex: 0 }, JSON.stringify(detail.config, null, 2))),
    );
  };

  const board = new Replay();
  let shown = -1;
  let gameTimer = 0;
  const watch = async (): Promise<void> => {
    try {
      const game = await get<Game | null>(run(name, '/games/latest'), control.signal);
      // Whoever is looking at a game is left with it.
      const isInUse = board.element.contains(document.activeElement);
      if (game !== null && game.number !== shown && !isInUse) {
        if (shown < 0) replace(live, h('h2', {}, 'The game that ended last'), board.element);
        shown = game.number;
        const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches;
        board.show(game, isCalm ? game.plies.length : 0);
        if (!isCalm) board.play(450);
      }
    } catch {
      // No game yet, or the page is being left: the next look tells.
    }
    if (!control.signal.aborted) gameTimer = window.setTimeout(() => void watch(), 15_000);
  };

  void start();
  void watch();
  return () => {
    control.abort();
    feed?.close();
    board.stop();
    clearTimeout(timer);
    clearTimeout(gameTimer);
    for (const chart of [elo, ...drawn.map((entry) => entry.chart)]) chart.close();
  };
}

/** A curve by its name; some follow from others. */
function column(curves: Curves, key: string): Column {
  if (key === 'games_per_second' && curves.values[key] === undefined) return rate(curves, curves.games);
  return curves.values[key] ?? curves.elapsed_s.map(() => null);
}

function rate(curves: Curves, totals: number[]): Column {
  return totals.map((total, index) => {
    if (index === 0) return null;
    const seconds = (curves.elapsed_s[index] ?? 0) - (curves.elapsed_s[index - 1] ?? 0);
    return seconds > 0 ? (total - (totals[index - 1] ?? 0)) / seconds : null;
  });
}

/** Adds a record to the columns, which stay equally long. */
function add(curves: Curves | null, record: Progress): void {
  if (curves === null) return;
  const length = curves.elapsed_s.length;
  curves.elapsed_s.push(record.elapsed_s);
  curves.generation.push(record.generation);
  curves.games.push(record.games);
  curves.positions.push(record.positions);
  curves.simulations.push(record.simulations);
  curves.steps.push(record.steps);
  for (const key of new Set([...Object.keys(curves.values), ...Object.keys(record.values)])) {
    const values = (curves.values[key] ??= Array.from({ length }, () => null));
    values.push(record.values[key] ?? null);
  }
}

function alarmView(alarm: Alarm): HTMLElement {
  return h(
    'p',
    { class: 'alarm' },
    h('strong', {}, `${alarm.name} is ${short(alarm.value)} `),
    `(bound ${short(alarm.bound)}, after ${span(alarm.elapsed_s)}): ${alarm.meaning}; ${alarm.action}`,
  );
}

function checkpoints(name: string, detail: RunDetail): HTMLElement {
  return h(
    'ul',
    { class: 'inline-list' },
    ...detail.checkpoints
      .slice()
      .reverse()
      .map((step) => {
        const player = encodeURIComponent(`run:${name}@${step}`);
        return h('li', {}, `step ${count(step)} `, h('a', { href: `#/play?player=${player}`, 'aria-label': `Play step ${step}` }, 'play'), ' ', h('a', { href: `#/inside?player=${player}`, 'aria-label': `Look inside step ${step}` }, 'inside'));
      }),
  );
}
