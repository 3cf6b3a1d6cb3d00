// Replays a game: board, moves and search results.

import type { Game, Ply } from '../api';
import { h, replace } from '../dom';
import { expected, percent } from '../format';
import { Board } from './board';
import { evalGraph, turningPoints } from './evalgraph';

export class Replay {
  readonly element: HTMLElement;
  private readonly board = new Board('The game', { isPicture: true });
  private readonly moves = h('ol', { class: 'moves', 'aria-label': 'Moves' });
  private readonly graph = h('div', { class: 'graph-place' });
  private readonly evaluation = h('div', { class: 'evaluation' });
  private readonly title = h('p', { class: 'game-title' });
  private game: Game | null = null;
  private ply = 0;
  private timer = 0;
  private readonly player = h('button', { type: 'button', onclick: () => this.toggle() }, 'Play');

  /** In a match each side has its own evaluation. */
  constructor(private readonly options: { isMatch?: boolean } = {}) {
    const step = (text: string, label: string, go: () => void): HTMLElement =>
      h('button', { type: 'button', 'aria-label': label, onclick: go }, text);
    this.element = h(
      'section',
      {
        class: 'replay',
        onkeydown: (event: KeyboardEvent) => {
          if (event.key === 'ArrowLeft') this.go(this.ply - 1);
          else if (event.key === 'ArrowRight') this.go(this.ply + 1);
          else return;
          event.preventDefault();
        },
      },
      h('div', { class: 'replay-board' }, this.title, this.board.element, this.graph),
      h(
        'div',
        { class: 'replay-side' },
        h(
          'div',
          { class: 'row', role: 'group', 'aria-label': 'Replay controls' },
          step('«', 'Go to the start', () => this.go(0)),
          step('‹', 'Previous move', () => this.go(this.ply - 1)),
          this.player,
          step('›', 'Next move', () => this.go(this.ply + 1)),
          step('»', 'Go to the end', () => this.go(this.game?.plies.length ?? 0)),
          step('⇅', 'Flip the board', () => this.board.flip()),
        ),
        this.moves,
        this.evaluation,
      ),
    );
  }

  show(game: Game, ply = 0): void {
    this.stop();
    this.game = game;
    replace(
      this.title,
      h('strong', {}, game.white),
      ' – ',
      h('strong', {}, game.black),
      ` · ${game.outcome.result} (${game.outcome.reason})`,
      game.opening !== null && ` · ${game.opening}`,
    );
    const [, turn = 'w', , , , full = '1'] = game.start.split(' ');
    const offset = turn === 'b' ? 1 : 0;
    replace(
      this.moves,
      ...game.plies.map((played, index) => {
        const place = index + offset;
        const number = Number(full) + Math.floor(place / 2);
        const text = place % 2 === 0 || index === 0 ? `${number}${place % 2 === 0 ? '.' : '…'} ` : '';
        return h(
          'li',
          {},
          h(
            'button',
            { type: 'button', class: 'move', onclick: () => this.go(index + 1) },
            h('span', { class: 'move-number' }, text),
            played.san,
          ),
        );
      }),
    );
    this.go(ply);
  }

  /** Plays on, one move per `pause` milliseconds. */
  play(pause = 700): void {
    this.stop();
    this.player.textContent = 'Pause';
    this.timer = window.setInterval(() => {
      if (this.ply >= (this.game?.plies.length ?? 0)) this.stop();
      else this.go(this.ply + 1);
    }, pause);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = 0;
    this.player.textContent = 'Play';
  }

  /** Stops the replay and removes the board. */
  close(): void {
    this.stop();
    this.board.close();
  }

  private toggle(): void {
    if (this.timer !== 0) this.stop();
    else {
      if (this.ply >= (this.game?.plies.length ?? 0)) this.go(0);
      this.play();
    }
  }

  private go(ply: number): void {
    const { game } = this;
    if (game === null) return;
    this.ply = Math.max(0, Math.min(game.plies.length, ply));
    const last = game.plies[this.ply - 1];
    this.board.show({ fen: last?.fen ?? game.start, lastMove: last?.uci ?? null, check: last?.check });
    this.moves.querySelectorAll('.move').forEach((button, index) => {
      const isCurrent = index === this.ply - 1;
      button.toggleAttribute('aria-current', isCurrent);
      if (isCurrent) {
        button.setAttribute('aria-current', 'true');
        const list = this.moves;
        const place = (button as HTMLElement).offsetTop - list.offsetTop;
        if (place < list.scrollTop || place > list.scrollTop + list.clientHeight - 40) {
          list.scrollTop = place - list.clientHeight / 2;
        }
      }
    });
    this.showEvaluation(game.plies[this.ply]);
    const values = game.plies.map((played) => played.value);
    // Players without an evaluation have nothing to draw.
    if (values.filter((value) => value !== null).length > values.length / 2) {
      const firstIsWhite = game.start.split(' ')[1] !== 'b';
      const hasTwo = this.options.isMatch === true && game.white !== game.black;
      // Different evaluations of two players are not turning points.
      const turns = hasTwo ? [] : turningPoints(values, firstIsWhite);
      const sides = firstIsWhite ? [game.white, game.black] : [game.black, game.white];
      replace(
        this.graph,
        evalGraph({ values, hasTwo, turns }, this.ply, (place) => this.go(place)),
        hasTwo &&
          h('p', { class: 'chart-latest' }, ...sides.map((name, side) => h('span', { class: `key key-curve-${side + 1}` }, `evaluation of ${name}`))),
      );
    } else {
      replace(this.graph);
    }
  }

  /** The search result for the next move. */
  private showEvaluation(next: Ply | undefined): void {
    const policy = next?.policy ?? [];
    const best = policy[0]?.share ?? 1;
    this.board.arrows(
      policy
        .slice(0, 5)
        .map(({ uci, share }) => ({ uci, brush: share > best / 2 ? 'green' : 'paleGreen' })),
    );
    replace(
      this.evaluation,
      next?.value !== null &&
        next !== undefined &&
        h(
          'p',
          {},
          `Before ${next.san}: ${expected(next.value, 'white')}`,
          next.draw !== null && `, draw probability ${percent(next.draw)}`,
          '.',
        ),
      policy.length > 0 &&
        h(
          'table',
          { class: 'numbers' },
          h('caption', {}, 'Policy'),
          h(
            'tbody',
            {},
            ...policy.map(({ uci, san, share }) =>
              h(
                'tr',
                { class: uci === next?.uci ? 'chosen' : null },
                h('th', { scope: 'row' }, san),
                h('td', {}, percent(share, 1)),
                h('td', { class: 'meter-cell' }, h('meter', { value: share, min: 0, max: 1, 'aria-hidden': 'true' })),
              ),
            ),
          ),
        ),
    );
  }
}
