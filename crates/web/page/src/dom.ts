// Small helpers for DOM elements, instead of a framework.

type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | EventListener | ((event: never) => void);

/** Creates an element. Functions become event listeners; null and false omit an attribute. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') {
      element.addEventListener(name.replace(/^on/, ''), value as EventListener);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  append(element, ...children);
  return element;
}

/** Creates an SVG element. */
export function svg(
  tag: string,
  attributes: Record<string, string | number> = {},
  ...children: Node[]
): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

export function append(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replaces all children. The focus moves from a child with a `data-key` to the new child with the
 * same key, so that lists which are redrawn every few seconds do not lose the focus.
 */
export function replace(element: Element, ...children: Child[]): void {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const key = (focused as HTMLElement | null)?.dataset['key'];
  element.replaceChildren();
  append(element, ...children);
  if (key === undefined) return;
  const same = element.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  same?.focus({ preventScroll: true });
}

/** Announces a text to screen readers. */
export function announce(text: string): void {
  const status = document.getElementById('status');
  if (status !== null) status.textContent = text;
}

/** A field with its label. */
export function field(label: string, input: HTMLElement, hint?: string): HTMLElement {
  const id = input.id || `field-${Math.random().toString(36).slice(2, 9)}`;
  input.id = id;
  const hintId = `${id}-hint`;
  if (hint !== undefined) input.setAttribute('aria-describedby', hintId);
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, label),
    input,
    hint !== undefined && h('small', { id: hintId }, hint),
  );
}

/** A select element with these values and texts. */
export function select(options: [string, string][], chosen?: string): HTMLSelectElement {
  return h(
    'select',
    {},
    ...options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
  );
}
