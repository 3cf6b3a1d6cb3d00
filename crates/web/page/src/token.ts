// The token that a server asks for which others can reach. It comes in the fragment of the address,
// which browsers keep to themselves, and stays in this tab.

import { field, h } from './dom';

const KEY = 'selfmate-token';

/** Told to the window when the server did not take the token, or misses one. */
export const TOKEN_REFUSED = 'selfmate-token-refused';

export function token(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Takes the token out of the address, so that it is neither seen nor bookmarked. */
export function takeToken(): void {
  const match = /[?&]token=([^&]+)/.exec(location.hash);
  if (match?.[1] === undefined) return;
  sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
  history.replaceState(null, '', '#/runs');
}

/** A token that was refused is asked for again. */
export function refuseToken(): void {
  sessionStorage.removeItem(KEY);
  dispatchEvent(new Event(TOKEN_REFUSED));
}

/** Asks for the token. */
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
    h('p', {}, 'You can look at everything here. To train, play or change anything, give the token that `selfmate serve` has shown.'),
    field('Token', input),
    h('button', { type: 'submit' }, 'Use it'),
  );
  return banner;
}
