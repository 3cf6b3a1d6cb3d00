// A game against any player, with hints, takeback and a review.
//
// The game changes only after the server has accepted the change.

import { failure, post, stream } from '../api';
import type { Choice, Game, Limit, PlayerInfo, Ply, Position, SearchInfo, Side, Verdict } from '../api';
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
import { infoTable, ranked, takeInfo, withPlayed } from '../part/searchinfo';

const HINT: Limit = { movetime_ms: 600 };
const REVIEWER = 'default';
const REVIEW: Limit = { movetime_ms: 80 };
/** Lines of the opponent's search. */
const LINES = 4;

const strengths: [string, string][] = [
  ['sims:1', '1 simulation: the network without search'],
  ['sims:16', '16 simulations'],
  ['sims:100', '100 simulations'],
  ['sims:800', '800 simulations'],
  ['sims:6400', '6400 simulations'],
  ['movetime_ms:100', '0.1 s per move'],
  ['movetime_ms:500', '0.5 s per move'],
  ['movetime_ms:2000', '2 s per move'],
  ['movetime_ms:10000', '10 s per move'],
  ['', 'the player’s own limit'],
];

export function playPage(root: HTMLElement, _: string[], query: URLSearchParams): () => void {
  const saved = savedGame();
  const board = new Board('The game');
  const bar = new EvalBar();
  const wanted = (name: string, known: string | null | undefined): string => query.get(name) ?? known ?? '';
  const opponent = new PlayerChoice('Opponent', { wanted: wanted('player', saved?.opponent) });
  const strength = select(strengths, saved === null ? 'movetime_ms:500' : limitText(saved.limit));
  const side = select([['white', 'White'], ['black', 'Black'], ['random', 'random']], wanted('side', saved?.human));
  const fen = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: 200, placeholder: 'standard start position' });
  fen.value = query.toString() === '' ? (saved?.start ?? '') : wanted('fen', null);
  const typed = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: 20, 'data-test': 'move' });
  const showInfo = h('input', { type: 'checkbox', id: 'show-search', checked: true });
  const problem = h('div');
  const warning = h('p', { class: 'hint', role: 'status', hidden: true });
  const formError = h('div');
  const status = h('p', { class: 'game-status', role: 'status' });
  const moves = h('p', { class: 'move-text', tabindex: 0, role: 'region', 'aria-label': 'Moves' });
  const searchInfo = h('div');
  const review = h('div');

  let game: SavedGame | null = null;
  /** The saved game of this tab until it is on the board; the server may not answer. */
  let unrestored = saved;
  let position: Position | null = null;
  /** Aborts requests for this position; `leaving` aborts everything. */
  let control = new AbortController();
  const leaving = new AbortController();
  /** A hint or the opponent's lines after its move; neither is part of the game. */
  let beside: AbortController | null = null;
  let attempts = 0;
  let replay: Replay | null = null;

  const limit = (): Limit => {
    const [key, value] = strength.value.split(':');
    return key === '' || value === undefined ? {} : { [key as string]: Number(value) };
  };
  const line = (of: SavedGame): { fen: string | null; moves: string[] } => ({ fen: of.start, moves: of.played });
  const result = (): string | null => position?.outcome?.result ?? game?.resigned ?? null;
  const opponentName = (): string => (game ?? unrestored)?.opponent ?? '';
  /** Whether there is an unfinished game that the user would lose. */
  const isUnderWay = (): boolean => {
    const at = game ?? unrestored;
    if (at === null || at.resigned !== null || result() !== null) return false;
    const first: Side = (position?.start ?? at.start)?.split(' ')[1] === 'b' ? 'black' : 'white';
    return at.played.length > (at.human === first ? 0 : 1);
  };
  /** Shows an error with buttons to retry and to let the opponent move. */
  const fail = (error: unknown, again?: () => void, goOn?: () => void): void => {
    // The buttons disappear with the message, so that a second click has no effect.
    const offer = (label: string, act: (() => void) | undefined): HTMLElement | false =>
      act !== undefined && h('button', { type: 'button', onclick: () => { replace(problem); act(); } }, label);
    replace(problem, failure(error), offer('Try again', again), ' ', offer('Let the opponent move', goOn));
  };

  const closeReview = (): void => {
    replay?.close();
    replay = null;
    replace(review);
  };

  /** Aborts searches of this position. */
  const interrupt = (): void => {
    beside?.abort();
    control.abort();
    control = new AbortController();
  };

  /** Starts the game of the form after the server has accepted its position and player. */
  const begin = async (): Promise<void> => {
    attempts += 1;
    const attempt = attempts;
    replace(formError);
    const chosen = side.value === 'random' ? (Math.random() < 0.5 ? 'white' : 'black') : side.value;
    const next: SavedGame = {
      start: fen.value.trim() === '' ? null : fen.value.trim(),
      played: [],
      human: chosen as Side,
      opponent: opponent.value,
      limit: limit(),
      searchesTree: false,
      seed: Math.floor(Math.random() * 2 ** 31),
      resigned: null,
      values: [],
    };
    try {
      const [found, player] = await Promise.all([
        post<Position>('/api/position', line(next), leaving.signal),
        post<PlayerInfo>('/api/player', { player: next.opponent, limit: next.limit }, leaving.signal),
      ]);
      if (attempt !== attempts) return;
      const question = `The game against ${opponentName()} is not over. Start a new game anyway?`;
      if (isUnderWay() && !(await ask(question, 'Start a new game', 'Continue this game'))) return;
      next.searchesTree = player.searches_tree;
      open(next, found);
    } catch (error) {
      if (attempt !== attempts) return;
      replace(formError, failure(error));
      if (game === null) status.textContent = 'No game yet.';
    }
  };

  /** Switches to a game. */
  const open = (next: SavedGame, found: Position): void => {
    // The URL was used; reloading must restore this game.
    history.replaceState(null, '', '#/play');
    interrupt();
    replace(problem);
    replace(searchInfo);
    warning.hidden = true;
    closeReview();
    game = next;
    unrestored = null;
    turn(next.human);
    enter(found);
  };

  /** Restores the saved game of this tab; false if that failed. */
  const restore = async (old: SavedGame): Promise<boolean> => {
    try {
      const found = await post<Position>('/api/position', line(old), leaving.signal);
      // A new game was started meanwhile.
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
    // A URL with a player or a position starts a new game; the saved one is kept until the user agrees.
    if (saved === null || query.toString() !== '') await begin();
  };

  const turn = (below: Side): void => {
    board.turn(below);
    bar.turn(below);
  };

  /** Plays these moves after the server has accepted them. */
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
      // The piece goes back.
      if (position !== null) show(position);
      // Taking back and resigning have aborted the opponent's search.
      const isOpponentsTurn = result() === null && position !== null && position.turn !== game.human;
      if (isOpponentsTurn) status.textContent = `It is ${opponentName()}’s turn.`;
      fail(error, () => void go(played, resigned), isOpponentsTurn ? () => void engineMove() : undefined);
    }
  };

  /** Aborts and clears a hint, which belongs to the previous position. */
  const dropHint = (): void => {
    beside?.abort();
    replace(searchInfo);
  };

  /** Shows a new position and continues the game. */
  const enter = (found: Position): void => {
    if (game === null) return;
    // A hint may have been requested while the move was being sent.
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
    // Word by word, so that the browser does not break O-O.
    const words = numbered(found.played, found.start).split(' ').filter(Boolean);
    replace(moves, ...(words.length === 0 ? ['No moves yet.'] : words.flatMap((word) => [h('span', {}, word), ' '])));
    if (result() === null && found.turn === game?.human) {
      status.textContent = found.check ? 'Check! Your move.' : 'Your move.';
      board.allow(found.legal, (uci) => void humanMove(uci));
    }
  };

  /** The result if there is one, otherwise the newest evaluation of this game. */
  const showBar = (): void => {
    const ended = result();
    const known = game?.values.slice(0, game.played.length + 1) ?? [];
    const newest = known.findLast((value) => typeof value === 'number') ?? null;
    bar.show(ended === null ? newest : ended === '1-0' ? 1 : ended === '0-1' ? -1 : 0);
  };

  /** Stores the evaluation of the side to move after `ply` moves. */
  const setValue = (of: SavedGame, ply: number, value: number | null, mover: Side): void => {
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
    const round = new Map<number, SearchInfo>();
    let chosen: Choice | null = null;
    status.textContent = `${at.opponent} is thinking…`;
    try {
      // Alpha-beta plays weaker when it searches several lines; they are requested after its move.
      const lines = at.searchesTree ? LINES : 1;
      await stream<SearchInfo | Choice>(
        '/api/search',
        { ...line(at), player: at.opponent, limit: at.limit, lines, seed: at.seed },
        (message) => {
          if (message.kind === 'choice') chosen = message;
          else {
            takeInfo(round, message);
            if (message.rank === 1) setValue(at, at.played.length, message.value, mover);
            if (showInfo.checked) showLines(ranked(round), mover, at.opponent);
          }
        },
        signal,
      );
      if (chosen === null) throw new Error(`${at.opponent} did not return a move.`);
    } catch (error) {
      if (signal.aborted) return;
      status.textContent = `${at.opponent} did not move.`;
      fail(error, () => void go(at.played));
      return;
    }
    if (signal.aborted) return;
    // Set in the callback of the stream, which the compiler does not see.
    const choice = chosen as Choice;
    setValue(at, at.played.length, choice.value, mover);
    warning.hidden = choice.warning === undefined;
    warning.textContent = choice.warning ?? '';
    announce(`${at.opponent} plays ${choice.played.san}`);
    await go([...at.played, choice.played.uci]);
    if (signal.aborted || game?.played.length !== at.played.length + 1) return;
    setValue(game, game.played.length, choice.value, mover);
    saveGame(game);
    if (showInfo.checked && choice.score !== null) void showSearch(at, from, choice, ranked(round));
  };

  /** Shows the opponent's lines. If its search has only one, a second search finds the others. */
  const showSearch = async (at: SavedGame, from: Position, choice: Choice, lines: SearchInfo[]): Promise<void> => {
    let whose = `${at.opponent} before ${numbered([choice.played], from.fen)}`;
    const showThem = (found: SearchInfo[]): void => {
      if (showInfo.checked) replace(searchInfo, infoTable(withPlayed(found, choice).slice(0, LINES), from.turn, whose, choice.played.uci));
    };
    showThem(lines);
    if (at.searchesTree || result() !== null) return;
    const asked = new AbortController();
    beside = asked;
    const round = new Map<number, SearchInfo>();
    try {
      await stream<SearchInfo | Choice>(
        '/api/search',
        // Another seed means another player instance, so that the opponent itself is not affected.
        { ...line(at), player: at.opponent, limit: at.limit, lines: LINES, seed: at.seed + 1 },
        (message) => {
          if (message.kind === 'info') takeInfo(round, message);
        },
        asked.signal,
      );
      whose += '; other lines from a separate search';
      showThem(ranked(round));
    } catch {
      // The lines are optional.
    }
  };

  const showLines = (lines: SearchInfo[], mover: Side, whose: string): void => {
    board.arrows(
      lines.map(({ line: [first] }, index) => ({
        uci: first?.uci ?? 'a1a1',
        brush: index === 0 ? 'blue' : 'paleBlue',
      })),
    );
    replace(searchInfo, infoTable(lines, mover, whose));
  };
  showInfo.addEventListener('change', () => {
    if (!showInfo.checked) replace(searchInfo);
  });

  const hint = async (): Promise<void> => {
    if (game === null || position === null || position.turn !== game.human || result() !== null) return;
    const [at, mover] = [game, position.turn];
    const round = new Map<number, SearchInfo>();
    beside?.abort();
    const asked = new AbortController();
    beside = asked;
    status.textContent = 'Searching for a good move…';
    try {
      await stream<SearchInfo | Choice>(
        '/api/search',
        { ...line(at), player: REVIEWER, limit: HINT, lines: 3 },
        (message) => {
          if (message.kind !== 'info') return;
          takeInfo(round, message);
          const found = ranked(round);
          if (message.rank === 1) setValue(at, at.played.length, message.value, mover);
          board.arrows(found.map(({ line: [first] }, index) => ({ uci: first?.uci ?? 'a1a1', brush: index === 0 ? 'green' : 'paleGreen' })));
          replace(searchInfo, infoTable(found, mover, `Hint by ${REVIEWER}`));
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
    replace(searchInfo);
    // Back to the last position where the user was to move.
    const back = position?.turn === game.human ? 2 : 1;
    await go(game.played.slice(0, Math.max(0, game.played.length - back)));
  };

  const resign = async (): Promise<void> => {
    if (game === null || result() !== null) return;
    if (!(await ask('Resign this game?', 'Resign', 'Keep playing'))) return;
    if (result() !== null) return;
    interrupt();
    await go(game.played, game.human === 'white' ? '0-1' : '1-0');
  };

  const over = (): void => {
    const reason = position?.outcome?.reason ?? 'resignation';
    const won = result() === (game?.human === 'white' ? '1-0' : '0-1');
    const lost = result() === (game?.human === 'white' ? '0-1' : '1-0');
    status.textContent = `${result()} by ${reason}. ${won ? 'You won.' : lost ? 'You lost.' : ''}`;
    replace(review, h('button', { type: 'button', class: 'primary', onclick: () => void openReview() }, 'Review the game'));
  };

  const openReview = async (): Promise<void> => {
    if (game === null) return;
    const at = game;
    const text = h('p', { class: 'hint', role: 'status' }, 'Reviewing every position…');
    replace(review, text);
    const verdicts: Verdict[] = [];
    try {
      await stream<Verdict>('/api/review', { ...line(at), player: REVIEWER, limit: REVIEW }, (verdict) => {
        verdicts.push(verdict);
        text.textContent = `Reviewing every position: ${verdicts.length} of ${at.played.length + 1}`;
      }, control.signal);
      const whole = reviewed(verdicts);
      replay?.close();
      replay = new Replay();
      replace(review, h('h2', {}, 'Review'), turns(whole, verdicts), replay.element);
      // At the first turning point.
      replay.show(whole, turningPoints(verdicts.map(({ value }) => value), whole.start.split(' ')[1] !== 'b')[0] ?? 0);
    } catch (error) {
      replace(review, failure(error));
    }
  };

  /** The game with the reviewer's values. */
  const reviewed = (verdicts: Verdict[]): Game => {
    const plies = verdicts.flatMap(({ played: move, fen: after, check }, index): Ply[] =>
      move === null ? [] : [{ ...move, fen: after, check, value: verdicts[index - 1]?.value ?? null, draw: null, ms: null }],
    );
    const names = { white: 'You', black: opponentName() };
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
    const names = game.human === 'white' ? ['You', opponentName()] : [opponentName(), 'You'];
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
              else status.textContent = `'${typed.value}' is not a legal move.`;
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
          h('button', { type: 'button', onclick: () => turn(board.below === 'white' ? 'black' : 'white') }, 'Flip the board'),
          h('button', { type: 'button', onclick: () => void resign() }, 'Resign'),
          h('button', { type: 'button', onclick: () => void save() }, 'Save as PGN'),
        ),
        moves,
        h('div', { class: 'row' }, showInfo, h('label', { for: 'show-search' }, 'Show the opponent’s search')),
        searchInfo,
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
          field('Start position (FEN)', fen),
          formError,
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

/** The opponent's limit as a value of the form. */
function limitText(limit: Limit): string {
  const [found] = Object.entries(limit);
  return found === undefined ? '' : `${found[0]}:${found[1]}`;
}

/** The moves where the game turned. */
function turns(game: Game, verdicts: Verdict[]): HTMLElement {
  const values = verdicts.map(({ value }) => value);
  const firstIsWhite = game.start.split(' ')[1] !== 'b';
  const found = turningPoints(values, firstIsWhite);
  if (found.length === 0) return h('p', {}, 'No single move decided this game.');
  return h(
    'ul',
    {},
    ...found.map((ply) => {
      const text = numbered([game.plies[ply - 1] as Ply], game.plies[ply - 2]?.fen ?? game.start);
      const [before, after] = [values[ply - 1] ?? 0, values[ply] ?? 0];
      const best = verdicts[ply - 1]?.best?.san;
      return h('li', {}, h('strong', {}, text), `: White’s expected result went from ${signed(before)} to ${signed(after)}`, best !== undefined && `; ${best} was better`, '.');
    }),
  );
}
