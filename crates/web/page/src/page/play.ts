// A game against any player: by mouse, by keyboard, with hints, takeback and a review after it.

import { failure, post, stream } from '../api';
import type { Choice, Effort, Game, Ply, Position, Thought, Verdict } from '../api';
import { announce, field, h, replace, select } from '../dom';
import { count, numbered, percent, score, signed } from '../format';
import { Board } from '../part/board';
import { turningPoints } from '../part/evalgraph';
import { PlayerChoice } from '../part/opponent';
import { Replay } from '../part/replay';

const HINT: Effort = { movetime_ms: 600 };
const JUDGE = 'default';
const REVIEW: Effort = { movetime_ms: 80 };

const strengths: [string, string][] = [
  ['sims:1', '1 simulation: the network alone'],
  ['sims:16', '16 simulations'],
  ['sims:100', '100 simulations'],
  ['sims:800', '800 simulations'],
  ['sims:6400', '6400 simulations'],
  ['movetime_ms:100', '0.1 s a move'],
  ['movetime_ms:500', '0.5 s a move'],
  ['movetime_ms:2000', '2 s a move'],
  ['movetime_ms:10000', '10 s a move'],
  ['', 'as the player says'],
];

type Side = 'white' | 'black';

export function playPage(root: HTMLElement, _: string[], query: URLSearchParams): () => void {
  const board = new Board('The game');
  const opponent = new PlayerChoice('Opponent', { wanted: query.get('player') });
  const strength = select(strengths, 'movetime_ms:500');
  const side = select([['white', 'White'], ['black', 'Black'], ['random', 'either']], query.get('side') ?? undefined);
  const fen = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'the usual start' });
  fen.value = query.get('fen') ?? '';
  const typed = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', 'data-test': 'move' });
  const showThoughts = h('input', { type: 'checkbox', id: 'show-thoughts', checked: true });
  const problem = h('div');
  const status = h('p', { class: 'game-status', role: 'status' });
  const moves = h('p', { class: 'move-text', tabindex: 0, role: 'region', 'aria-label': 'Moves' });
  const thoughts = h('div');
  const bar = h('div', { class: 'eval-bar', role: 'img', 'aria-label': 'Evaluation' }, h('div', { class: 'eval-white' }));
  const review = h('div');

  let start: string | null = null;
  let played: string[] = [];
  let position: Position | null = null;
  let human: Side = 'white';
  let seed = 1;
  let resigned: string | null = null;
  let control = new AbortController();
  // As they were when the game began: what is chosen afterwards is for the next one.
  let rival = opponent.value;
  let pace: Effort = {};
  let asking: AbortController | null = null;
  let replay: Replay | null = null;

  const effort = (): Effort => {
    const [key, value] = strength.value.split(':');
    return key === '' || value === undefined ? {} : { [key as string]: Number(value) };
  };
  const fail = (error: unknown): void => replace(problem, failure(error));
  const line = (): { fen: string | null; moves: string[] } => ({ fen: start, moves: played });
  const result = (): string | null => position?.outcome?.result ?? resigned;

  const closeReview = (): void => {
    replay?.close();
    replay = null;
    replace(review);
  };

  const newGame = async (): Promise<void> => {
    asking?.abort();
    control.abort();
    control = new AbortController();
    rival = opponent.value;
    pace = effort();
    replace(problem);
    closeReview();
    replace(thoughts);
    resigned = null;
    played = [];
    start = fen.value.trim() === '' ? null : fen.value.trim();
    seed = Math.floor(Math.random() * 2 ** 31);
    const chosen = side.value === 'random' ? (Math.random() < 0.5 ? 'white' : 'black') : side.value;
    human = chosen as Side;
    board.turn(human);
    await update();
  };

  /** Asks the server about the position and goes on from there. */
  const update = async (): Promise<void> => {
    try {
      position = await post<Position>('/api/position', line(), control.signal);
    } catch (error) {
      fail(error);
      return;
    }
    const last = position.played.at(-1)?.uci ?? null;
    board.show({ fen: position.fen, lastMove: last, check: position.check });
    board.arrows([]);
    // Word by word, or the browser would break O-O in two.
    const words = numbered(position.played, position.start).split(' ').filter(Boolean);
    replace(moves, ...(words.length === 0 ? ['No move yet.'] : words.flatMap((word) => [h('span', {}, word), ' '])));
    if (result() !== null) {
      over();
    } else if (position.turn === human) {
      status.textContent = position.check ? 'Check! Your move.' : 'Your move.';
      board.allow(position.legal, (uci) => void humanMove(uci));
    } else {
      status.textContent = `${rival} thinks…`;
      await engineMove();
    }
  };

  const humanMove = async (uci: string): Promise<void> => {
    // A hint for the position before is of no use in the next one.
    asking?.abort();
    replace(problem);
    played = [...played, uci];
    await update();
  };

  const engineMove = async (): Promise<void> => {
    const turn = position?.turn ?? 'white';
    let chosen: Choice | null = null;
    const round = new Map<number, Thought>();
    try {
      const request = { ...line(), player: rival, effort: pace, lines: 4, seed };
      await stream<Thought | Choice>(
        '/api/think',
        request,
        (message) => {
          if (message.kind === 'choice') chosen = message;
          else {
            take(round, message);
            if (message.rank === 1) evaluate(message.value, turn);
            if (showThoughts.checked) showRound([...round.values()], turn);
          }
        },
        control.signal,
      );
    } catch (error) {
      fail(error);
      return;
    }
    // The stream has filled it in a callback, which the compiler does not see.
    const choice = chosen as Choice | null;
    if (choice === null) return;
    if (choice.value !== null) evaluate(choice.value, turn);
    played = [...played, choice.played.uci];
    announce(`${rival} plays ${choice.played.san}`);
    await update();
  };

  /** The bar: White's part of the expected points. */
  const evaluate = (value: number, turn: Side): void => {
    const white = turn === 'white' ? value : -value;
    const share = (white + 1) / 2;
    bar.style.setProperty('--white', `${(100 * share).toFixed(1)}%`);
    bar.setAttribute('aria-label', `White expects ${signed(white)}`);
  };

  const showRound = (lines: Thought[], turn: Side): void => {
    lines.sort((a, b) => a.rank - b.rank);
    board.arrows(
      lines.map(({ line: [first] }, index) => ({
        uci: first?.uci ?? 'a1a1',
        brush: index === 0 ? 'blue' : 'paleBlue',
      })),
    );
    replace(thoughts, thoughtTable(lines, turn));
  };

  const hint = async (): Promise<void> => {
    if (position === null || position.turn !== human || result() !== null) return;
    const turn = position.turn;
    const round = new Map<number, Thought>();
    asking?.abort();
    const asked = new AbortController();
    asking = asked;
    status.textContent = 'Looking for a good move…';
    try {
      await stream<Thought | Choice>(
        '/api/think',
        { ...line(), player: JUDGE, effort: HINT, lines: 3 },
        (message) => {
          if (message.kind !== 'thought') return;
          take(round, message);
          const found = [...round.values()].sort((a, b) => a.rank - b.rank);
          board.arrows(found.map(({ line: [first] }, index) => ({ uci: first?.uci ?? 'a1a1', brush: index === 0 ? 'green' : 'paleGreen' })));
          replace(thoughts, thoughtTable(found, turn));
        },
        asked.signal,
      );
      const best = round.get(1)?.line[0];
      status.textContent = best === undefined ? 'Your move.' : `Hint: ${best.san}`;
    } catch (error) {
      if (asked.signal.aborted) return;
      status.textContent = 'Your move.';
      fail(error);
    }
  };

  const takeBack = async (): Promise<void> => {
    asking?.abort();
    control.abort();
    control = new AbortController();
    resigned = null;
    closeReview();
    const isMine = position?.turn === human || result() !== null;
    // Back to the last position in which it was the player's move.
    const back = isMine && position?.turn === human ? 2 : 1;
    played = played.slice(0, Math.max(0, played.length - back));
    await update();
  };

  const resign = async (): Promise<void> => {
    if (position === null || result() !== null) return;
    asking?.abort();
    control.abort();
    control = new AbortController();
    resigned = human === 'white' ? '0-1' : '1-0';
    await update();
  };

  const over = (): void => {
    const reason = position?.outcome?.reason ?? 'resignation';
    const won = result() === (human === 'white' ? '1-0' : '0-1');
    const lost = result() === (human === 'white' ? '0-1' : '1-0');
    status.textContent = `${result()} by ${reason}. ${won ? 'You have won.' : lost ? 'You have lost.' : ''}`;
    replace(review, h('button', { type: 'button', class: 'primary', onclick: () => void openReview() }, 'Review the game'));
  };

  const openReview = async (): Promise<void> => {
    const text = h('p', { class: 'hint', role: 'status' }, 'Looking at every position…');
    replace(review, text);
    const verdicts: Verdict[] = [];
    try {
      await stream<Verdict>('/api/review', { ...line(), player: JUDGE, effort: REVIEW }, (verdict) => {
        verdicts.push(verdict);
        text.textContent = `Looking at every position: ${verdicts.length} of ${played.length + 1}`;
      }, control.signal);
      const game = reviewed(verdicts);
      replay?.close();
      replay = new Replay();
      replace(review, h('h2', {}, 'Review'), turns(game, verdicts), replay.element);
      // Where it turned first.
      replay.show(game, turningPoints(verdicts.map(({ value }) => value), game.start.split(' ')[1] !== 'b')[0] ?? 0);
    } catch (error) {
      replace(review, failure(error));
    }
  };

  /** The game with the judge's values. */
  const reviewed = (verdicts: Verdict[]): Game => {
    const plies = verdicts.flatMap(({ played: move, fen: after, check }, index): Ply[] =>
      move === null ? [] : [{ ...move, fen: after, check, value: verdicts[index - 1]?.value ?? null, draw: null, ms: null }],
    );
    const names = { white: 'You', black: rival };
    return {
      number: 0,
      ...(human === 'white' ? names : { white: names.black, black: names.white }),
      start: position?.start ?? '',
      plies,
      outcome: { result: result() ?? '*', reason: position?.outcome?.reason ?? 'resignation' },
      opening: null,
    };
  };

  const save = async (): Promise<void> => {
    const names = human === 'white' ? ['You', rival] : [rival, 'You'];
    const date = new Date().toISOString().slice(0, 10).replace(/-/g, '.');
    try {
      const text = await post<string>('/api/pgn', { ...line(), white: names[0], black: names[1], date, result: result() });
      const link = h('a', { href: URL.createObjectURL(new Blob([text], { type: 'application/x-chess-pgn' })), download: 'selfmate.pgn' });
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (error) {
      fail(error);
    }
  };

  root.append(
    h('h1', {}, 'Play'),
    problem,
    h(
      'div',
      { class: 'play' },
      h('div', { class: 'play-board' }, bar, board.element),
      h(
        'div',
        { class: 'play-side' },
        status,
        h(
          'form',
          {
            class: 'row',
            onsubmit: (event: Event) => {
              event.preventDefault();
              if (board.type(typed.value)) typed.value = '';
              else status.textContent = `'${typed.value}' cannot be played here.`;
            },
          },
          field('Type a move', typed, 'e4, Nf3, O-O, e8=Q, or e2e4'),
          h('button', { type: 'submit' }, 'Move'),
        ),
        h(
          'div',
          { class: 'row' },
          h('button', { type: 'button', onclick: () => void takeBack() }, 'Take back'),
          h('button', { type: 'button', onclick: () => void hint() }, 'Hint'),
          h('button', { type: 'button', onclick: () => board.flip() }, 'Turn the board'),
          h('button', { type: 'button', onclick: () => void resign() }, 'Resign'),
          h('button', { type: 'button', onclick: () => void save() }, 'Save as PGN'),
        ),
        moves,
        h('div', { class: 'row' }, showThoughts, h('label', { for: 'show-thoughts' }, 'Show what the opponent thinks')),
        thoughts,
        h(
          'form',
          {
            class: 'card',
            onsubmit: (event: Event) => {
              event.preventDefault();
              void newGame();
            },
          },
          h('h2', {}, 'New game'),
          opponent.element,
          h('div', { class: 'columns' }, field('Strength', strength), field('You play', side)),
          field('From a position (FEN)', fen),
          h('button', { type: 'submit', class: 'primary' }, 'New game'),
        ),
      ),
    ),
    review,
  );
  evaluate(0, 'white');
  void newGame();
  return () => {
    asking?.abort();
    control.abort();
    replay?.close();
    board.close();
  };
}

