// Three-piece endgames: learned values of every square beside tablebase values.

import { failure, get } from '../api';
import type { Ending, EndingMove, EndingPosition, ValueMap } from '../api';
import { field, h, replace, select } from '../dom';
import { count, signed } from '../format';
import { Board } from '../part/board';
import { HeatBoard, symbols } from '../part/heat';
import { Poll } from '../part/poll';

const PAUSE = 5000;
const NEWEST = 'newest';

const names: Record<string, string> = {
  K: 'White’s king', k: 'Black’s king', R: 'White’s rook', Q: 'White’s queen', P: 'White’s pawn',
};
/** Initial squares of the pieces. */
const initialSquares: Record<string, string> = { K: 'e3', k: 'e6', R: 'd4', Q: 'd4', P: 'd4' };

export function endgamePage(root: HTMLElement, _: string[], query: URLSearchParams): () => void {
  const control = new AbortController();
  const problem = h('div');
  const body = h('div', {}, h('p', { class: 'hint' }, 'Loading…'));
  root.append(
    h('h1', {}, 'Endgame'),
    h(
      'p',
      { class: 'lead' },
      'Endgames this small can be solved: a tablebase contains the exact result of every position and the number of moves to mate. Here you can compare it with what a run has learned by playing against itself. Two pieces are fixed, and the third is tried on every square.',
    ),
    problem,
    body,
  );
  let leave: (() => void) | null = null;
  // Repeats until there is an endgame: a training may just have been started.
  const poll = new Poll(async () => {
    try {
      const endings = await get<Ending[]>('/api/endgames', control.signal);
      replace(problem);
      if (endings.length === 0) {
        replace(body, nothing());
        return;
      }
      poll.stop();
      replace(body);
      leave = picture(body, problem, endings, query.get('run'), control.signal);
    } catch (error) {
      replace(body);
      replace(problem, failure(error));
    }
  }, PAUSE);
  return () => {
    control.abort();
    poll.stop();
    leave?.();
  };
}

function nothing(): HTMLElement {
  return h(
    'div',
    { class: 'card empty' },
    h('h2', {}, 'No endgame has been trained yet'),
    h('p', {}, 'Train one of the learners krk (king and rook against king), kqk (king and queen) or kpk (king and pawn). A few minutes are enough to see a difference.'),
    h('a', { class: 'button primary', href: '#/runs' }, 'Go to the runs'),
  );
}

