// A uPlot chart in the page's colours and width, with its last numbers as text.

import uPlot from 'uplot';

import { h, replace } from '../dom';
import { short, tick } from '../format';
import { color, onTheme } from '../theme';

export interface Line {
  label: string;
  /** A colour name of the style sheet. */
  color: string;
  /** Drawn as the border of a band, without a line. */
  isBand?: boolean;
}

export type Column = (number | null)[];

/** The unit of the time axis. */
function unitFor(seconds: number): { name: string; seconds: number } {
  if (seconds <= 180) return { name: 's', seconds: 1 };
  return seconds <= 10_800 ? { name: 'min', seconds: 60 } : { name: 'h', seconds: 3600 };
}

export class Chart {
  readonly element: HTMLElement;
  private readonly caption = h('figcaption');
  private readonly place = h('div', { class: 'chart-place' });
  private readonly latest = h('p', { class: 'chart-latest' });
  private plot: uPlot | null = null;
  private data: Column[] = [];
  private unit = unitFor(0);
  private readonly removeListener: () => void;
  private readonly watcher: ResizeObserver;

  constructor(
    title: string,
    private readonly lines: Line[],
    private readonly options: { hint?: string; zero?: boolean; digits?: (value: number) => string } = {},
  ) {
    this.element = h(
      'figure',
      { class: 'chart' },
      this.caption,
      this.place,
      this.latest,
    );
    const { hint } = options;
    replace(this.caption, h('strong', {}, title), hint !== undefined && h('span', { class: 'hint' }, hint));
    this.removeListener = onTheme(() => this.draw());
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.place);
  }

  /**
   * Sets the data: x first (seconds), then one column per line. `words` replace the text of the last
   * numbers where they are not null.
   */
  update(data: Column[], words: (string | null)[] = []): void {
    const [seconds = [], ...columns] = data;
    this.unit = unitFor(seconds.at(-1) ?? 0);
    this.data = [seconds.map((value) => (value ?? 0) / this.unit.seconds), ...columns];
    const hasData = columns.length > 0 && seconds.length > 0;
    this.element.hidden = !hasData;
    if (!hasData) return;
    if (this.plot === null) this.draw();
    else this.plot.setData(this.data as uPlot.AlignedData);
    const write = this.options.digits ?? short;
    const parts = this.lines.map((line, index) => {
      const column = columns[index] ?? [];
      const last = column.findLast((value) => value !== null);
      return last === null || last === undefined || line.isBand === true
        ? null
        : h('span', { class: `key key-${line.color}` }, `${line.label} ${words[index] ?? write(last)}`);
    });
    replace(this.latest, ...parts);
  }

  close(): void {
    this.removeListener();
    this.watcher.disconnect();
    this.plot?.destroy();
  }

  private draw(): void {
    if (this.data.length === 0) return;
    this.plot?.destroy();
    const [ink, grid] = [color('ink-soft'), color('line')];
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const bands = this.lines.flatMap((line, index) =>
      line.isBand === true && this.lines[index + 1]?.isBand === true
        ? [{ series: [index + 2, index + 1] as [number, number], fill: `${color(line.color)}33` }]
        : [],
    );
    this.plot = new uPlot(
      {
        width: Math.max(200, this.place.clientWidth),
        height: 180,
        cursor: { y: false, drag: { x: true, y: false } },
        legend: { show: false },
        scales: {
          x: { time: false },
          y: this.options.zero === true ? { range: (_, low, high) => [Math.min(0, low), high || 1] } : {},
        },
        axes: [
          { ...axis, size: 32, space: 64, values: (_, ticks) => ticks.map((value) => `${tick(value)} ${this.unit.name}`) },
          { ...axis, size: 52, space: 36, values: (_, ticks) => ticks.map(this.options.digits ?? tick) },
        ],
        bands,
        series: [
          {},
          ...this.lines.map((line) => ({
            label: line.label,
            stroke: color(line.color),
            width: line.isBand === true ? 0 : 1.75,
            spanGaps: true,
            // Evaluated at every draw: a live curve soon has too many points to show them.
            points: { show: (plot: uPlot) => plot.data[0].length < 40 && line.isBand !== true, size: 5 },
          })),
        ],
      },
      this.data as uPlot.AlignedData,
      this.place,
    );
  }

  private resize(): void {
    const width = this.place.clientWidth;
    if (this.plot !== null && width > 0 && width !== this.plot.width) {
      this.plot.setSize({ width, height: 180 });
    }
  }
}
