// Numbers and times as readable text.

import type { Score, Side } from './api';

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US').replace('-', '−');
}

/** About three digits, with k, M or G. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  if (size >= 0.001) return value.toPrecision(3);
  return value === 0 ? '0' : value.toExponential(1);
}

/** The same for an axis, without trailing zeros. */
export function tick(value: number): string {
  return short(value).replace(/(\.\d*?)0+(?=$| )/, '$1').replace(/\.(?=$| )/, '');
}

/** `45 s`, `1 min 30 s`, `12 min`, `3 h 05`, `2 d 4 h`. */
export function span(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 90) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 10 && whole % 60 > 0) return `${minutes} min ${whole % 60} s`;
  if (minutes < 90) return `${minutes} min`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')}`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

export function percent(share: number, digits = 0): string {
  // With a non-breaking space.
  return `${(100 * share).toFixed(digits)}\u00a0%`;
}

export function signed(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  // No minus sign for zero.
  return `${value < 0 && Number(text) !== 0 ? '−' : '+'}${text}`;
}

/** An expected result from -1 (lost) to 1 (won), with its side and scale. */
export function expected(value: number, side: Side): string {
  return `${side === 'white' ? 'White' : 'Black'} expects ${signed(value)} (−1 lost, +1 won)`;
}

/** A score of the side to move, from White's point of view. */
export function score(value: Score | null, turn: Side): string {
  if (value === null) return '–';
  const sign = turn === 'white' ? 1 : -1;
  if (value.mate !== undefined) {
    const moves = sign * value.mate;
    return `${moves < 0 ? '−' : ''}#${Math.abs(moves)}`;
  }
  return signed((sign * (value.cp ?? 0)) / 100);
}

/** `1. e4 e5 2. Nf3`. */
export function numbered(moves: { san: string }[], startFen: string): string {
  const [, turn = 'w', , , , full = '1'] = startFen.split(' ');
  let ply = (Number(full) - 1) * 2 + (turn === 'b' ? 1 : 0);
  return moves
    .map((move, index) => {
      const number = Math.floor(ply / 2) + 1;
      const text =
        ply % 2 === 0 ? `${number}. ${move.san}` : index === 0 ? `${number}… ${move.san}` : move.san;
      ply += 1;
      return text;
    })
    .join(' ');
}