function picture(root: HTMLElement, problem: HTMLElement, endings: Ending[], wanted: string | null, signal: AbortSignal): () => void {
  const run = select(endings.map(({ run: name, ending }) => [name, `${name} (${ending})`]), wanted ?? undefined);
  const step = select([]);
  const roaming = select([]);
  const squares = h('div', { class: 'columns' });
  const turn = select([['white', 'White'], ['black', 'Black']]);
  const mean = h('p', { role: 'status' });
  const detail = h('div', { class: 'ending-detail' });
  const board = new Board('The position', { isPicture: true });
  const choose = (square: string): void => {
    chosen = square;
    boards.forEach((entry) => entry.mark(square));
    void look();
  };
  const learned = new HeatBoard('Learned', 'the network’s expected result for White', choose);
  const tablebase = new HeatBoard('Tablebase', 'the result of best play for White', choose);
  const difference = new HeatBoard('Difference', 'learned minus tablebase; blue: too optimistic', choose);
  const boards = [learned, tablebase, difference];
  let inputs = new Map<string, HTMLInputElement>();
  let chosen: string | null = null;
  let map: ValueMap | null = null;

  const ending = (): Ending => endings.find((entry) => entry.run === run.value) ?? (endings[0] as Ending);
  const chooseRun = (): void => {
    const { pieces, steps } = ending();
    replace(step, h('option', { value: NEWEST }, 'newest'), ...steps.slice().reverse().map((value) => h('option', { value: String(value) }, `step ${count(value)}`)));
    const [, weak = 'k'] = pieces;
    const kept = pieces.includes(roaming.value) ? roaming.value : weak;
    replace(roaming, ...pieces.map((piece) => h('option', { value: piece, selected: piece === kept }, names[piece] ?? piece)));
    choosePiece();
  };
  const choosePiece = (): void => {
    const before = inputs;
    inputs = new Map();
    for (const piece of ending().pieces.filter((other) => other !== roaming.value)) {
      const input = h('input', { type: 'text', required: true, pattern: '[a-h][1-8]', maxlength: 2, autocomplete: 'off', spellcheck: 'false' });
      input.value = before.get(piece)?.value ?? initialSquares[piece] ?? 'a1';
      input.addEventListener('change', () => void draw());
      inputs.set(piece, input);
    }
    replace(squares, ...[...inputs].map(([piece, input]) => field(`${names[piece] ?? piece} on`, input)));
    chosen = null;
    boards.forEach((entry) => entry.mark(null));
    replace(detail, h('p', { class: 'hint' }, 'Choose a square to see the position and its moves.'));
    void draw();
  };
  run.addEventListener('change', chooseRun);
  roaming.addEventListener('change', choosePiece);
  for (const input of [step, turn]) input.addEventListener('change', () => void draw());

  /** The query parameters, with the third piece on a square or without it. */
  const asked = (square: string | null): string => {
    const pieces = [...inputs].map(([piece, input]) => `${piece}${input.value.trim().toLowerCase()}`);
    const parameters = new URLSearchParams({ turn: turn.value });
    if (step.value !== NEWEST) parameters.set('step', step.value);
    if (square !== null) {
      pieces.push(`${roaming.value}${square}`);
      // Use the network shown on the boards, even if there is a newer one.
      if (map !== null) parameters.set('step', String(map.step));
    }
    parameters.set('place', pieces.join(','));
    return parameters.toString();
  };
  const address = (rest: string): string => `/api/endgames/${encodeURIComponent(run.value)}/${rest}`;

  const draw = async (): Promise<void> => {
    try {
      map = await get<ValueMap>(address(`values?${asked(null)}`), signal);
      replace(problem);
    } catch (error) {
      replace(problem, failure(error));
      return;
    }
    const { learned: found, tablebase: known, plies, error, step: shown } = map;
    const pieces = new Map([...inputs].map(([piece, input]) => [input.value.trim().toLowerCase(), piece]));
    const index = (square: string): number => 'abcdefgh'.indexOf(square.charAt(0)) + 8 * (Number(square.charAt(1)) - 1);
    const percent = (value: number): string => String(Math.round(100 * value)).replace('-', '−');
    learned.show({ values: found, pieces, text: percent, describe: () => 'learned' });
    tablebase.show({
      values: known,
      pieces,
      text: percent,
      describe: (square, value) => `tablebase, ${distance(plies[index(square)] ?? null, value)}`,
    });
    const apart = found.map((value, place) => {
      const right = known[place] ?? null;
      return value === null || right === null ? null : value - right;
    });
    difference.show({ values: apart, pieces, text: percent, describe: () => 'difference' });
    const total = known.filter((value) => value !== null).length;
    replace(mean, h('strong', {}, `Mean error ${error.toFixed(3)}`), ` over ${total} positions, at step ${count(shown)}. 100 is a win, 0 a draw; each ply to mate makes a win worth ${((1 - map.discount) * 100).toFixed(0)}\u00a0% less.`);
    if (chosen !== null) await look();
  };

  const look = async (): Promise<void> => {
    const square = chosen;
    if (square === null) return;
    try {
      const position = await get<EndingPosition>(address(`position?${asked(square)}`), signal);
      if (square !== chosen) return;
      replace(detail, h('div', { class: 'ending-board' }, board.element), h('div', {}, ...positionView(roaming.value, square, position)));
      board.placed();
      board.show({ fen: position.fen, lastMove: null });
      const best = position.moves.filter(({ is_best: isBest }) => isBest).map(({ uci }) => ({ uci, brush: 'green' }));
      const favourite = position.moves.reduce<EndingMove | null>((most, move) => (most === null || better(move, most, position.turn) ? move : most), null);
      board.arrows([...best, ...(favourite === null ? [] : [{ uci: favourite.uci, brush: 'blue' }])]);
    } catch (error) {
      replace(detail, failure(error));
    }
  };

  root.append(
    h(
      'form',
      { class: 'card', onsubmit: (event: Event) => { event.preventDefault(); void draw(); } },
      h('div', { class: 'columns' }, field('Run', run), field('Checkpoint', step), field('Piece on every square', roaming), field('To move', turn)),
      squares,
    ),
    mean,
    h('div', { class: 'heat-boards' }, ...boards.map((entry) => entry.element)),
    detail,
  );
  chooseRun();
  // A training run has a newer network from time to time.
  const poll = new Poll(async () => {
    if (document.hidden || step.value !== NEWEST) return;
    // There was no checkpoint yet.
    if (map === null) return draw();
    try {
      const newer = await get<ValueMap>(address(`values?${asked(null)}`), signal);
      if (newer.step !== map.step) await draw();
    } catch {
      // Errors are shown when the user chooses something.
    }
  }, PAUSE);
  return () => {
    poll.stop();
    board.close();
  };
}

/** Whether the network prefers a move to another, for the side that plays it. */
function better(move: EndingMove, other: EndingMove, turn: 'white' | 'black'): boolean {
  return turn === 'white' ? move.learned > other.learned : move.learned < other.learned;
}

/** `White mates in 7 moves`. */
function distance(plies: number | null, tablebase: number): string {
  if (plies === null || tablebase === 0) return 'a draw';
  const side = tablebase > 0 ? 'White' : 'Black';
  if (plies === 0) return `${side} has given mate`;
  const moves = Math.ceil(plies / 2);
  return `${side} mates in ${moves} ${moves === 1 ? 'move' : 'moves'}`;
}

function positionView(piece: string, square: string, position: EndingPosition): HTMLElement[] {
  const { learned, tablebase, plies, moves, outcome, turn } = position;
  const sorted = moves.slice().sort((a, b) => Number(b.is_best) - Number(a.is_best) || (turn === 'white' ? b.tablebase - a.tablebase : a.tablebase - b.tablebase));
  return [
    h('h2', {}, `${symbols[piece] ?? piece} on ${square}, ${turn === 'white' ? 'White' : 'Black'} to move`),
    h('p', {}, h('strong', {}, `Learned ${signed(learned)}, tablebase ${signed(tablebase)}`), `: ${distance(plies, tablebase)}.`),
    outcome !== null
      ? h('p', { class: 'hint' }, `The game is over: ${outcome.reason}.`)
      : h(
          'table',
          { class: 'numbers' },
          h('caption', {}, 'Moves, best first; values are for White'),
          h('thead', {}, h('tr', {}, ...['Move', 'Tablebase', 'Learned', 'Result'].map((text) => h('th', { scope: 'col' }, text)))),
          h(
            'tbody',
            {},
            ...sorted.map((move) =>
              h(
                'tr',
                { class: move.is_best ? 'chosen' : null },
                h('th', { scope: 'row' }, move.san),
                h('td', {}, signed(move.tablebase)),
                h('td', {}, signed(move.learned)),
                h('td', {}, distance(move.plies, move.tablebase)),
              ),
            ),
          ),
        ),
    h('p', { class: 'hint' }, 'Green arrows show the best moves, the blue arrow the network’s favourite.'),
  ];
}
