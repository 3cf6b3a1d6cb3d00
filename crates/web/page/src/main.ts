// The frame around the pages: routes in the fragment, the navigation, theme and token.

import 'uplot/dist/uPlot.min.css';
import 'chessground/assets/chessground.base.css';
import 'chessground/assets/chessground.brown.css';
import 'chessground/assets/chessground.cburnett.css';
import './style.css';

import { about, failure } from './api';
import { h, replace } from './dom';
import { arenaPage, matchPage } from './page/arena';
import { gamesPage } from './page/games';
import { insidePage } from './page/inside';
import { playPage } from './page/play';
import { runPage } from './page/run';
import { runsPage } from './page/runs';
import { nextTheme, startTheme, themeName } from './theme';
import { takeToken, tokenBanner } from './token';

/** A page is built anew each time it is opened; what it returns ends its streams and timers. */
type Page = (root: HTMLElement, parts: string[], query: URLSearchParams) => (() => void) | void;

const pages: Record<string, { title: string; page: Page; inNav: boolean }> = {
  runs: { title: 'Runs', page: runsPage, inNav: true },
  run: { title: 'Run', page: runPage, inNav: false },
  games: { title: 'Games', page: gamesPage, inNav: false },
  play: { title: 'Play', page: playPage, inNav: true },
  inside: { title: 'Look inside', page: insidePage, inNav: true },
  arena: { title: 'Arena', page: arenaPage, inNav: true },
  match: { title: 'Match', page: matchPage, inNav: false },
};

/** Which entry of the navigation a page belongs to. */
const section: Record<string, string> = { run: 'runs', games: 'runs', match: 'arena' };

const main = document.getElementById('main') as HTMLElement;
const nav = document.getElementById('nav') as HTMLElement;
let leave: (() => void) | void;

function route(focus: boolean): void {
  leave?.();
  leave = undefined;
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  const name = parts[0] ?? 'runs';
  const found = pages[name];
  const active = section[name] ?? name;
  replace(
    nav,
    ...Object.entries(pages)
      .filter(([, entry]) => entry.inNav)
      .map(([key, entry]) =>
        h('a', { href: `#/${key}`, 'aria-current': key === active ? 'page' : null }, entry.title),
      ),
  );
  replace(main);
  if (found === undefined) {
    document.title = 'selfmate';
    main.append(h('p', {}, 'There is no such page. ', h('a', { href: '#/runs' }, 'To the runs')));
    return;
  }
  document.title = [...parts.slice(1), found.title, 'selfmate'].join(' · ');
  leave = found.page(main, parts.slice(1), new URLSearchParams(search));
  if (focus) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

startTheme();
const themeButton = document.getElementById('theme') as HTMLButtonElement;
const showTheme = (): void => {
  themeButton.textContent = `Theme: ${themeName().toLowerCase()}`;
  themeButton.setAttribute('aria-label', `Theme: ${themeName()}. Change it.`);
};
showTheme();
themeButton.addEventListener('click', () => {
  nextTheme();
  showTheme();
});

takeToken();
addEventListener('hashchange', () => route(true));
route(false);
about()
  .then((info) => {
    const banner = tokenBanner(info);
    if (banner !== null) main.before(banner);
  })
  .catch((error: unknown) => main.prepend(failure(error)));
