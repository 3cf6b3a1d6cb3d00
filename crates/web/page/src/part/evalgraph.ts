// White's expected result at each ply of a game; clicking goes to the ply.

import { svg } from '../dom';
import { signed } from '../format';

const [WIDTH, HEIGHT] = [600, 100];

/** The data of the graph. */
export interface Course {
  /** From -1 to 1. */
  values: (number | null)[];
  /** True when even and odd plies come from two players; each then has its own curve. */
  hasTwo: boolean;
  /** Plies to mark. */
  turns: number[];
}

/** Draws the graph. */
export function evalGraph({ values, hasTwo, turns }: Course, current: number, go: (ply: number) => void): SVGElement {
  const last = Math.max(1, values.length - 1);
  const x = (ply: number): number => (ply / last) * WIDTH;
  const y = (value: number): number => HEIGHT / 2 - (value * (HEIGHT - 8)) / 2;
  const known = values.flatMap((value, ply) => (value === null ? [] : [{ ply, value }]));
  const path = (points: { ply: number; value: number }[]): string[] =>
    points.map(({ ply, value }) => `${x(ply).toFixed(1)},${y(value).toFixed(1)}`);
  const [first, end] = [known[0]?.ply ?? 0, known.at(-1)?.ply ?? 0];
  const curves = hasTwo
    ? [0, 1].map((side) =>
        svg('polyline', { points: path(known.filter(({ ply }) => ply % 2 === side)).join(' '), class: `curve curve-${side + 1}` }),
      )
    : [
        svg('polygon', { points: [`${x(first)},${HEIGHT / 2}`, ...path(known), `${x(end)},${HEIGHT / 2}`].join(' '), class: 'area' }),
        svg('polyline', { points: path(known).join(' '), class: 'curve' }),
      ];
  const drawing = svg(
    'svg',
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      class: 'eval-graph',
      role: 'img',
      'aria-label': `White’s expected result, move by move. At the end ${signed(known.at(-1)?.value ?? 0)}.`,
    },
    svg('line', { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2, class: 'zero' }),
    ...curves,
    // A line of length zero with round ends stays round at any width.
    ...turns.map((ply) => {
      const [left, top] = [x(ply), y(values[ply] ?? 0)];
      return svg('line', { x1: left, x2: left, y1: top, y2: top, class: 'turn' });
    }),
    svg('line', { x1: x(current), x2: x(current), y1: 0, y2: HEIGHT, class: 'now' }),
  );
  drawing.addEventListener('click', (event) => {
    const box = drawing.getBoundingClientRect();
    const share = ((event as MouseEvent).clientX - box.left) / box.width;
    go(Math.round(share * last));
  });
  return drawing;
}

/** Plies whose move lost at least 0.3 of the expected result. */
export function turningPoints(values: (number | null)[], firstIsWhite: boolean): number[] {
  const turns: number[] = [];
  for (let ply = 1; ply < values.length; ply += 1) {
    const [before, after] = [values[ply - 1], values[ply]];
    if (before === null || before === undefined || after === null || after === undefined) continue;
    const moverIsWhite = (ply - 1) % 2 === 0 === firstIsWhite;
    const lost = (moverIsWhite ? 1 : -1) * (before - after);
    if (lost >= 0.3) turns.push(ply);
  }
  return turns;
}
