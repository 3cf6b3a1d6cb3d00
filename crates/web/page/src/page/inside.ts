// Inside a search: how it changes with the number of simulations, PUCT beside Gumbel, priors or visits
// on the board, and the tree node by node.

import { failure, get, post, stream } from '../api';
import type { Branch, Position, Proof, Ready, Side, Snapshot, TreeNode } from '../api';
import { field, h, replace, select } from '../dom';
import { count, percent, signed } from '../format';
import { Board } from '../part/board';
import { PlayerChoice } from '../part/opponent';

type Rule = 'puct' | 'gumbel';

const rules: Record<Rule, { title: string; hint: string }> = {
  puct: { title: 'PUCT', hint: 'visits the moves with the best mix of value and prior; plays the most visited move' },
  gumbel: { title: 'Gumbel', hint: 'gives a few candidates equal visits and drops the worse half after each round' },
};

export function insidePage(root: HTMLElement, _: string[], query: URLSearchParams): () => void {
  const player = new PlayerChoice('Player to inspect', { wanted: query.get('player'), onlyTrees: true });
  const sims = select(['64', '256', '1024', '4096', '16384'].map((text) => [text, count(Number(text))]), '1024');
  const fen = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: 200, placeholder: 'standard start position' });
  fen.value = query.get('fen') ?? '';
  const colour = select([['prior', 'priors'], ['visits', 'visits'], ['none', 'nothing']]);
  const slider = h('input', { type: 'range', min: 0, max: 0, value: 0, step: 1 });
  const shownSims = h('output', {});
  const problem = h('div');
  const board = new Board('The position');
  const columns: Record<Rule, Column> = { puct: new Column('puct'), gumbel: new Column('gumbel') };
  let moves: string[] = [];
  let position: Position | null = null;
  let control = new AbortController();

  const fail = (error: unknown): void => replace(problem, failure(error));
  const line = (): { fen: string | null; moves: string[] } => ({ fen: fen.value.trim() || null, moves });

  /** Shows the position; false if it is invalid. */
  const update = async (): Promise<boolean> => {
    try {
      position = await post<Position>('/api/position', line(), control.signal);
      replace(problem);
    } catch (error) {
      fail(error);
      return false;
    }
    board.show({ fen: position.fen, lastMove: position.played.at(-1)?.uci ?? null, check: position.check });
    board.allow(position.legal, (uci) => {
      moves = [...moves, uci];
      void update();
    });
    board.arrows([]);
    board.heat(new Map());
    return true;
  };

  const search = async (): Promise<void> => {
    control.abort();
    const mine = new AbortController();
    control = mine;
    if (!(await update()) || position === null) return;
    if (position.outcome !== null) {
      replace(problem, h('p', { class: 'problem' }, 'The game is over in this position: there is nothing to search.'));
      return;
    }
    const { turn } = position;
    const grow = async (rule: Rule): Promise<void> => {
      const column = columns[rule];
      column.clear(turn);
      const request = { ...line(), player: player.value, root: rule, sims: Number(sims.value) };
      await stream<Snapshot | Ready>(
        '/api/inside',
        request,
        (message) => {
          if (message.kind === 'ready') column.open(message.tree);
          else {
            column.add(message);
            slider.max = String(Math.max(Number(slider.max), column.snapshots.length - 1));
            slider.value = slider.max;
            show();
          }
        },
        mine.signal,
      );
    };
    slider.max = '0';
    try {
      await Promise.all([grow('puct'), grow('gumbel')]);
    } catch (error) {
      if (mine.signal.aborted) return;
      // If one search fails, the comparison is useless.
      mine.abort();
      for (const column of Object.values(columns)) column.empty();
      fail(error);
    }
  };

  const show = (): void => {
    const index = Number(slider.value);
    for (const column of Object.values(columns)) column.show(index);
    const snapshot = columns.puct.at(index) ?? columns.gumbel.at(index);
    shownSims.textContent = snapshot === undefined ? '' : `at most ${count(snapshot.sims)} simulations`;
    slider.setAttribute('aria-valuetext', shownSims.textContent);
    if (snapshot === undefined) return;
    board.heat(colour.value === 'none' ? new Map() : heat(snapshot.moves, colour.value as 'prior' | 'visits'));
    const arrows = (['puct', 'gumbel'] as Rule[]).flatMap((rule) => {
      const best = columns[rule].at(index)?.best;
      return best === undefined ? [] : [{ uci: best.uci, brush: rule === 'puct' ? 'blue' : 'green' }];
    });
    board.arrows(arrows);
  };
  slider.addEventListener('input', show);
  colour.addEventListener('change', show);

  root.append(
    h('h1', {}, 'Look inside'),
    h(
      'p',
      { class: 'lead' },
      'A tree search looks ahead along moves that the network finds promising. Each simulation adds one position to the tree. Its value is passed back up and changes which moves the next simulation tries.',
    ),
    problem,
    h(
      'div',
      { class: 'inside' },
      h('div', { class: 'inside-board' }, board.element, field('Colour the squares by', colour)),
      h(
        'form',
        {
          class: 'card',
          onsubmit: (event: Event) => {
            event.preventDefault();
            void search();
          },
        },
        player.element,
        field('Simulations', sims),
        field('Position (FEN)', fen, 'You can also play moves on the board'),
        h(
          'div',
          { class: 'row' },
          h('button', { type: 'submit', class: 'primary' }, 'Search'),
          h(
            'button',
            {
              type: 'button',
              onclick: () => {
                moves = moves.slice(0, -1);
                void update();
              },
            },
            'Take back',
          ),
          h(
            'button',
            {
              type: 'button',
              onclick: () => {
                moves = [];
                void update();
              },
            },
            'Back to the start',
          ),
        ),
        field('After', slider),
        shownSims,
      ),
    ),
    h('div', { class: 'two' }, columns.puct.element, columns.gumbel.element),
  );
  fen.addEventListener('change', () => {
    moves = [];
    void update();
  });
  void update();
  return () => {
    control.abort();
    board.close();
  };
}