/** Puts a line in its place. It may have stood in another one a moment ago. */
function take(round: Map<number, Thought>, thought: Thought): void {
  for (const [rank, { line }] of round) if (line[0]?.uci === thought.line[0]?.uci) round.delete(rank);
  round.set(thought.rank, thought);
}

/** The lines a player looks at; scores as White sees them. */
function thoughtTable(lines: Thought[], turn: Side): HTMLElement {
  const isTree = lines.some(({ visits }) => visits !== null);
  const columns = ['Move', 'Score', ...(isTree ? ['Visits', 'Prior'] : ['Depth']), 'Line'];
  return h(
    'table',
    { class: 'numbers' },
    h('caption', {}, `${count(lines[0]?.nodes ?? 0)} ${isTree ? 'simulations' : 'nodes'}`),
    h('thead', {}, h('tr', {}, ...columns.map((text) => h('th', { scope: 'col' }, text)))),
    h(
      'tbody',
      {},
      ...lines.map((thought) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, thought.line[0]?.san),
          h('td', {}, score(thought.score, turn)),
          ...(isTree
            ? [h('td', {}, count(thought.visits ?? 0)), h('td', {}, percent(thought.prior ?? 0))]
            : [h('td', {}, String(thought.depth))]),
          h('td', { class: 'line-cell' }, thought.line.slice(1, 7).map((move) => move.san).join(' ')),
        ),
      ),
    ),
  );
}

/** The moves where the game turned. */
function turns(game: Game, verdicts: Verdict[]): HTMLElement {
  const values = verdicts.map(({ value }) => value);
  const firstIsWhite = game.start.split(' ')[1] !== 'b';
  const found = turningPoints(values, firstIsWhite);
  if (found.length === 0) return h('p', {}, 'No single move turned this game.');
  return h(
    'ul',
    {},
    ...found.map((ply) => {
      const text = numbered([game.plies[ply - 1] as Ply], game.plies[ply - 2]?.fen ?? game.start);
      const [before, after] = [values[ply - 1] ?? 0, values[ply] ?? 0];
      const best = verdicts[ply - 1]?.best?.san;
      return h('li', {}, h('strong', {}, text), `: White’s expectation went from ${signed(before)} to ${signed(after)}`, best !== undefined && `; ${best} was better`, '.');
    }),
  );
}
