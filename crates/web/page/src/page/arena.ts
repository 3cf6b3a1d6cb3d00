// The arena: rating lists, matches and their games.

import { failure, get, post } from '../api';
import type { Game, Ladder, Match, MatchDetail, MatchReport } from '../api';
import { announce, field, h, replace, select } from '../dom';
import { count, percent, signed } from '../format';
import { PlayerChoice } from '../part/opponent';
import { pollShowingErrors } from '../part/poll';
import { Replay } from '../part/replay';
import { bar } from '../part/spark';

const PAUSE = 2500;
/** With fewer games a share is shown as counts; with very few games no Elo is shown. */
const FEW_GAMES = 20;
const TOO_FEW_GAMES = 10;

const limits: [string, string][] = [
  ['movetime_ms:20', '0.02 s per move'],
  ['movetime_ms:100', '0.1 s per move'],
  ['movetime_ms:500', '0.5 s per move'],
  ['sims:100', '100 simulations or nodes'],
  ['sims:800', '800 simulations or nodes'],
  ['', 'each player’s own limit'],
];
/** The same time for all players: their own limits differ by a factor of a thousand. */
const DEFAULT_LIMIT = 'movetime_ms:100';

export function arenaPage(root: HTMLElement): () => void {
  const control = new AbortController();
  const problem = h('div');
  const ladders = h('div');
  const matches = h('div');
  const poll = pollShowingErrors(problem, async () => {
    const [lists, all] = await Promise.all([
      get<Ladder[]>('/api/ladders', control.signal),
      get<Match[]>('/api/matches', control.signal),
    ]);
    replace(ladders, ...lists.map(ladderView));
    replace(matches, all.length === 0 ? h('p', { class: 'hint' }, 'No matches have been played yet.') : matchTable(all));
  }, PAUSE);

  root.append(
    h('h1', {}, 'Arena'),
    problem,
    h('div', { class: 'two' }, h('div', {}, h('h2', {}, 'Ratings'), ladders), form(() => void poll.now())),
    h('h2', {}, 'Matches'),
    matches,
  );
  return () => {
    control.abort();
    poll.stop();
  };
}

/** A form for a new match or ladder. */
function form(done: () => void): HTMLElement {
  const choices = [new PlayerChoice('First player'), new PlayerChoice('Second player', { wanted: 'greedy' })];
  const more = h('textarea', { rows: 2, spellcheck: 'false', maxlength: 5000, placeholder: 'random' });
  const games = h('input', { type: 'number', min: 2, max: 10_000, step: 2, value: 20, required: true });
  const limit = select(limits, DEFAULT_LIMIT);
  const problem = h('div');
  return h(
    'form',
    {
      class: 'card',
      onsubmit: (event: Event) => {
        event.preventDefault();
        const [key = '', value] = limit.value.split(':');
        const order = {
          players: [...choices.map((choice) => choice.value), ...more.value.split('\n').map((text) => text.trim()).filter(Boolean)],
          games: Number(games.value),
          ...(key === '' ? {} : { [key]: Number(value) }),
        };
        post<string[]>('/api/matches', order)
          .then((ids) => {
            replace(problem);
            announce(`${ids.length} matches queued`);
            done();
          })
          .catch((error: unknown) => replace(problem, failure(error)));
      },
    },
    h('h2', {}, 'New match'),
    ...choices.map((choice) => choice.element),
    field('More players', more, 'One per line; all players play each other'),
    h('div', { class: 'columns' }, field('Games per pair', games), field('Limit per move', limit, 'A limit in a player’s spec takes precedence')),
    problem,
    h('button', { type: 'submit', class: 'primary' }, 'Start'),
  );
}

function ladderView(ladder: Ladder): HTMLElement {
  const low = Math.min(...ladder.players.map((player) => player.elo - player.elo_error));
  const high = Math.max(...ladder.players.map((player) => player.elo + player.elo_error));
  return h(
    'table',
    { class: 'numbers ladder' },
    h(
      'caption',
      {},
      ladder.limit === '-' ? 'Limit: each player’s own' : `Limit: ${ladder.limit}`,
      ladder.repeated > 0 && ` · ${count(ladder.repeated)} repeated games do not count`,
    ),
    h('thead', {}, h('tr', {}, ...['Player', 'Elo', '±', 'Games'].map((text) => h('th', { scope: 'col' }, text)), h('td', {}))),
    h(
      'tbody',
      {},
      ...ladder.players.map((player) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, breakable(player.name)),
          h('td', {}, count(player.elo)),
          h('td', {}, player.is_anchor ? 'fixed' : count(player.elo_error)),
          h('td', {}, count(player.games)),
          h('td', { class: 'meter-cell' }, bar(player.elo, player.is_anchor ? 0 : player.elo_error, low, high)),
        ),
      ),
    ),
  );
}

function matchTable(all: Match[]): HTMLElement {
  return h(
    'table',
    { class: 'numbers' },
    h('thead', {}, h('tr', {}, ...['Match', 'Players', 'Score', 'Elo difference (95\u00a0%)', 'Games', 'State'].map((text) => h('th', { scope: 'col' }, text)))),
    h(
      'tbody',
      {},
      ...all.map(({ id, report, state, total, error }) =>
        h(
          'tr',
          {},
          h('td', {}, h('a', { href: `#/match/${id}`, 'data-key': id }, `№ ${Number(id)}`)),
          h('td', { class: 'line-cell' }, breakable(`${report.a} – ${report.b}`)),
          h('td', { class: 'tight' }, `+${report.wins} =${report.draws} −${report.losses}`),
          h('td', {}, eloText(report)),
          h('td', {}, `${report.games}/${total}`),
          h('td', {}, error ?? state),
        ),
      ),
    ),
  );
}