/** The results of one root rule. */
class Column {
  readonly element: HTMLElement;
  snapshots: Snapshot[] = [];
  /** The side to move at the root; all values are for this side. */
  private turn: Side = 'white';
  private readonly table = h('div');
  private readonly tree = h('div');

  constructor(rule: Rule) {
    this.element = h(
      'section',
      { class: 'card', 'aria-label': rules[rule].title },
      h('h2', {}, rules[rule].title),
      h('p', { class: 'hint' }, rules[rule].hint),
      this.table,
      this.tree,
    );
  }

  clear(turn: Side): void {
    this.empty();
    this.turn = turn;
    replace(this.table, h('p', { class: 'hint' }, 'Searching…'));
  }

  empty(): void {
    this.snapshots = [];
    replace(this.table);
    replace(this.tree);
  }

  add(snapshot: Snapshot): void {
    this.snapshots.push(snapshot);
  }

  at(index: number): Snapshot | undefined {
    return this.snapshots[Math.min(index, this.snapshots.length - 1)];
  }

  show(index: number): void {
    const snapshot = this.at(index);
    if (snapshot === undefined) return;
    const { best, moves, proof, simulations, sims, value } = snapshot;
    const q = moves.find(({ uci }) => uci === best.uci)?.q ?? null;
    const facts = [
      q !== null && `Q of this move ${signed(q)}`,
      proof === null && `mean of all simulations ${signed(value)}`,
      proof !== null && `proven ${proofText(proof, this.turn)}`,
    ].filter((text) => text !== false);
    const ended = simulations < sims ? ` of ${count(sims)}: ${proof === null ? 'the search ended early' : 'the result is proven, so the search stopped'}` : '';
    replace(
      this.table,
      h('p', {}, h('strong', {}, `Plays ${best.san}`), ` · ${facts.join(' · ')}`),
      h('p', { class: 'hint' }, `${count(simulations)} simulations${ended}. ${scaleText(this.turn)}`),
      branches(moves.slice(0, 12), best.uci, this.turn),
    );
  }

