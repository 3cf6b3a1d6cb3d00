// The token that a server asks for which others can reach. It comes in the fragment of the address,
// which browsers keep to themselves, and stays in this tab.

import type { About } from './api';
import { field, h } from './dom';

const KEY = 'selfmate-token';

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

/** Asks for the token when one is needed and not there. */
export function tokenBanner(about: About): HTMLElement | null {
  if (!about.asks_for_token || token() !== null) return null;
  const input = h('input', { type: 'password', autocomplete: 'off', required: true });
  const banner = h(
    'form',
    {
      class: 'banner',
      onsubmit: (event: Event) => {
        event.preventDefault();
        sessionStorage.setItem(KEY, input.value.trim());
        banner.remove();
      },
    },
    h('p', {}, 'You can look at everything here. To train, play or change anything, give the token that `selfmate serve` has shown.'),
    field('Token', input),
    h('button', { type: 'submit' }, 'Use it'),
  );
  return banner;
}
