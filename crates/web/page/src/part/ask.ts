// A dialog that asks for confirmation.

import { h } from '../dom';

/** Asks and resolves to the answer. Escape and leaving the page mean no. */
export function ask(question: string, yes: string, no: string): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = h(
      'dialog',
      { class: 'sheet', 'aria-labelledby': 'question' },
      h('p', { id: 'question' }, question),
      h(
        'div',
        { class: 'row end' },
        h('button', { type: 'button', onclick: () => dialog.close() }, no),
        h('button', { type: 'button', class: 'primary', onclick: () => dialog.close('yes') }, yes),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
