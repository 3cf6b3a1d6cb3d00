// A form field to choose a player: a run, a kind of player, or a spec.

import { about, get } from '../api';
import type { RunSummary } from '../api';
import { field, h, select } from '../dom';

export class PlayerChoice {
  readonly element: HTMLElement;
  private readonly list: HTMLSelectElement;
  private readonly custom = h('input', {
    type: 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: 300,
    placeholder: 'alphabeta:depth=6',
  });
  private readonly customField: HTMLElement;

  constructor(label: string, options: { wanted?: string | null; onlyTrees?: boolean; change?: () => void } = {}) {
    // The wanted player is shown at once, before the list is loaded.
    const first = options.wanted || 'default';
    this.list = select([[first, first]]);
    this.customField = field('Player spec', this.custom, 'As on the command line; see docs/arena.md');
    this.customField.hidden = true;
    this.element = h('div', {}, field(label, this.list), this.customField);
    const change = (): void => {
      this.customField.hidden = this.list.value !== '';
      options.change?.();
    };
    this.list.addEventListener('change', change);
    this.custom.addEventListener('change', () => options.change?.());
    void this.fill(options.wanted ?? null, options.onlyTrees === true);
  }

  /** The player's spec. */
  get value(): string {
    return this.list.value === '' ? this.custom.value.trim() : this.list.value;
  }

  private async fill(wanted: string | null, onlyTrees: boolean): Promise<void> {
    const [info, runs] = await Promise.all([
      about(),
      get<RunSummary[]>('/api/runs').catch((): RunSummary[] => []),
    ]);
    const trained = runs.filter((summary) => summary.checkpoints.length > 0 && (!onlyTrees || summary.searches_tree));
    const usual: Record<string, string> = { alphabeta: 'alphabeta:depth=5' };
    const kinds = info.players.filter(
      ({ name, searches_tree: hasTree }) => name !== 'run' && (!onlyTrees || hasTree),
    );
    const group = (title: string, options: [string, string][]): HTMLElement | null =>
      options.length === 0
        ? null
        : h('optgroup', { label: title }, ...options.map(([value, text]) => h('option', { value }, text)));
    const groups = [
      group('Runs', trained.map((summary) => [`run:${summary.name}`, `run ${summary.name}`])),
      group('Players', kinds.map(({ name, description }) => [usual[name] ?? name, `${name}: ${description}`])),
      h('option', { value: '' }, 'other…'),
    ];
    this.list.replaceChildren(...groups.filter((entry) => entry !== null));
    this.list.value = 'default';
    if (wanted !== null && wanted !== '') {
      this.list.value = wanted;
      if (this.list.value !== wanted) {
        this.list.value = '';
        this.custom.value = wanted;
      }
      this.customField.hidden = this.list.value !== '';
    }
  }
}
