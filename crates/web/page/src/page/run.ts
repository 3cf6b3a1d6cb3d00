// One run: live curves, alarms, newest games, checkpoints, config.

import { failure, get, run } from '../api';
import type { Alarm, ChartInfo, Curves, Game, Generations, Live, Mistakes, Progress, Rating, Record_, RunDetail } from '../api';
import { announce, h, replace } from '../dom';
import { count, percent, short, signed, span } from '../format';
import { Glance } from '../part/board';
import { Chart } from '../part/chart';
import type { Column, Line } from '../part/chart';
import { Poll } from '../part/poll';
import { Replay } from '../part/replay';
import { table } from '../part/table';
import { actions, fact, leftText, playerLinks, stateNames, trainedText } from './runs';

const PAUSE = 4000;

/** With fewer games a share is shown as counts. */
const FEW_GAMES = 50;
const colors = ['curve-1', 'curve-2', 'curve-3', 'curve-4', 'curve-5'];

export function runPage(root: HTMLElement, parts: string[]): () => void {
  const name = parts[0] ?? '';
  const control = new AbortController();
  const head = h('div', {}, h('h1', {}, name));
  const problem = h('div');
  const actionError = h('div');
  const feedStatus = h('div', { role: 'status' });
  const tiles = h('dl', { class: 'tiles' });
  const first = h('p', { class: 'hint', role: 'status', hidden: true });
  const alarms = h('div');
  const charts = h('div', { class: 'charts' });
  const playing = h('div', { class: 'playing' });
  const live = h('div', { class: 'live' });
  const details = h('div');
  root.append(head, problem, actionError, tiles, first, alarms, feedStatus, charts, playing, live, details);

  const elo = new Chart(
    'Elo',
    [
      { label: 'Elo', color: 'curve-1' },
      { label: 'low', color: 'curve-1', isBand: true },
      { label: 'high', color: 'curve-1', isBand: true },
    ],
    { hint: 'against players of known strength, with the 95\u00a0% interval', digits: count },
  );
  charts.append(elo.element);
  elo.update([]);
  let drawn: { info: ChartInfo; chart: Chart }[] = [];
  /** Adds the charts of the run's learner. A chart without numbers is not shown. */
  const addCharts = (infos: ChartInfo[]): void => {
    drawn = infos.map((info) => {
      const lines: Line[] = info.curves.map(({ label }, index) => ({ label, color: colors[index] ?? 'curve-1' }));
      const digits = info.unit === 'share' ? shareText : undefined;
      return { info, chart: new Chart(info.title, lines, { hint: info.hint, zero: info.unit !== 'number', digits }) };
    });
    charts.append(...drawn.map(({ chart }) => chart.element));
    for (const { chart } of drawn) chart.update([]);
  };

  let curves: Curves | null = null;
  let ratings: Rating[] = [];
  let alarmList: Alarm[] = [];
  let feed: EventSource | null = null;
  let timer = 0;

  const draw = (): void => {
    if (curves === null) return;
    for (const { info, chart } of drawn) {
      const columns = info.curves.map(({ metric }) => column(curves as Curves, metric));
      const hasNumbers = columns.some((values) => values.some((value) => value !== null));
      chart.update(hasNumbers ? [curves.elapsed_s, ...columns] : [], info.curves.map(({ metric }) => fewWords(curves as Curves, metric)));
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
    showTiles();
    // Only the last alarm of each name.
    replace(alarms, ...[...new Map(alarmList.map((alarm) => [alarm.name, alarm])).values()].map(alarmView));
  };

  let known: RunDetail | null = null;
  const showTiles = (): void => {
    if (curves === null || known === null) return;
    // The feed delivers a new record before the run is read again.
    const trained = { ...known, trained_s: Math.max(known.trained_s, curves.elapsed_s.at(-1) ?? 0) };
    const left = known.state === 'training' ? leftText(trained) : null;
    const isFirst = curves.generation.length === 0;
    replace(
      tiles,
      ...([
        ['Generation', curves.generation],
        ['Games', curves.games],
        ['Positions', curves.positions],
        ['Simulations', curves.simulations],
        ['Training steps', curves.steps],
      ] as [string, number[]][]).map(([label, values]) => fact(label, isFirst ? '–' : short(values.at(-1) ?? 0))),
      fact('Trained', trainedText(trained)),
      left !== null && fact('Remaining', left),
      fact('Elo', ratings.length === 0 ? '–' : count(ratings.at(-1)?.elo ?? 0)),
    );
    first.hidden = !isFirst || !isTraining;
  };

  /** During the first generation there is only the number of its games to show. */
  const lookAtFirst = async (): Promise<void> => {
    if (!isTraining || curves === null || curves.generation.length > 0) return;
    const { open_games: soFar } = await get<Generations>(run(name, '/games'), control.signal);
    first.textContent = `The first generation is being played${soFar > 0 ? `: ${count(soFar)} games are finished` : ''}. Curves appear when it is complete.`;
  };

  const take = (record: Record_): void => {
    if (record.kind === 'progress') add(curves, record);
    else if (record.kind === 'rating') ratings.push(record);
    else if (record.kind === 'alarm') {
      alarmList.push(record);
      announce(`Alarm: ${record.meaning}`);
    }
  };

  let isTraining = false;
  /** Polls the run; starts once the run exists. */
  let poll: Poll | null = null;
  const acted = (error?: unknown): void => {
    replace(actionError, error !== undefined && failure(error));
    void poll?.now();
  };

  const start = async (): Promise<void> => {
    try {
      const detail = await get<RunDetail>(run(name), control.signal);
      ({ ratings, alarms: alarmList } = detail);
      showHead(detail);
      showDetails(detail);
      if (detail.config === null) {
        // The training has just been started; its folder appears in a moment unless it failed.
        if (detail.state !== 'stopped') timer = window.setTimeout(() => void start(), 1000);
        else {
          replace(problem, h('p', { class: 'problem' }, 'The training ended before it created the run.'));
          polls.forEach((each) => each.stop());
        }
        return;
      }
      if (drawn.length === 0) addCharts(detail.charts);
      curves = await get<Curves>(run(name, '/curves'), control.signal);
      draw();
      replace(problem);
      ({ place } = curves);
      listen();
      poll = new Poll(refresh, PAUSE);
    } catch (error) {
      replace(problem, failure(error));
      // The server may answer again in a moment.
      if (!control.signal.aborted) timer = window.setTimeout(() => void start(), PAUSE);
    }
  };

  /** Where the feed continues when it is opened again. */
  let place = '0';
  let waiting = 0;
  let feedTimer = 0;
  const listen = (): void => {
    feed?.close();
    clearTimeout(feedTimer);
    // Browsers limit the connections to a server; a hidden page needs none.
    if (document.hidden || control.signal.aborted) return;
    feed = new EventSource(run(name, `/feed?after=${place}`));
    feed.addEventListener('open', () => replace(feedStatus));
    feed.addEventListener('error', () => {
      replace(feedStatus, h('p', { class: 'hint' }, 'The curves are not updated because the server does not answer. Trying again…'));
      // The browser reconnects by itself unless the request was rejected.
      if (feed?.readyState === EventSource.CLOSED) feedTimer = window.setTimeout(listen, PAUSE);
    });
    feed.addEventListener('record', (event) => {
      const message = event as MessageEvent<string>;
      place = message.lastEventId;
      take(JSON.parse(message.data) as Record_);
      // Many records may arrive at once; they are drawn together.
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(draw);
    });
    feed.addEventListener('restart', () => {
      ratings = [];
      alarmList = [];
      place = '0';
      curves = { records: 0, place, elapsed_s: [], generation: [], games: [], positions: [], simulations: [], steps: [], values: {} };
    });
  };

  /** Reads what the feed does not contain: state, checkpoints, output of the training. */
  const refresh = async (): Promise<void> => {
    try {
      const detail = await get<RunDetail>(run(name), control.signal);
      showHead(detail);
      showDetails(detail);
      showTiles();
      await lookAtFirst();
      replace(problem);
    } catch (error) {
      replace(problem, failure(error));
    }
  };

  const showHead = (detail: RunDetail): void => {
    known = detail;
    isTraining = detail.state === 'training' || detail.state === 'elsewhere';
    replace(
      head,
      h(
        'div',
        { class: 'title-row' },
        h('h1', {}, name),
        h('span', { class: `state state-${detail.state}` }, stateNames[detail.state]),
        h('div', { class: 'row' }, ...actions(detail, acted), h('a', { class: 'button', href: `#/games/${encodeURIComponent(name)}`, 'data-key': 'games' }, 'Games')),
      ),
      detail.state === 'stopped' && detail.reason !== null && detail.reason !== 'stopped' && h('p', { class: 'hint' }, detail.reason),
    );
  };

  const folds = new Map<string, { element: HTMLElement; title: HTMLElement; body: HTMLElement; seen: string }>();
  /** A collapsible section. It is redrawn only when it has changed, so that it can be read. */
  const fold = (key: string, title: string, seen: string | null, fill: (body: HTMLElement) => void): void => {
    let entry = folds.get(key);
    if (seen === null) {
      entry?.element.remove();
      folds.delete(key);
      return;
    }
    if (entry === undefined) {
      const [summary, body] = [h('summary'), h('div')];
      entry = { element: h('details', {}, summary, body), title: summary, body, seen: '' };
      folds.set(key, entry);
      details.append(entry.element);
    }
    if (entry.seen === seen) return;
    entry.seen = seen;
    entry.title.textContent = title;
    fill(entry.body);
  };
  const text = (content: string) => (body: HTMLElement): void => {
    const found = body.querySelector('pre') ?? body.appendChild(h('pre', { tabindex: 0 }));
    found.textContent = content;
  };
  const showDetails = (detail: RunDetail): void => {
    const { checkpoints: steps, notes, warnings, said, config, mistakes } = detail;
    fold('warnings', 'Warnings', warnings.length === 0 ? null : warnings.join('\n'), (body) => replace(body, h('ul', {}, ...warnings.map((warning) => h('li', {}, warning)))));
    fold('mistakes', 'Mistakes', mistakes === null || mistakes.rows.length === 0 ? null : JSON.stringify(mistakes), (body) => {
      if (mistakes !== null) replace(body, mistakeTable(mistakes));
    });
    fold('checkpoints', `Checkpoints (${steps.length})`, steps.length === 0 ? null : steps.join(), (body) => replace(body, checkpoints(name, detail)));
    fold('notes', 'Notes', notes.length === 0 ? null : notes.join('\n'), (body) => replace(body, h('ul', {}, ...notes.map((note) => h('li', {}, note)))));
    const lines = said.join('\n');
    fold('said', 'Output of the training', said.length === 0 ? null : lines, text(lines));
    const settings = JSON.stringify(config, null, 2);
    fold('config', 'Config', config === null ? null : settings, text(settings));
  };

  /** Boards of the games being played, by place. */
  const glances = new Map<number, { glance: Glance; text: HTMLElement }>();
  const glance = async (): Promise<void> => {
    try {
      const games = await get<Live[]>(run(name, '/live'), control.signal);
      // Between two generations no games are played; the boards stay until the training ends.
      const isPause = games.length === 0 && isTraining;
      if (games.length !== glances.size && !isPause) {
        glances.forEach((entry) => entry.glance.close());
        glances.clear();
        games.forEach((_, place) => {
          glances.set(place, { glance: new Glance(`Game in progress, board ${place + 1}`), text: h('p', { class: 'hint' }) });
        });
        const boards = [...glances.values()].map((entry) => h('div', {}, entry.glance.element, entry.text));
        replace(playing, games.length > 0 && h('h2', {}, 'Games in progress'), games.length > 0 && h('div', { class: 'glances' }, ...boards));
      }
      games.forEach((game, place) => {
        const entry = glances.get(place);
        entry?.glance.show(game.fen, game.last);
        replace(entry?.text ?? h('p'), `Game ${count(game.number)}, ply ${game.plies}`, game.value !== null && `, White expects ${signed(game.value)} (−1 to +1)`);
      });
    } catch {
      // The folder does not exist yet, or the page is being left.
    }
  };

  const listenAgain = (): void => {
    if (curves !== null) listen();
  };

  const board = new Replay();
  let shown = -1;
  const watch = async (): Promise<void> => {
    try {
      const game = await get<Game | null>(run(name, '/games/latest'), control.signal);
      // Do not replace a game that the user is looking at.
      const isInUse = board.element.contains(document.activeElement);
      if (game !== null && game.number !== shown && !isInUse) {
        if (shown < 0) replace(live, h('h2', {}, 'Latest finished game'), board.element);
        shown = game.number;
        const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches;
        board.show(game, isCalm ? game.plies.length : 0);
        if (!isCalm) board.play(450);
      }
    } catch {
      // No game yet, or the page is being left.
    }
  };

  void start();
  const polls = [new Poll(watch, 15_000), new Poll(glance, 1000)];
  document.addEventListener('visibilitychange', listenAgain);
  return () => {
    control.abort();
    document.removeEventListener('visibilitychange', listenAgain);
    feed?.close();
    poll?.stop();
    polls.forEach((each) => each.stop());
    board.close();
    glances.forEach((entry) => entry.glance.close());
    cancelAnimationFrame(waiting);
    clearTimeout(feedTimer);
    clearTimeout(timer);
    for (const chart of [elo, ...drawn.map((entry) => entry.chart)]) chart.close();
  };
}

function shareText(value: number): string {
  return percent(value, value > 0 && value < 0.1 ? 1 : 0);
}

/** The values of a metric; some are computed from others. */
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

/** The last share of a few games as counts: a percentage would look more certain than it is. */
function fewWords(curves: Curves, key: string): string | null {
  const [share, capped] = [curves.values[key]?.at(-1), curves.values['truncated_share']?.at(-1) ?? 0];
  const last = curves.games.length - 1;
  // Long curves are thinned: the difference of two records may then span several generations.
  const isNext = (curves.generation[last] ?? 0) - (curves.generation[last - 1] ?? 0) === 1;
  const games = (curves.games[last] ?? 0) - (curves.games[last - 1] ?? 0);
  if (share == null || capped === null || !isNext) return null;
  if (key === 'truncated_share' && games < FEW_GAMES) return `${Math.round(share * games)} of ${games}`;
  const finished = games - Math.round(capped * games);
  return key === 'draw_share' && finished < FEW_GAMES ? `${Math.round(share * finished)} of ${finished}` : null;
}

/** Adds a record to all columns. */
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
        const links = playerLinks(`run:${name}@${step}`, detail);
        return h(
          'li',
          {},
          `step ${count(step)} `,
          h('a', { href: links.play, 'aria-label': `Play against step ${step}` }, 'play'),
          ' ',
          links.inside !== null && h('a', { href: links.inside, 'aria-label': `Look inside step ${step}` }, 'inside'),
        );
      }),
  );
}

function mistakeTable({ games, rows }: Mistakes): HTMLElement {
  const numbers = rows.map(({ kind, opening, middlegame, endgame }) => [
    kind,
    ...[opening, middlegame, endgame, opening + middlegame + endgame].map(count),
  ]);
  return table(`Moves that turned ${count(games)} of the champion’s lost games`, ['Kind', 'Opening', 'Middlegame', 'Endgame', 'All'], numbers);
}
