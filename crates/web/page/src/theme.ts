// Light, dark or the system's theme.

const KEY = 'selfmate-theme';
const names = ['System', 'Light', 'Dark'] as const;
type Theme = (typeof names)[number];

const listeners = new Set<() => void>();

export function themeName(): Theme {
  const stored = localStorage.getItem(KEY);
  return names.find((name) => name === stored) ?? 'System';
}

export function startTheme(): void {
  apply();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => notify());
}

export function nextTheme(): void {
  const next = names[(names.indexOf(themeName()) + 1) % names.length] ?? 'System';
  localStorage.setItem(KEY, next);
  apply();
  notify();
}

/** Calls `listener` when colours change. Returns a function that removes it. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** A colour of the style sheet. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function apply(): void {
  const theme = themeName();
  if (theme === 'System') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.toLowerCase();
}

function notify(): void {
  for (const listener of listeners) listener();
}
