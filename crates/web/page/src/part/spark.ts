// Small pictures of a few numbers.

import { svg } from '../dom';

const [WIDTH, HEIGHT] = [120, 28];

/** A small curve without axes. */
export function spark(values: number[], title: string): SVGElement {
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const points = values.map((value, index) => {
    const x = (index / Math.max(1, values.length - 1)) * (WIDTH - 4) + 2;
    const y = HEIGHT - 3 - ((value - low) / range) * (HEIGHT - 6);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return svg(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'spark', preserveAspectRatio: 'none', role: 'img', 'aria-label': title },
    svg('polyline', { points: points.join(' ') }),
  );
}

/** A rating with its error bar on a common scale. */
export function bar(value: number, error: number, low: number, high: number): SVGElement {
  const x = (elo: number): number => ((elo - low) / (high - low || 1)) * 196 + 2;
  const [left, right] = [x(value - error), x(value + error)];
  return svg(
    'svg',
    { viewBox: '0 0 200 16', class: 'error-bar', 'aria-hidden': 'true' },
    svg('line', { x1: left, x2: right, y1: 8, y2: 8 }),
    svg('line', { x1: left, x2: left, y1: 4, y2: 12 }),
    svg('line', { x1: right, x2: right, y1: 4, y2: 12 }),
    svg('circle', { cx: x(value), cy: 8, r: 4 }),
  );
}
