// A chessground board that is playable by mouse, touch and keyboard.

import { Chessground } from 'chessground';
import type { Api } from 'chessground/api';
import type { DrawShape } from 'chessground/draw';
import type { Color, Key } from 'chessground/types';

import type { Move } from '../api';
import { announce, h } from '../dom';
import { ARROW_STEPS } from './keys';

export interface Shown {
  fen: string;
  lastMove?: string | null;
  check?: boolean;
}

export interface Arrow {
  uci: string;
  /** green, red, blue or yellow, or paleGreen and so on. */
  brush: string;
  label?: string;
}

const FILES = 'abcdefgh';
const names: Record<string, string> = { q: 'Queen', r: 'Rook', b: 'Bishop', n: 'Knight' };

export class Board {
  readonly element: HTMLElement;
  private readonly ground: Api;
  private readonly frame: HTMLElement;
  private legal: Move[] = [];
  private play: ((uci: string) => void) | null = null;
  private cursor: Key = 'e2';
  private selected: Key | null = null;
  private colours = new Map<Key, string>();
  private orientation: Color = 'white';
  private pieces = '';
  private readonly watcher: ResizeObserver;

  /** With `isPicture` the board is not playable and does not handle keys. */
  constructor(private readonly label: string, private readonly options: { isPicture?: boolean } = {}) {
    const place = h('div', { class: 'board' });
    this.frame = options.isPicture === true ? h('div', { class: 'board-frame', role: 'img' }, place) : h(
      'div',
      {
        class: 'board-frame',
        tabindex: 0,
        role: 'application',
        'aria-roledescription': 'chess board',
        'aria-label': `${label}. Arrow keys move from square to square, Enter picks up and puts down a piece, Escape cancels.`,
        onkeydown: (event: KeyboardEvent) => this.key(event),
        onblur: () => this.showCursor(false),
        onfocus: () => this.showCursor(this.frame.matches(':focus-visible')),
      },
      place,
    );
    this.element = this.frame;
    this.ground = Chessground(place, {
      coordinates: true,
      animation: { enabled: !matchMedia('(prefers-reduced-motion: reduce)').matches, duration: 180 },
      highlight: { lastMove: true, check: true },
      premovable: { enabled: false },
      draggable: { showGhost: true },
      drawable: { enabled: true, visible: true },
      movable: { free: false, showDests: true },
      disableContextMenu: true,
      viewOnly: options.isPicture === true,
    });
    // The size is known only when the board is on the page.
    requestAnimationFrame(() => {
      if (place.clientWidth > 0) this.ground.redrawAll();
    });
    this.watcher = new ResizeObserver(() => {
      // A board that is not on the page has no size.
      if (place.clientWidth > 0) this.ground.redrawAll();
    });
    this.watcher.observe(place);
  }

  /** Call this after adding the board to the page: only then does it have a size. */
  placed(): void {
    this.ground.redrawAll();
  }

  /** Removes all listeners. */
  close(): void {
    this.watcher.disconnect();
    this.ground.destroy();
  }

  /** Shows a position; it is not playable until `allow` is called. */
  show(shown: Shown): void {
    this.pieces = shown.fen;
    this.legal = [];
    this.play = null;
    this.selected = null;
    const last = shown.lastMove;
    this.ground.set({
      fen: shown.fen,
      turnColor: turnOf(shown.fen),
      lastMove: last ? [last.slice(0, 2) as Key, last.slice(2, 4) as Key] : undefined,
      check: shown.check === true,
      selected: undefined,
      movable: { color: undefined, dests: new Map() },
    });
    if (this.options.isPicture === true) this.frame.setAttribute('aria-label', `${this.label}. ${this.describePieces()}`);
  }

  /** The squares of all pieces as text. */
  private describePieces(): string {
    const side = (color: Color): string => {
      const pieces = [...this.ground.state.pieces].filter(([, piece]) => piece.color === color);
      return pieces.map(([square, piece]) => `${piece.role} ${square}`).sort().join(', ');
    };
    return `White: ${side('white')}. Black: ${side('black')}.`;
  }

  /** Lets the side to move play one of these moves. */
  allow(legal: Move[], play: (uci: string) => void): void {
    this.legal = legal;
    this.play = play;
    const dests = new Map<Key, Key[]>();
    for (const { uci } of legal) {
      const [from, to] = [uci.slice(0, 2) as Key, uci.slice(2, 4) as Key];
      dests.set(from, [...(dests.get(from) ?? []), to]);
    }
    this.ground.set({
      movable: {
        color: turnOf(this.pieces),
        dests,
        events: { after: (from, to) => this.moved(from, to) },
      },
    });
  }

  /** The side at the bottom. */
  get below(): Color {
    return this.orientation;
  }

  turn(side: Color): void {
    this.orientation = side;
    this.ground.set({ orientation: side });
  }

  flip(): void {
    this.turn(this.orientation === 'white' ? 'black' : 'white');
  }

  arrows(arrows: Arrow[]): void {
    const shapes: DrawShape[] = arrows.map(({ uci, brush, label }) => ({
      orig: uci.slice(0, 2) as Key,
      dest: uci.slice(2, 4) as Key,
      brush,
      ...(label === undefined ? {} : { label: { text: label } }),
    }));
    this.ground.setAutoShapes(shapes);
  }

