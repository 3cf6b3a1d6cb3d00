// A board with a number and a colour on each square. Squares can be chosen with the mouse or the
// arrow keys.

import { h } from '../dom';
import { ARROW_STEPS } from './keys';

const FILES = 'abcdefgh';

/** Symbols of the pieces by FEN letter. */
export const symbols: Record<string, string> = {
  K: '♔', Q: '♕', R: '♖', B: '♗', N: '♘', P: '♙',
  k: '♚', q: '♛', r: '♜', b: '♝', n: '♞', p: '♟',
};

export interface Heated {
  /** In the order a1, b1, …; null for illegal positions. */
  values: (number | null)[];
  /** The fixed pieces by square. */
  pieces: Map<string, string>;
  /** Formats a value. */
  text: (value: number) => string;
  /** Explains a square's number to screen readers; follows the number. */
  describe: (square: string, value: number) => string;
}

export class HeatBoard {
  readonly element: HTMLElement;
  private readonly cells = new Map<string, HTMLElement>();
  private readonly grid: HTMLElement;
  private cursor = 'e4';
  private marked: string | null = null;

  constructor(title: string, hint: string, private readonly choose: (square: string) => void) {
    const rows: HTMLElement[] = [];
    for (let rank = 8; rank >= 1; rank -= 1) {
      const row = h('div', { class: 'heat-row', role: 'row' });
      for (const file of FILES) {
        const square = `${file}${rank}`;
        const names = { 'data-rank': file === 'a' ? rank : null, 'data-file': rank === 1 ? file : null };
        const cell = h('div', { ...names, role: 'gridcell', tabindex: -1, onclick: () => this.press(square) });
        this.cells.set(square, cell);
        row.append(cell);
      }
      rows.push(row);
    }
    this.grid = h('div', { class: 'heat-grid', role: 'grid', 'aria-label': title, onkeydown: (event: KeyboardEvent) => this.key(event) }, ...rows);
    this.element = h('figure', { class: 'heat-board' }, h('figcaption', {}, h('strong', {}, title), h('span', { class: 'hint' }, hint)), this.grid);
    this.point(this.cursor);
  }

  show({ values, pieces, text, describe }: Heated): void {
    for (const [square, cell] of this.cells) {
      const value = values[FILES.indexOf(square.charAt(0)) + 8 * (Number(square.charAt(1)) - 1)] ?? null;
      const piece = pieces.get(square);
      const size = value === null ? 0 : Math.min(1, Math.abs(value));
      cell.className = `heat-cell${piece !== undefined ? ' heat-piece' : value === null ? ' heat-none' : value < 0 ? ' heat-low' : ''}`;
      cell.classList.toggle('heat-chosen', square === this.marked);
      cell.style.setProperty('--size', `${Math.round(100 * size)}%`);
      cell.textContent = piece !== undefined ? (symbols[piece] ?? piece) : value === null ? '' : text(value);
      const words = piece !== undefined ? 'is here' : value === null ? 'illegal position' : describe(square, value);
      cell.setAttribute('aria-label', `${square}: ${cell.textContent} ${words}`);
    }
  }

  /** Marks the chosen square. */
  mark(square: string | null): void {
    this.marked = square;
    for (const [name, cell] of this.cells) {
      cell.classList.toggle('heat-chosen', name === square);
      cell.setAttribute('aria-selected', String(name === square));
    }
    if (square !== null) this.point(square);
  }

  private press(square: string): void {
    this.point(square);
    this.choose(square);
  }

  /** Only one cell can be reached with the tab key. */
  private point(square: string): void {
    this.cells.get(this.cursor)?.setAttribute('tabindex', '-1');
    this.cursor = square;
    this.cells.get(square)?.setAttribute('tabindex', '0');
  }

  private key(event: KeyboardEvent): void {
    const step = ARROW_STEPS[event.key];
    if (step !== undefined) {
      const file = Math.max(0, Math.min(7, FILES.indexOf(this.cursor.charAt(0)) + step[0]));
      const rank = Math.max(1, Math.min(8, Number(this.cursor.charAt(1)) + step[1]));
      this.point(`${FILES.charAt(file)}${rank}`);
      this.cells.get(this.cursor)?.focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.press(this.cursor);
    } else {
      return;
    }
    event.preventDefault();
  }
}
