// A game against any player: by mouse, by keyboard, with hints, takeback and a review after it.
//
// The game changes only when the server has accepted the change: what is refused leaves it as it was.

import { failure, post, stream } from '../api';
import type { Choice, Effort, Game, PlayerInfo, Ply, Position, Side, Thought, Verdict } from '../api';
import { announce, field, h, replace, select } from '../dom';
import { numbered, signed } from '../format';
import { ask } from '../part/ask';
import { Board } from '../part/board';
import { EvalBar } from '../part/evalbar';
import { turningPoints } from '../part/evalgraph';
import { PlayerChoice } from '../part/opponent';
import { Replay } from '../part/replay';
import { saveGame, savedGame } from '../part/saved';
import type { SavedGame } from '../part/saved';
import { ranked, takeThought, thoughtTable, withPlayed } from '../part/thoughts';

const HINT: Effort = { movetime_ms: 600 };
const JUDGE = 'default';
const REVIEW: Effort = { movetime_ms: 80 };
/** Lines of the opponent's thoughts. */
const LINES = 4;

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

export function playPage(root: HTMLElement, _: string[], query: URLSearchParams): () => void {
  const saved = savedGame();
  const board = new Board('The game');
  const bar = new EvalBar();
  const wanted = (name: string, known: string | null | undefined): string => query.get(name) ?? known ?? '';
  const opponent = new PlayerChoice('Opponent', { wanted: wanted('player', saved?.rival) });
  const strength = select(strengths, saved === null ? 'movetime_ms:500' : paceText(saved.pace));
  const side = select([['white', 'White'], ['black', 'Black'], ['random', 'either']], wanted('side', saved?.human));
  const fen = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: 200, placeholder: 'the usual start' });
  fen.value = query.toString() === '' ? (saved?.start ?? '') : wanted('fen', null);
  const typed = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: 20, 'data-test': 'move' });
  const showThoughts = h('input', { type: 'checkbox', id: 'show-thoughts', checked: true });
  const problem = h('div');
  const warning = h('p', { class: 'hint', role: 'status', hidden: true });
  const refusal = h('div');
  const status = h('p', { class: 'game-status', role: 'status' });
  const moves = h('p', { class: 'move-text', tabindex: 0, role: 'region', 'aria-label': 'Moves' });
  const thoughts = h('div');
  const review = h('div');

  let game: SavedGame | null = null;
  /** The game of this tab until it is on the board; the server may not answer. */
  let unrestored = saved;
  let position: Position | null = null;
  /** Ends what is going on in this position; `leaving` ends everything. */
  let control = new AbortController();
  const leaving = new AbortController();
  /** A hint, or the opponent's thoughts after its move: neither is part of the game. */
  let beside: AbortController | null = null;
  let attempts = 0;
  let replay: Replay | null = null;

  const effort = (): Effort => {
    const [key, value] = strength.value.split(':');
    return key === '' || value === undefined ? {} : { [key as string]: Number(value) };
  };
  const line = (of: SavedGame): { fen: string | null; moves: string[] } => ({ fen: of.start, moves: of.played });
  const result = (): string | null => position?.outcome?.result ?? game?.resigned ?? null;
  const rival = (): string => (game ?? unrestored)?.rival ?? '';
  /** Whether there is a game that somebody would miss. */
  const isUnderWay = (): boolean => {
    const at = game ?? unrestored;
    if (at === null || at.resigned !== null || result() !== null) return false;
    const first: Side = (position?.start ?? at.start)?.split(' ')[1] === 'b' ? 'black' : 'white';
    return at.played.length > (at.human === first ? 0 : 1);
  };
  /** Says what went wrong. `again` and `goOn` are offered when nothing else goes on. */
  const fail = (error: unknown, again?: () => void, goOn?: () => void): void => {
    // The buttons go with the message: a second click must not do it twice.
    const offer = (label: string, act: (() => void) | undefined): HTMLElement | false =>
      act !== undefined && h('button', { type: 'button', onclick: () => { replace(problem); act(); } }, label);
    replace(problem, failure(error), offer('Try again', again), ' ', offer('Let the opponent move', goOn));
  };

  const closeReview = (): void => {
    replay?.close();
    replay = null;
    replace(review);
  };

  /** Ends searches for the position. */
  const interrupt = (): void => {
    beside?.abort();
    control.abort();
    control = new AbortController();
  };

  /** Begins the game of the form, once the server has accepted its position and its player. */
  const begin = async (): Promise<void> => {
    attempts += 1;
    const attempt = attempts;
    replace(refusal);
    const chosen = side.value === 'random' ? (Math.random() < 0.5 ? 'white' : 'black') : side.value;
    const next: SavedGame = {
      start: fen.value.trim() === '' ? null : fen.value.trim(),
      played: [],
      human: chosen as Side,
      rival: opponent.value,
      pace: effort(),
      searchesTree: false,
      seed: Math.floor(Math.random() * 2 ** 31),
      resigned: null,
      values: [],
    };
    try {
      const [found, player] = await Promise.all([
        post<Position>('/api/position', line(next), leaving.signal),
        post<PlayerInfo>('/api/player', { player: next.rival, effort: next.pace }, leaving.signal),
      ]);
      if (attempt !== attempts) return;
      const question = `The game against ${rival()} is not over. Give it up for a new one?`;
      if (isUnderWay() && !(await ask(question, 'Begin a new game', 'Go on with this one'))) return;
      next.searchesTree = player.searches_tree;
      open(next, found);
    } catch (error) {
      if (attempt !== attempts) return;
      replace(refusal, failure(error));
      if (game === null) status.textContent = 'There is no game yet.';
    }
  };

  /** Shows a game from here on. */
  const open = (next: SavedGame, found: Position): void => {
    // The address has had its effect: reloading brings this game back.
    history.replaceState(null, '', '#/play');
    interrupt();
    replace(problem);
    replace(thoughts);
    warning.hidden = true;
    closeReview();
    game = next;
    unrestored = null;
    turn(next.human);
    enter(found);
  };

  /** Goes on with the game of this tab; false if it could not be put on the board. */
  const restore = async (old: SavedGame): Promise<boolean> => {
    try {
      const found = await post<Position>('/api/position', line(old), leaving.signal);
      // A new game has begun meanwhile.
      if (game !== null) return false;
      open(old, found);
      return true;
    } catch (error) {
      if (game === null) fail(error, () => void start());
      return false;
    }
  };

  const start = async (): Promise<void> => {
    if (saved !== null && !(await restore(saved))) return;
    // An address with a player or a position wants a new game; that of the tab is kept until it is given up.
    if (saved === null || query.toString() !== '') await begin();
  };

  const turn = (below: Side): void => {
    board.turn(below);
    bar.turn(below);
  };

  /** Goes to the position after these moves, once the server has accepted them. */
  const go = async (played: string[], resigned: string | null = null): Promise<void> => {
    if (game === null) return;
    const { signal } = control;
    const next: SavedGame = { ...game, played, resigned, values: game.values.slice(0, played.length + 1) };
    try {
      const found = await post<Position>('/api/position', line(next), signal);
      game = next;
      enter(found);
    } catch (error) {
      if (signal.aborted) return;
      // The piece goes back to where it was.
      if (position !== null) show(position);
      // Taking back and resigning have ended the opponent's search.
      const isRivalsTurn = result() === null && position !== null && position.turn !== game.human;
      if (isRivalsTurn) status.textContent = `It is the turn of ${rival()}.`;
      fail(error, () => void go(played, resigned), isRivalsTurn ? () => void engineMove() : undefined);
    }
  };

  /** Ends a hint and clears what it has shown: it is of no use in the next position. */
  const dropHint = (): void => {
    beside?.abort();
    replace(thoughts);
  };

  /** The position is there: shows it and goes on. */
  const enter = (found: Position): void => {
    if (game === null) return;
    // A hint may have been asked for while the move was on its way.
    dropHint();
    position = found;
    saveGame(game);
    replace(problem);
    show(found);
    showBar();
    if (result() !== null) over();
    else if (found.turn !== game.human) void engineMove();
  };

  const show = (found: Position): void => {
    const last = found.played.at(-1)?.uci ?? null;
    board.show({ fen: found.fen, lastMove: last, check: found.check });
    board.arrows([]);
    // Word by word, or the browser would break O-O in two.
    const words = numbered(found.played, found.start).split(' ').filter(Boolean);
    replace(moves, ...(words.length === 0 ? ['No move yet.'] : words.flatMap((word) => [h('span', {}, word), ' '])));
    if (result() === null && found.turn === game?.human) {
      status.textContent = found.check ? 'Check! Your move.' : 'Your move.';
      board.allow(found.legal, (uci) => void humanMove(uci));
    }
  };

  /** The result once there is one, else the newest judgement of this line. */
  const showBar = (): void => {
    const ended = result();
    const known = game?.values.slice(0, game.played.length + 1) ?? [];
    const newest = known.findLast((value) => typeof value === 'number') ?? null;
    bar.show(ended === null ? newest : ended === '1-0' ? 1 : ended === '0-1' ? -1 : 0);
  };

  /** Remembers what the side to move expects after so many moves. */
  const judge = (of: SavedGame, ply: number, value: number | null, mover: Side): void => {
    if (value === null) return;
    while (of.values.length < ply) of.values.push(null);
    of.values[ply] = mover === 'white' ? value : -value;
    showBar();
  };

  const humanMove = async (uci: string): Promise<void> => {
    dropHint();
    await go([...(game?.played ?? []), uci]);
  };

  const engineMove = async (): Promise<void> => {
    if (game === null || position === null) return;
    const [at, from, { signal }] = [game, position, control];
    const mover = from.turn;
    const round = new Map<number, Thought>();
    let chosen: Choice | null = null;
    status.textContent = `${at.rival} thinks…`;
    try {
      // Alpha-beta plays weaker when it has to find several lines: those are asked for afterwards.
      const lines = at.searchesTree ? LINES : 1;
      await stream<Thought | Choice>(
        '/api/think',
        { ...line(at), player: at.rival, effort: at.pace, lines, seed: at.seed },
        (message) => {
          if (message.kind === 'choice') chosen = message;
          else {
            takeThought(round, message);
            if (message.rank === 1) judge(at, at.played.length, message.value, mover);
            if (showThoughts.checked) showLines(ranked(round), mover, `${at.rival} thinks`);
          }
        },
        signal,
      );
      if (chosen === null) throw new Error(`${at.rival} gave no move.`);
    } catch (error) {
      if (signal.aborted) return;
      status.textContent = `${at.rival} has no move.`;
      fail(error, () => void go(at.played));
      return;
    }
    if (signal.aborted) return;
    // The stream has filled it in a callback, which the compiler does not see.
    const choice = chosen as Choice;
    judge(at, at.played.length, choice.value, mover);
    warning.hidden = choice.warning === undefined;
    warning.textContent = choice.warning ?? '';
    announce(`${at.rival} plays ${choice.played.san}`);
    await go([...at.played, choice.played.uci]);
    if (signal.aborted || game?.played.length !== at.played.length + 1) return;
    judge(game, game.played.length, choice.value, mover);
    saveGame(game);
    if (showThoughts.checked && choice.score !== null) void think(at, from, choice, ranked(round));
  };

  /** Shows what the opponent thought, and looks for the other lines of one that knows only one. */
  const think = async (at: SavedGame, from: Position, choice: Choice, lines: Thought[]): Promise<void> => {
    let whose = `${at.rival} before ${numbered([choice.played], from.fen)}`;
    const showThem = (found: Thought[]): void => {
      if (showThoughts.checked) replace(thoughts, thoughtTable(withPlayed(found, choice).slice(0, LINES), from.turn, whose, choice.played.uci));
    };
    showThem(lines);
    if (at.searchesTree || result() !== null) return;
    const asked = new AbortController();
    beside = asked;
    const round = new Map<number, Thought>();
    try {
      await stream<Thought | Choice>(
        '/api/think',
        // With another seed it is another player, so that the one that plays knows nothing of it.
        { ...line(at), player: at.rival, effort: at.pace, lines: LINES, seed: at.seed + 1 },
        (message) => {
          if (message.kind === 'thought') takeThought(round, message);
        },
        asked.signal,
      );
      whose += ', the others by a search of their own';
      showThem(ranked(round));
    } catch {
      // Nobody misses them: the game goes on.
    }
  };

  const showLines = (lines: Thought[], mover: Side, whose: string): void => {
    board.arrows(
      lines.map(({ line: [first] }, index) => ({
        uci: first?.uci ?? 'a1a1',
        brush: index === 0 ? 'blue' : 'paleBlue',
      })),
    );
    replace(thoughts, thoughtTable(lines, mover, whose));
  };
  showThoughts.addEventListener('change', () => {
    if (!showThoughts.checked) replace(thoughts);
  });

  const hint = async (): Promise<void> => {
    if (game === null || position === null || position.turn !== game.human || result() !== null) return;
    const [at, mover] = [game, position.turn];
    const round = new Map<number, Thought>();
    beside?.abort();
    const asked = new AbortController();
    beside = asked;
    status.textContent = 'Looking for a good move…';
    try {
      await stream<Thought | Choice>(
        '/api/think',
        { ...line(at), player: JUDGE, effort: HINT, lines: 3 },
        (message) => {
          if (message.kind !== 'thought') return;
          takeThought(round, message);
          const found = ranked(round);
          if (message.rank === 1) judge(at, at.played.length, message.value, mover);
          board.arrows(found.map(({ line: [first] }, index) => ({ uci: first?.uci ?? 'a1a1', brush: index === 0 ? 'green' : 'paleGreen' })));
          replace(thoughts, thoughtTable(found, mover, `Hint by ${JUDGE}`));
        },
        asked.signal,
      );
      if (game !== at) return;
      const best = round.get(1)?.line[0];
      status.textContent = best === undefined ? 'Your move.' : `Hint: ${best.san}`;
      saveGame(at);
    } catch (error) {
      if (asked.signal.aborted) return;
      status.textContent = 'Your move.';
      fail(error);
    }
  };

  const takeBack = async (): Promise<void> => {
    if (game === null) return;
    interrupt();
    closeReview();
    replace(thoughts);
    // Back to the last position in which it was the player's move.
    const back = position?.turn === game.human ? 2 : 1;
    await go(game.played.slice(0, Math.max(0, game.played.length - back)));
  };

  const resign = async (): Promise<void> => {
    if (game === null || result() !== null) return;
    if (!(await ask('Resign this game?', 'Resign', 'Go on'))) return;
    if (result() !== null) return;
    interrupt();
    await go(game.played, game.human === 'white' ? '0-1' : '1-0');
  };

  const over = (): void => {
    const reason = position?.outcome?.reason ?? 'resignation';
    const won = result() === (game?.human === 'white' ? '1-0' : '0-1');
    const lost = result() === (game?.human === 'white' ? '0-1' : '1-0');
    status.textContent = `${result()} by ${reason}. ${won ? 'You have won.' : lost ? 'You have lost.' : ''}`;
    replace(review, h('button', { type: 'button', class: 'primary', onclick: () => void openReview() }, 'Review the game'));
  };

  const openReview = async (): Promise<void> => {
    if (game === null) return;
    const at = game;
    const text = h('p', { class: 'hint', role: 'status' }, 'Looking at every position…');
    replace(review, text);
    const verdicts: Verdict[] = [];
    try {
      await stream<Verdict>('/api/review', { ...line(at), player: JUDGE, effort: REVIEW }, (verdict) => {
        verdicts.push(verdict);
        text.textContent = `Looking at every position: ${verdicts.length} of ${at.played.length + 1}`;
      }, control.signal);
      const whole = reviewed(verdicts);
      replay?.close();
      replay = new Replay();
      replace(review, h('h2', {}, 'Review'), turns(whole, verdicts), replay.element);
      // Where it turned first.
      replay.show(whole, turningPoints(verdicts.map(({ value }) => value), whole.start.split(' ')[1] !== 'b')[0] ?? 0);
    } catch (error) {
      replace(review, failure(error));
    }
  };

  /** The game with the judge's values. */
  const reviewed = (verdicts: Verdict[]): Game => {
    const plies = verdicts.flatMap(({ played: move, fen: after, check }, index): Ply[] =>
      move === null ? [] : [{ ...move, fen: after, check, value: verdicts[index - 1]?.value ?? null, draw: null, ms: null }],
    );
    const names = { white: 'You', black: rival() };
    return {
      number: 0,
      ...(game?.human === 'white' ? names : { white: names.black, black: names.white }),
      start: position?.start ?? '',
      plies,
      outcome: { result: result() ?? '*', reason: position?.outcome?.reason ?? 'resignation' },
      opening: null,
    };
  };

  const save = async (): Promise<void> => {
    if (game === null) return;
    const names = game.human === 'white' ? ['You', rival()] : [rival(), 'You'];
    const date = new Date().toISOString().slice(0, 10).replace(/-/g, '.');
    try {
      const text = await post<string>('/api/pgn', { ...line(game), white: names[0], black: names[1], date, result: result() });
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
    warning,
    h(
      'div',
      { class: 'play' },
      h('div', { class: 'play-board' }, bar.element, board.element),
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
          h('button', { type: 'button', onclick: () => turn(board.below === 'white' ? 'black' : 'white') }, 'Turn the board'),
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
              void begin();
            },
          },
          h('h2', {}, 'New game'),
          opponent.element,
          h('div', { class: 'columns' }, field('Strength', strength), field('You play', side)),
          field('From a position (FEN)', fen),
          refusal,
          h('button', { type: 'submit', class: 'primary' }, 'New game'),
        ),
      ),
    ),
    review,
  );
  void start();
  return () => {
    leaving.abort();
    interrupt();
    replay?.close();
    board.close();
  };
}

/** How long the opponent thinks, as the form writes it. */
function paceText(pace: Effort): string {
  const [found] = Object.entries(pace);
  return found === undefined ? '' : `${found[0]}:${found[1]}`;
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
      return h('li', {}, h('strong', {}, text), `: what White expects went from ${signed(before)} to ${signed(after)}`, best !== undefined && `; ${best} was better`, '.');
    }),
  );
}