  /** Colours squares by numbers from 0 to 1. */
  heat(squares: Map<string, number>): void {
    this.colours = new Map();
    for (const [square, value] of squares) {
      const step = Math.min(9, Math.ceil(value * 9));
      if (step > 0) this.colours.set(square as Key, `heat heat-${step}`);
    }
    this.mark();
  }

  /** Plays a typed move; false if it is not legal. */
  type(text: string): boolean {
    const plain = (san: string): string => san.replace(/[+#=x]/g, '').toLowerCase();
    const wanted = text.trim();
    const castle = wanted.replace(/0/g, 'O').toUpperCase();
    const found =
      this.legal.find((move) => move.uci === wanted.toLowerCase()) ??
      this.legal.find((move) => move.san.replace(/[+#]/g, '') === wanted.replace(/[+#]/g, '')) ??
      this.legal.find((move) => move.san.replace(/[+#]/g, '') === castle) ??
      this.only(this.legal.filter((move) => plain(move.san) === plain(wanted)));
    if (found === undefined || this.play === null) return false;
    this.done(found.uci);
    return true;
  }

  private only(moves: Move[]): Move | undefined {
    return moves.length === 1 ? moves[0] : undefined;
  }

  private moved(from: Key, to: Key): void {
    const moves = this.legal.filter(({ uci }) => uci.startsWith(from + to));
    const [first] = moves;
    if (first === undefined) return;
    if (moves.length === 1) this.done(first.uci);
    else this.promote(moves);
  }

  private done(uci: string): void {
    const play = this.play;
    this.play = null;
    this.selected = null;
    this.mark();
    play?.(uci);
  }

  /** Asks for the promotion piece. */
  private promote(moves: Move[]): void {
    const fen = this.pieces;
    const dialog = h('dialog', { class: 'promotion', 'aria-label': 'Promote to' });
    for (const letter of ['q', 'r', 'b', 'n']) {
      const move = moves.find(({ uci }) => uci.endsWith(letter));
      if (move === undefined) continue;
      dialog.append(
        h(
          'button',
          {
            type: 'button',
            onclick: () => {
              dialog.returnValue = move.uci;
              dialog.close(move.uci);
            },
          },
          names[letter],
        ),
      );
    }
    dialog.addEventListener('close', () => {
      dialog.remove();
      const { legal, play } = this;
      if (dialog.returnValue !== '') {
        this.done(dialog.returnValue);
        return;
      }
      // Cancelled: the pawn goes back.
      this.show({ fen });
      if (play !== null) this.allow(legal, play);
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  private key(event: KeyboardEvent): void {
    const step = ARROW_STEPS[event.key];
    if (step !== undefined) {
      const sign = this.orientation === 'white' ? 1 : -1;
      const file = clamp(FILES.indexOf(this.cursor.charAt(0)) + sign * step[0]);
      const rank = clamp(Number(this.cursor.charAt(1)) - 1 + sign * step[1]);
      this.cursor = `${FILES.charAt(file)}${rank + 1}` as Key;
      this.showCursor(true);
      announce(this.describe(this.cursor));
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.press();
    } else if (event.key === 'Escape') {
      this.selected = null;
      this.ground.selectSquare(null);
      this.showCursor(true);
    } else {
      return;
    }
    event.preventDefault();
  }

  private press(): void {
    if (this.play === null) {
      announce('It is not your turn.');
      return;
    }
    const { cursor, selected } = this;
    if (selected !== null && this.legal.some(({ uci }) => uci.startsWith(selected + cursor))) {
      this.ground.move(selected, cursor);
      this.moved(selected, cursor);
      return;
    }
    if (this.legal.some(({ uci }) => uci.startsWith(cursor))) {
      this.selected = cursor;
      this.ground.selectSquare(cursor, true);
      const goals = this.legal.filter(({ uci }) => uci.startsWith(cursor));
      announce(`${this.describe(cursor)} selected. Moves to: ${goals.map(({ uci }) => uci.slice(2, 4)).join(', ')}`);
    } else {
      announce(`${this.describe(cursor)}: no legal move from here.`);
    }
    this.showCursor(true);
  }

  private describe(square: Key): string {
    const piece = this.ground.state.pieces.get(square);
    return piece === undefined ? square : `${square}, ${piece.color} ${piece.role}`;
  }

  private showCursor(visible: boolean): void {
    this.frame.classList.toggle('with-cursor', visible);
    this.mark();
  }

  private mark(): void {
    const marks = new Map(this.colours);
    if (this.frame.classList.contains('with-cursor')) {
      marks.set(this.cursor, `${marks.get(this.cursor) ?? ''} cursor`.trim());
    }
    this.ground.set({ highlight: { custom: marks } });
  }
}

/** A small board that is not playable. */
export class Glance {
  readonly element: HTMLElement;
  private readonly ground: Api;

  constructor(label: string) {
    const place = h('div', { class: 'board' });
    this.element = h('div', { class: 'glance', role: 'img', 'aria-label': label }, place);
    this.ground = Chessground(place, { viewOnly: true, coordinates: false, animation: { enabled: false } });
    requestAnimationFrame(() => this.ground.redrawAll());
  }

  close(): void {
    this.ground.destroy();
  }

  show(fen: string, last: string | null): void {
    this.ground.set({ fen, lastMove: last ? [last.slice(0, 2) as Key, last.slice(2, 4) as Key] : undefined });
  }
}

function clamp(value: number): number {
  return Math.max(0, Math.min(7, value));
}

function turnOf(fen: string): Color {
  return fen.split(' ')[1] === 'b' ? 'black' : 'white';
}
