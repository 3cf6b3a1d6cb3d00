// The evaluation bar: White's share of the expected points, on White's side of the board.

import type { Side } from '../api';
import { h } from '../dom';
import { expected } from '../format';

export class EvalBar {
  readonly element = h('div', { class: 'eval-bar', role: 'img' }, h('div', { class: 'eval-white' }));

  constructor() {
    this.show(null);
  }

  /** White's expected result from -1 to 1; null without an evaluation. */
  show(white: number | null): void {
    const share = ((white ?? 0) + 1) / 2;
    this.element.style.setProperty('--white', `${(100 * share).toFixed(1)}%`);
    const text = white === null ? 'none yet' : expected(white, 'white');
    this.element.setAttribute('aria-label', `Evaluation: ${text}`);
    this.element.title = text;
  }

  /** The side at the bottom of the board. */
  turn(below: Side): void {
    this.element.classList.toggle('black-below', below === 'black');
  }
}
