// The frame around the pages: routes in the URL fragment, navigation, theme and token.

import 'uplot/dist/uPlot.min.css';
import 'chessground/assets/chessground.base.css';
import 'chessground/assets/chessground.brown.css';
import 'chessground/assets/chessground.cburnett.css';
import './style.css';

import { about, failure } from './api';
import { h, replace } from './dom';
import { arenaPage, matchPage } from './page/arena';
import { clusterPage } from './page/cluster';
import { endgamePage } from './page/endgame';
import { gamesPage } from './page/games';
import { insidePage } from './page/inside';
import { playPage } from './page/play';
import { runPage } from './page/run';
import { runsPage } from './page/runs';
import { nextTheme, startTheme, themeName } from './theme';
import { TOKEN_REJECTED, takeToken, token, tokenBanner } from './token';

/** A page is built each time it is opened. The returned function ends its streams and timers. */
type Page = (root: HTMLElement, parts: string[], query: URLSearchParams) => (() => void) | void;

const pages: Record<string, { title: string; page: Page; inNav: boolean }> = {
  runs: { title: 'Runs', page: runsPage, inNav: true },
  run: { title: 'Run', page: runPage, inNav: false },
  games: { title: 'Games', page: gamesPage, inNav: false },
  play: { title: 'Play', page: playPage, inNav: true },
  inside: { title: 'Look inside', page: insidePage, inNav: true },
  arena: { title: 'Arena', page: arenaPage, inNav: true },
  endgame: { title: 'Endgame', page: endgamePage, inNav: true },
  match: { title: 'Match', page: matchPage, inNav: false },
  cluster: { title: 'Cluster', page: clusterPage, inNav: false },
};

/** The navigation entry of pages that are not in the navigation. */
const section: Record<string, string> = { run: 'runs', games: 'runs', match: 'arena' };

const main = document.getElementById('main') as HTMLElement;
const nav = document.getElementById('nav') as HTMLElement;
let leave: (() => void) | void;

function showNavigation(name: string): void {
  const active = section[name] ?? name;
  replace(
    nav,
    ...Object.entries(pages)
      .filter(([, entry]) => entry.inNav)
      .map(([key, entry]) =>
        h('a', { href: `#/${key}`, 'aria-current': key === active ? 'page' : null }, entry.title),
      ),
  );
}

function route(focus: boolean): void {
  leave?.();
  leave = undefined;
  // Close dialogs of the previous page.
  document.querySelectorAll('dialog').forEach((dialog) => dialog.close());
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decoded);
  const name = parts[0] ?? 'runs';
  const found = Object.hasOwn(pages, name) ? pages[name] : undefined;
  showNavigation(name);
  replace(main);
  if (found === undefined) {
    document.title = 'selfmate';
    main.append(h('h1', {}, 'There is no such page'), h('p', {}, h('a', { href: '#/runs' }, 'Go to the runs')));
    return;
  }
  document.title = [...parts.slice(1), found.title, 'selfmate'].join(' · ');
  leave = found.page(main, parts.slice(1), new URLSearchParams(search));
  if (focus) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

/** Decodes a part of the URL; invalid escapes stay unchanged. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The fragment is the route, so the link must not change it.
document.querySelector('.skip')?.addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
  main.scrollIntoView();
});

startTheme();
const themeButton = document.getElementById('theme') as HTMLButtonElement;
const showTheme = (): void => {
  themeButton.textContent = `Theme: ${themeName().toLowerCase()}`;
  themeButton.setAttribute('aria-label', `Theme: ${themeName()}. Click to change it.`);
};
showTheme();
themeButton.addEventListener('click', () => {
  nextTheme();
  showTheme();
});

takeToken();
addEventListener('hashchange', () => route(true));
route(false);

let banner: HTMLElement | null = null;
const askForToken = (): void => {
  if (banner !== null) return;
  // With the token the page is opened again and repeats its requests.
  banner = tokenBanner(() => {
    banner = null;
    route(false);
  });
  main.before(banner);
};
addEventListener(TOKEN_REJECTED, askForToken);
about()
  .then((info) => {
    if (info.asks_for_token && token() === null) askForToken();
    const { cluster } = pages;
    if (info.watches_cluster && cluster !== undefined) {
      cluster.inNav = true;
      showNavigation(location.hash.replace(/^#\/?/, '').split(/[/?]/)[0] || 'runs');
    }
  })
  .catch((error: unknown) => main.prepend(failure(error)));