  /** Shows the tree of the last search. */
  open(tree: string): void {
    replace(this.tree, h('h3', {}, 'The tree'), h('ul', { class: 'tree' }, nodeView(tree, this.turn, [], 'root', null)));
  }
}

/** Explains Q and its side. */
function scaleText(side: Side): string {
  return `Q and mean: the result that ${colour(side)} expects, from −1 (lost) to +1 (won).`;
}

function colour(side: Side): string {
  return side === 'white' ? 'White' : 'Black';
}

/** A proven result of this side as text. */
function proofText(proof: Proof, side: Side): string {
  if (proof === 'draw') return 'draw';
  const winner: Side = (proof === 'win') === (side === 'white') ? 'white' : 'black';
  return `win for ${colour(winner)}`;
}

function branches(moves: Branch[], best: string, turn: Side): HTMLElement {
  const most = Math.max(1, ...moves.map(({ visits }) => visits));
  return h(
    'table',
    { class: 'numbers' },
    h('thead', {}, h('tr', {}, ...['Move', 'Visits', '', 'Prior', `Q (${colour(turn)}, −1 to +1)`].map((text) => h('th', { scope: 'col' }, text === '' ? h('span', { class: 'visually-hidden' }, 'Share') : text)))),
    h(
      'tbody',
      {},
      ...moves.map((move) =>
        h(
          'tr',
          { class: move.uci === best ? 'chosen' : null },
          h('th', { scope: 'row' }, move.san),
          h('td', {}, count(move.visits)),
          h('td', { class: 'meter-cell' }, h('meter', { value: move.visits, min: 0, max: most, 'aria-hidden': 'true' })),
          h('td', {}, percent(move.prior, 1)),
          h('td', {}, move.q === null ? '–' : signed(move.q), move.proof !== undefined && `, proven ${proofText(move.proof, turn)}`),
        ),
      ),
    ),
  );
}

/** A node that can be opened. `turn` is the side to move at the root; values are for this side. */
function nodeView(tree: string, turn: Side, line: string[], label: string, branch: Branch | null): HTMLElement {
  const children = h('ul', { hidden: true });
  const other: Side = turn === 'white' ? 'black' : 'white';
  const mover = line.length % 2 === 1 ? turn : other;
  const q = branch === null || branch.q === null ? '–' : signed(mover === turn ? branch.q : -branch.q);
  const proof = branch?.proof === undefined ? '' : `, proven ${proofText(branch.proof, mover)}`;
  const facts = branch === null ? '' : ` ${count(branch.visits)} visits, prior ${percent(branch.prior)}, Q ${q} (${colour(turn)})${proof}`;
  const button = h('button', { type: 'button', class: 'link node', 'aria-expanded': 'false' }, label);
  const item = h('li', {}, button, h('span', { class: 'hint' }, facts), children);
  let isLoaded = false;
  button.addEventListener('click', () => {
    const isOpen = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!isOpen));
    children.hidden = isOpen;
    if (isOpen || isLoaded) return;
    isLoaded = true;
    get<TreeNode>(`/api/inside/${tree}?line=${line.join(',')}`)
      .then((node) => {
        const visited = node.moves.filter(({ visits }) => visits > 0).slice(0, 12);
        replace(
          children,
          ...visited.map((move) => nodeView(tree, turn, [...line, move.uci], move.san, move)),
          visited.length === 0 && h('li', { class: 'hint' }, 'A leaf: no simulation went further.'),
        );
      })
      .catch((error: unknown) => {
        isLoaded = false;
        replace(children, h('li', {}, failure(error)));
      });
  });
  return item;
}

/** Target squares of the moves, relative to the largest value. */
function heat(moves: Branch[], by: 'prior' | 'visits'): Map<string, number> {
  const squares = new Map<string, number>();
  for (const move of moves) {
    const square = move.uci.slice(2, 4);
    squares.set(square, (squares.get(square) ?? 0) + move[by]);
  }
  const most = Math.max(...squares.values(), Number.MIN_VALUE);
  for (const [square, value] of squares) squares.set(square, value / most < 0.02 ? 0 : value / most);
  return squares;
}
