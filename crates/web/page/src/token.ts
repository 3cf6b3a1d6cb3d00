// The token of a server that other machines can reach. It is passed in the URL fragment, which
// browsers do not send, and is kept in this tab.

import { field, h } from './dom';

const KEY = 'selfmate-token';

/** Event of the window when the token is missing or wrong. */
export const TOKEN_REJECTED = 'selfmate-token-refused';

export function token(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Removes the token from the URL, so that it is neither shown nor bookmarked. */
export function takeToken(): void {
  const match = /[?&]token=([^&]+)/.exec(location.hash);
  if (match?.[1] === undefined) return;
  sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
  history.replaceState(null, '', '#/runs');
}

/** Forgets a rejected token and asks for it again. */
export function rejectToken(): void {
  sessionStorage.removeItem(KEY);
  dispatchEvent(new Event(TOKEN_REJECTED));
}

/** A form that asks for the token. */
export function tokenBanner(done: () => void): HTMLElement {
  const input = h('input', { type: 'password', autocomplete: 'off', required: true });
  const banner = h(
    'form',
    {
      class: 'banner',
      onsubmit: (event: Event) => {
        event.preventDefault();
        sessionStorage.setItem(KEY, input.value.trim());
        banner.remove();
        done();
      },
    },
    h('p', {}, 'You can look at everything. To train, play or change anything, enter the token that `selfmate serve` printed.'),
    field('Token', input),
    h('button', { type: 'submit' }, 'Use this token'),
  );
  return banner;
}
