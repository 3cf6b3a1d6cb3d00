// A board of numbers: a value for each square, as text and as colour, to be looked through square by
// square with the mouse or the arrow keys.

import { h } from '../dom';

const FILES = 'abcdefgh';

/** Men as they are written, White's in capitals. */
export const symbols: Record<string, string> = {
  K: '♔', Q: '♕', R: '♖', B: '♗', N: '♘', P: '♙',
  k: '♚', q: '♛', r: '♜', b: '♝', n: '♞', p: '♟',
};

export interface Heated {
  /** By square, a1 first; null where there is no position. */
  values: (number | null)[];
  /** Men that stand, by square. */
  pieces: Map<string, string>;
  /** The text of a value. */
  text: (value: number) => string;
  /** What a square's number means, to those who hear it; it follows the number. */
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
      const words = piece !== undefined ? 'stands here' : value === null ? 'no position' : describe(square, value);
      cell.setAttribute('aria-label', `${square}: ${cell.textContent} ${words}`);
    }
  }

  /** Marks the square that is looked at. */
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

  /** One cell at a time is a stop of the tab key. */
  private point(square: string): void {
    this.cells.get(this.cursor)?.setAttribute('tabindex', '-1');
    this.cursor = square;
    this.cells.get(square)?.setAttribute('tabindex', '0');
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const step = steps[event.key];
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
