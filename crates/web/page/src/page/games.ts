// The games of a run, by generation.

import { failure, get, run } from '../api';
import type { Game, GameRow, Generations } from '../api';
import { field, h, replace } from '../dom';
import { Replay } from '../part/replay';

export function gamesPage(root: HTMLElement, parts: string[]): () => void {
  const name = parts[0] ?? '';
  let control = new AbortController();
  const problem = h('div');
  const picker = h('div', { class: 'row' });
  const list = h('div', { class: 'game-list', tabindex: 0, role: 'region', 'aria-label': 'Games' });
  const replay = new Replay();
  replay.element.hidden = true;
  root.append(
    h('p', {}, h('a', { href: `#/run/${encodeURIComponent(name)}` }, `← ${name}`)),
    h('h1', {}, 'Games'),
    problem,
    picker,
    h('div', { class: 'split' }, list, replay.element),
  );
  const fail = (error: unknown): void => replace(problem, failure(error));

  /** Aborts the previous request. */
  const nextSignal = (): AbortSignal => {
    control.abort();
    control = new AbortController();
    return control.signal;
  };

  const open = async (generation: number, number: number): Promise<void> => {
    try {
      const game = await get<Game>(run(name, `/games/${generation}/${number}`), nextSignal());
      replay.element.hidden = false;
      replay.show(game);
      for (const button of list.querySelectorAll('button')) {
        if (button.textContent === String(number)) button.setAttribute('aria-current', 'true');
        else button.removeAttribute('aria-current');
      }
      replace(problem);
    } catch (error) {
      fail(error);
    }
  };

  const choose = async (generation: number): Promise<void> => {
    try {
      const games = await get<GameRow[]>(run(name, `/games/${generation}`), nextSignal());
      replace(list, table(games, (number) => void open(generation, number)));
      const [first] = games;
      if (first !== undefined) await open(generation, first.number);
    } catch (error) {
      fail(error);
    }
  };

  get<Generations>(run(name, '/games'), control.signal)
    .then(({ sealed, open: playing, open_games: soFar }) => {
      const all = [...sealed, ...(playing === null || soFar === 0 ? [] : [playing])];
      if (all.length === 0) {
        replace(list, h('p', { class: 'hint' }, 'There are no stored games yet. Some learners do not store games.'));
        return;
      }
      const last = all.at(-1) ?? 0;
      const input = h('input', { type: 'number', min: all[0] ?? 0, max: last, value: last });
      input.addEventListener('change', () => void choose(Number(input.value)));
      replace(picker, field('Generation', input, `${all[0]} to ${last}${playing === last ? '; the last one is still being played' : ''}`));
      void choose(last);
    })
    .catch(fail);
  return () => {
    control.abort();
    replay.close();
  };
}

function table(games: GameRow[], open: (number: number) => void): HTMLElement {
  return h(
    'table',
    { class: 'numbers' },
    h('thead', {}, h('tr', {}, ...['Game', 'Result', 'Plies', 'Reason'].map((text) => h('th', { scope: 'col' }, text)))),
    h(
      'tbody',
      {},
      ...games.map((game) =>
        h(
          'tr',
          {},
          h('td', {}, h('button', { type: 'button', class: 'link', onclick: () => open(game.number) }, String(game.number))),
          h('td', {}, game.result),
          h('td', {}, String(game.plies)),
          h('td', {}, game.from_position ? `${game.reason} (from a position)` : game.reason),
        ),
      ),
    ),
  );
}