/** A player's spec with possible line breaks. */
function breakable(spec: string): HTMLElement {
  const parts = spec.split(/(?<=[:@,])/);
  return h('span', {}, ...parts.flatMap((part, index) => (index === 0 ? [part] : [h('wbr'), part])));
}

/** The 95 % interval; the estimate itself only if the results show a variance. */
function eloText({ games, elo, elo_error: error, elo_low: low, elo_high: high }: MatchReport): string {
  const write = (value: number): string => signed(value, 0);
  // The variance of a few pairs does not show how uncertain their mean is.
  if (error !== null && games < TOO_FEW_GAMES) return 'too few games';
  if (elo === null || (low === null && high === null)) return '–';
  if (low === null) return `${write(high as number)} or less`;
  if (high === null) return `${write(low)} or more`;
  const interval = `${write(low)} to ${write(high)}`;
  return error === null ? interval : `${write(elo)} (${interval})`;
}

function pointsText({ wins, draws, games, score }: MatchReport): string {
  return games < FEW_GAMES ? `${wins + draws / 2} of ${games} points` : percent(score, 1);
}

export function matchPage(root: HTMLElement, parts: string[]): () => void {
  const id = parts[0] ?? '';
  const control = new AbortController();
  const problem = h('div');
  const actionError = h('div');
  const head = h('div');
  const list = h('div', { class: 'game-list', tabindex: 0, role: 'region', 'aria-label': 'Games' });
  const replay = new Replay({ isMatch: true });
  replay.element.hidden = true;
  let known = -1;
  root.append(h('p', {}, h('a', { href: '#/arena' }, '← Arena')), problem, actionError, head, h('div', { class: 'split' }, list, replay.element));

  const open = async (number: number): Promise<void> => {
    const game = await get<Game>(`/api/matches/${id}/games/${number}`, control.signal);
    replay.element.hidden = false;
    replay.show(game);
  };
  const choose = (number: number): void => {
    open(number).catch((error: unknown) => replace(problem, failure(error)));
  };

  const acted = (error?: unknown): void => {
    replace(actionError, error !== undefined && failure(error));
    void poll.now();
  };
  const poll = pollShowingErrors(problem, async () => {
    const detail = await get<MatchDetail>(`/api/matches/${id}`, control.signal);
    replace(head, ...matchHead(detail, acted));
    if (detail.games.length !== known) {
      known = detail.games.length;
      replace(list, gameTable(detail, choose));
      const [first] = detail.games;
      if (replay.element.hidden && first !== undefined) await open(first.number);
    }
  }, PAUSE);
  return () => {
    control.abort();
    poll.stop();
    replay.close();
  };
}

function matchHead(detail: MatchDetail, acted: (error?: unknown) => void): HTMLElement[] {
  const { report, state, id } = detail;
  const act = (label: string, rest: string): HTMLElement =>
    h('button', { type: 'button', 'data-key': rest, onclick: () => void post(`/api/matches/${id}/${rest}`, {}).then(() => acted(), acted) }, label);
  const isOpen = state === 'playing' || state === 'waiting';
  return [
    h('div', { class: 'title-row' }, h('h1', {}, `${report.a} – ${report.b}`), h('span', { class: `state state-${state}` }, state)),
    h(
      'p',
      {},
      h('strong', {}, `+${report.wins} =${report.draws} −${report.losses}`),
      ` · ${pointsText(report)} · Elo difference (95\u00a0%): ${eloText(report)} · game ${report.games} of ${detail.total}`,
      report.elo_error !== null && report.games >= TOO_FEW_GAMES && ` · probability that the first player is stronger: ${percent(report.los, 1)}`,
    ),
    h(
      'div',
      { class: 'row' },
      isOpen ? act('Stop', 'stop') : null,
      state === 'stopped' ? act('Resume', 'resume') : null,
      report.games > 0 && h('a', { class: 'button', href: `/api/matches/${id}/pgn`, download: true, 'data-key': 'pgn' }, 'Download PGN'),
    ),
    ...(detail.error === null ? [] : [h('p', { class: 'problem' }, detail.error)]),
  ];
}

function gameTable(detail: MatchDetail, open: (number: number) => void): HTMLElement {
  return h(
    'table',
    { class: 'numbers' },
    h('thead', {}, h('tr', {}, ...['Game', 'First player', 'Points', 'Plies', 'Reason'].map((text) => h('th', { scope: 'col' }, text)))),
    h(
      'tbody',
      {},
      ...detail.games.map((game) =>
        h(
          'tr',
          {},
          h('td', {}, h('button', { type: 'button', class: 'link', 'data-key': `game ${game.number}`, onclick: () => open(game.number) }, String(game.number + 1))),
          h('td', {}, game.a_is_white ? 'White' : 'Black'),
          h('td', {}, game.a_points === 0.5 ? '½' : String(game.a_points)),
          h('td', {}, String(game.plies)),
          h('td', {}, game.reason),
        ),
      ),
    ),
  );
}
