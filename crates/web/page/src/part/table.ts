// A table of text.

import { h } from '../dom';

/** A table whose first column names the row. */
export function table(caption: string, columns: string[], rows: string[][]): HTMLElement {
  const row = ([name = '', ...rest]: string[]): HTMLElement =>
    h('tr', {}, h('th', { scope: 'row' }, name), ...rest.map((text) => h('td', {}, text)));
  return h(
    'div',
    { class: 'game-list', tabindex: 0, role: 'region', 'aria-label': caption },
    h(
      'table',
      { class: 'numbers' },
      h('caption', {}, caption),
      h('thead', {}, h('tr', {}, ...columns.map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, ...rows.map(row)),
    ),
  );
}
