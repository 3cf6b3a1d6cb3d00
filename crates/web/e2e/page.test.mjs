// The page in a real browser: train, watch, play, look inside a search, compare.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { beginGame, inspect, labForTests, openLab, playByKeys, playByMouse, playByTouch } from './lab.mjs';

let page;
const lab = labForTests((opened) => {
  page = opened;
});

const status = () => page.locator('.game-status');

/** Starts a game with the form of the play page, in a tab without a saved game. */
async function newGame({ player, side = 'white', fen = '', strength = 'sims:16' }) {
  await lab.open('runs');
  await page.evaluate(() => sessionStorage.clear());
  await lab.open(`play?player=${encodeURIComponent(player)}&fen=${encodeURIComponent(fen)}`);
  await page.getByLabel('You play').selectOption(side);
  await page.getByLabel('Strength').selectOption(strength);
  // The page has started a game itself.
  await status().filter({ hasText: /Your move|thinking/ }).waitFor();
  await beginGame(page);
  await status().filter({ hasText: /Your move|thinking/ }).waitFor();
}

/** The best move of alpha-beta after these moves, in UCI notation. */
async function bestMove(fen, moves) {
  return page.evaluate(
    async ([start, played]) => {
      const body = JSON.stringify({ player: 'alphabeta', fen: start, moves: played, limit: { depth: 4 } });
      const headers = { 'Content-Type': 'application/json' };
      const answer = await fetch('/api/search', { method: 'POST', headers, body });
      const lines = (await answer.text()).trim().split('\n').map((line) => JSON.parse(line));
      return lines.at(-1).played.uci;
    },
    [fen, moves],
  );
}

async function playedMoves(fen) {
  const text = (await page.locator('.move-text').textContent()) ?? '';
  const sans = text.replace('No moves yet.', '').split(/\s+/).filter((word) => word !== '' && !/^\d+[.…]+$/.test(word));
  return page.evaluate(
    async ([start, moves]) => {
      const headers = { 'Content-Type': 'application/json' };
      const answer = await fetch('/api/position', { method: 'POST', headers, body: JSON.stringify({ fen: start, moves }) });
      return (await answer.json()).played.map((move) => move.uci);
    },
    [fen, sans],
  );
}

/** Waits until more than `known` moves are played. */
async function movesAfter(known) {
  await page.waitForFunction(
    (count) => {
      const text = document.querySelector('.move-text').textContent;
      return text.split(/\s+/).filter((word) => word !== '' && !/^\d+[.…]+$/.test(word)).length > count;
    },
    known,
  );
}

test('the skip link focuses the content', async () => {
  await lab.open('runs');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
  for (const nowhere of ['constructor', '%']) {
    await page.goto(`${lab.url}/#/${nowhere}`);
    await page.getByText('There is no such page').waitFor();
  }
});

test('a training is started, watched and stopped', async () => {
  await lab.open('runs');
  await inspect(page, 'runs-empty');
  await page.getByRole('button', { name: 'New training' }).click();
  await page.getByLabel('Name').fill('first');
  await page.getByLabel('Minutes').fill('5');
  await page.getByLabel('Preset').selectOption('tiny');
  await page.getByLabel('Threads').fill('1');
  // On a fast machine such a small network soon plays only draws, which would end the run.
  await page.getByLabel('Extra settings').fill('guards.patience=1000000');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.locator('.state-training').waitFor();
  const loss = page.locator('figure', { hasText: 'Value loss' });
  await loss.waitFor();
  const latest = loss.locator('.chart-latest');
  const first = await latest.textContent();
  // The curve is updated without user action.
  await page.waitForFunction(
    ([text]) => [...document.querySelectorAll('figure')].some((figure) => figure.textContent.includes('Value loss') && figure.querySelector('.chart-latest').textContent !== text),
    [first],
  );
  await page.locator('.glance piece').first().waitFor();
  await page.getByText('Latest finished game').waitFor();
  await inspect(page, 'run-live');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.locator('.state-stopped').waitFor();
  await inspect(page, 'run');
  await lab.open('runs');
  await page.getByRole('link', { name: 'first' }).waitFor();
  await page.locator('.facts', { hasText: 'of 5 min' }).waitFor();
  await inspect(page, 'runs');
});

test('a resumed run stops after the given minutes', async () => {
  await lab.open('run/first');
  await page.getByRole('button', { name: 'Resume' }).click();
  const dialog = page.getByRole('dialog');
  const minutes = dialog.getByLabel('More minutes');
  const left = Number(await minutes.inputValue());
  assert.ok(left > 0 && left < 5, `${left} minutes are left of five`);
  assert.equal(await dialog.getByLabel('Threads').inputValue(), '1');
  await inspect(page, 'resume');
  await minutes.fill('0.1');
  await dialog.getByRole('button', { name: 'Resume' }).click();
  await page.locator('.state-training').waitFor();
  await page.locator('.tiles dt', { hasText: 'Remaining' }).waitFor();
  await page.locator('.state-stopped').waitFor();
  await page.getByText('the budget is spent').waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await dialog.getByText('; the budget is spent.').waitFor();
  await page.keyboard.press('Escape');
});

test('a wrong setting is reported in the form, which stays open', async () => {
  await lab.open('runs');
  await page.getByRole('button', { name: 'New training' }).click();
  await page.getByLabel('Name').fill('wrong');
  await page.getByLabel('Extra settings').fill('selfplay.nonsense=1');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('alert').filter({ hasText: 'nonsense' }).waitFor();
  assert.equal(await page.getByLabel('Name').inputValue(), 'wrong');
  assert.equal(await page.evaluate(async () => (await fetch('/api/runs/wrong')).status), 404);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

/** Opens the run page with stubbed responses. */
async function openStubbed(detail, curves, openGames) {
  const tab = await lab.tab();
  tab.setDefaultTimeout(60_000);
  const run = {
    name: 'stub', learner: 'zero', seed: 1, state: 'training', reason: null, age_s: 24, recorded_s: 1, elapsed_s: 0,
    trained_s: 24, budget: { minutes: 2, games: null, steps: null, is_spent: false }, threads: 1, generation: 0, games: 0,
    positions: 0, simulations: 0, steps: 0, searches_tree: true, checkpoints: [], rating: null, alarm_count: 0, spark: [],
    spark_of: 'loss.value', error: null, ratings: [], alarms: [], notes: [], warnings: [], config: {}, said: [],
    charts: [], mistakes: null, ...detail,
  };
  const empty = { records: 1, place: '0', elapsed_s: [], generation: [], games: [], positions: [], simulations: [], steps: [], values: {} };
  const answers = {
    '/api/runs/stub': run,
    '/api/runs/stub/curves': { ...empty, ...curves },
    '/api/runs/stub/games': { sealed: [], open: 1, open_games: openGames },
    '/api/runs/stub/games/latest': null,
    '/api/runs/stub/live': [],
  };
  await tab.route('**/api/runs/stub**', (route) => {
    const answer = answers[new URL(route.request().url()).pathname];
    return answer === undefined ? route.abort() : route.fulfill({ json: answer });
  });
  await tab.goto(`${lab.url}/#/run/stub`);
  return tab;
}

test('the resume form shows the bounds that still apply', async () => {
  const budget = { minutes: 2, games: 1000, steps: 500, is_spent: true };
  for (const [steps, text] of [[20, 'It also stops at 1,000 games or 500 steps, as before.'], [500, 'It also stops at 1,000 games, as before.']]) {
    const tab = await openStubbed({ state: 'stopped', budget, games: 40, steps }, {}, 0);
    await tab.getByRole('button', { name: 'Resume' }).click();
    await tab.getByRole('dialog').getByText(text, { exact: true }).waitFor();
    await tab.context().close();
  }
});

test('during the first generation totals are dashes and the time is shown', async () => {
  const tab = await openStubbed({}, {}, 12);
  await tab.getByText('The first generation is being played: 12 games are finished.').waitFor();
  const tiles = await tab.locator('.tiles > div').allTextContents();
  assert.deepEqual(tiles, ['Generation–', 'Games–', 'Positions–', 'Simulations–', 'Training steps–', 'Trained24 s of 2 min', 'Remaining1 min 36 s', 'Elo–']);
  await tab.context().close();
});

test('charts are those of the learner, and shares of few games are counts', async () => {
  const values = { draw_share: [1], truncated_share: [0.875], 'loss.value': [0.5] };
  const one = { elapsed_s: [30], generation: [1], games: [16], positions: [900], simulations: [9], steps: [4], values };
  const charts = [
    { title: 'Error', hint: 'how far it is from its targets', unit: 'number', curves: [{ metric: 'loss.value', label: '' }] },
    {
      title: 'Results', hint: 'of all games', unit: 'share',
      curves: [{ metric: 'draw_share', label: 'drawn' }, { metric: 'truncated_share', label: 'truncated' }],
    },
    { title: 'Nothing yet', hint: 'no numbers', unit: 'amount', curves: [{ metric: 'evaluation.score', label: '' }] },
  ];
  let tab = await openStubbed({ charts }, one, 0);
  const latest = (title) => tab.locator('figure', { hasText: title }).locator('.chart-latest');
  await latest('Results').waitFor();
  assert.equal(await latest('Results').textContent(), 'drawn 2 of 2truncated 14 of 16');
  await tab.getByText('how far it is from its targets').waitFor();
  assert.equal(await tab.locator('figure', { hasText: 'Nothing yet' }).isVisible(), false);
  await tab.context().close();
  tab = await openStubbed({ charts }, { ...one, games: [1600] }, 0);
  await latest('Results').waitFor();
  assert.equal(await latest('Results').textContent(), 'drawn 100\u00a0%truncated 88\u00a0%');
  await tab.context().close();
});

test('a hidden tab sends no requests', async () => {
  const tab = await lab.tab();
  await tab.clock.install();
  let asked = 0;
  tab.on('request', (request) => {
    if (request.url().includes('/api/')) asked += 1;
  });
  const see = (isHidden) =>
    tab.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  // Each text comes from the last response that the page waits for.
  const texts = [
    ['runs', 'first'],
    ['run/first', 'Training steps'],
    ['arena', 'No matches have been played yet'],
    ['endgame', 'No endgame has been trained yet'],
  ];
  for (const [path, shown] of texts) {
    await tab.goto(`${lab.url}/#/${path}`);
    await tab.getByText(shown).first().waitFor();
    await see(true);
    asked = 0;
    await tab.clock.runFor(60_000);
    assert.equal(asked, 0, `${path} in a hidden tab`);
    const again = tab.waitForRequest(/\/api\//);
    await see(false);
    await again;
  }
  // A page that is opened in a hidden tab waits until the tab is visible.
  await see(true);
  await tab.goto(`${lab.url}/#/runs`);
  await tab.getByRole('heading', { name: 'Runs' }).waitFor();
  asked = 0;
  await tab.clock.runFor(60_000);
  assert.equal(asked, 0, 'runs, opened in a hidden tab');
  assert.equal(await tab.getByRole('link', { name: 'first' }).count(), 0);
  await see(false);
  await tab.getByRole('link', { name: 'first' }).waitFor();
  await tab.context().close();
});

test('an unreachable server is reported', async () => {
  const tab = await lab.tab();
  await tab.route('**/api/runs', (route) => route.abort());
  await tab.goto(`${lab.url}/#/runs`);
  await tab.getByText('The server does not answer. Is `selfmate serve` still running?').waitFor();
  assert.equal(await tab.getByText('Failed to fetch').count(), 0);
  await tab.context().close();
});

test('long texts do not make a page wider than its window', async () => {
  const long = 'x'.repeat(100_000);
  const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const put = (locator) =>
    locator.evaluate((input, text) => {
      // Bypasses the maximum length of the field.
      input.value = text;
    }, long);
  await newGame({ player: 'random' });
  await put(page.getByLabel('Type a move'));
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await status().filter({ hasText: 'is not a legal move' }).waitFor();
  assert.ok((await tooWide()) <= 1, `${await tooWide()} pixels too wide after a typed move`);
  await put(page.getByLabel('Start position (FEN)'));
  await page.getByRole('button', { name: 'New game' }).click();
  await page.locator('form.card').getByRole('alert').waitFor();
  assert.ok((await tooWide()) <= 1, `${await tooWide()} pixels too wide after a FEN`);
  await lab.open('inside');
  await put(page.getByLabel('Position (FEN)', { exact: true }));
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('alert').waitFor();
  assert.ok((await tooWide()) <= 1, `${await tooWide()} pixels too wide inside`);
  await lab.open(`run/${'y'.repeat(3000)}`);
  await page.getByRole('alert').waitFor();
  assert.ok((await tooWide()) <= 1, `${await tooWide()} pixels too wide for a run`);
});

test('a page opened with the keyboard has no focus ring around its content', async () => {
  await lab.open('runs');
  await page.getByRole('link', { name: 'Arena' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Arena' }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  assert.equal(await page.locator('main').evaluate((main) => getComputedStyle(main).outlineStyle), 'none');
});

test('games of a run are listed and replayed', async () => {
  await lab.open('games/first');
  const rows = page.locator('.game-list button');
  await rows.first().waitFor();
  // The generation that was interrupted by the stop may have only one game.
  const generation = page.getByLabel('Generation');
  await generation.fill(await generation.getAttribute('min'));
  await generation.press('Enter');
  const opened = (number) => page.locator('.game-list [aria-current]', { hasText: new RegExp(`^${number}$`) });
  await opened(0).waitFor();
  await rows.nth(1).click();
  await opened(1).waitFor();
  await page.getByRole('button', { name: 'Go to the end' }).click();
  await page.locator('.move[aria-current]').waitFor();
  await page.getByRole('button', { name: 'Previous move' }).click();
  await inspect(page, 'games');
});

test('a game is won with the mouse and reviewed', async () => {
  await newGame({ player: 'random' });
  for (;;) {
    await status().filter({ hasText: /Your move|by / }).waitFor();
    if (/ by /.test(await status().textContent())) break;
    const moves = await playedMoves(null);
    await playByMouse(page, await bestMove(null, moves));
    await movesAfter(moves.length);
  }
  assert.match(await status().textContent(), /1-0 by checkmate\. You won\./);
  await inspect(page, 'play-won');
  await page.getByRole('button', { name: 'Review the game' }).click();
  await page.locator('.replay .eval-graph').waitFor();
  await inspect(page, 'review');
});

test('a game is won with the keyboard', async () => {
  await newGame({ player: 'random' });
  let cursor = 'e2';
  for (;;) {
    await status().filter({ hasText: /Your move|by / }).waitFor();
    if (/ by /.test(await status().textContent())) break;
    const moves = await playedMoves(null);
    cursor = await playByKeys(page, await bestMove(null, moves), cursor);
    await movesAfter(moves.length);
  }
  assert.match(await status().textContent(), /1-0 by checkmate\. You won\./);
});

test('a game is won with a typed move', async () => {
  const fen = '6k1/8/6K1/8/8/8/8/R7 w - - 0 1';
  await newGame({ player: 'random', fen });
  await playByKeys(page, 'a1a8', 'e2');
  await status().filter({ hasText: '1-0 by checkmate' }).waitFor();
  await newGame({ player: 'random', fen });
  await page.getByLabel('Type a move').fill('Ra8');
  await page.getByRole('button', { name: 'Move', exact: true }).click();
  await status().filter({ hasText: '1-0 by checkmate' }).waitFor();
});

test('castling, promotion and takeback', async () => {
  await newGame({ player: 'random', fen: 'r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1' });
  await playByMouse(page, 'e1g1');
  await page.locator('.move-text', { hasText: 'O-O' }).waitFor();
  await status().filter({ hasText: /Your move|by / }).waitFor();
  await page.getByRole('button', { name: 'Take back' }).click();
  await page.locator('.move-text', { hasText: 'No moves yet.' }).waitFor();
  await newGame({ player: 'random', fen: '7k/P7/8/8/8/8/8/K7 w - - 0 1' });
  await playByMouse(page, 'a7a8n');
  await page.locator('.move-text', { hasText: 'a8=N' }).waitFor();
  await page.getByRole('button', { name: 'Take back' }).click();
  await page.locator('.move-text', { hasText: 'No moves yet.' }).waitFor();
  await playByKeys(page, 'a7a8q', 'e2');
  await page.locator('.move-text', { hasText: 'a8=Q' }).waitFor();
});

test('a trained run plays and hints are shown', async () => {
  await newGame({ player: 'run:first', side: 'black', strength: 'sims:100' });
  await status().filter({ hasText: 'Your move' }).waitFor();
  await page.getByRole('button', { name: 'Hint' }).click();
  await status().filter({ hasText: 'Hint: ' }).waitFor();
  await page.locator('.play-side table').waitFor();
  await inspect(page, 'play');
});

test('the tree of a search is shown', async () => {
  await lab.open('inside');
  await page.getByLabel('Simulations').selectOption('256');
  await page.getByRole('button', { name: 'Search' }).click();
  for (const rule of ['PUCT', 'Gumbel']) {
    const column = page.getByRole('region', { name: rule });
    await column.getByRole('button', { name: 'root' }).click();
    const child = column.locator('.tree ul .node').first();
    await child.click();
    await column.locator('.tree ul ul li').first().waitFor();
  }
  await inspect(page, 'inside');
});

test('only players with tree search are offered', async () => {
  await lab.open('inside?player=random');
  // A typed spec may name any player.
  await page.getByLabel('Player spec').waitFor();
  const offered = await page.getByLabel('Player to inspect').locator('option').evaluateAll((options) => options.map(({ value }) => value));
  assert.ok(offered.includes('run:first') && offered.includes('material') && !offered.includes('greedy'), offered.join());
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('alert').filter({ hasText: 'does not use tree search' }).waitFor();
  assert.equal(await page.getByText('Searching…').count(), 0);
});

test('search results are labelled with their scale and side', async () => {
  await lab.open(`inside?player=material&fen=${encodeURIComponent('6k1/8/6K1/8/8/8/8/R7 w - - 0 1')}`);
  await page.getByRole('button', { name: 'Search' }).click();
  const column = page.getByRole('region', { name: 'PUCT' });
  await column.getByRole('button', { name: 'root' }).waitFor();
  await column.getByText('Plays Ra8# · Q of this move +1.00 · proven win for White').waitFor();
  await column.getByText(/^\d+ simulations of 1,024: the result is proven, so the search stopped\./).waitFor();
  await column.getByText('Q and mean: the result that White expects, from −1 (lost) to +1 (won).').waitFor();
  await column.getByRole('columnheader', { name: 'Q (White, −1 to +1)' }).waitFor();
  await inspect(page, 'inside-proven');
  // Values are for the side to move at the root on every level of the tree.
  await lab.open(`inside?player=material&fen=${encodeURIComponent('4k3/8/8/8/8/8/3q4/K6R b - - 0 1')}`);
  await page.getByRole('button', { name: 'Search' }).click();
  await column.getByText('the result that Black expects').waitFor();
  await column.getByRole('button', { name: 'root' }).click();
  await column.locator('.tree ul .node').first().click();
  const below = column.locator('.tree ul ul li .hint').first();
  await below.waitFor();
  assert.match(await below.textContent(), /Q \+0\.\d\d \(Black\)/);
});

test('an Elo difference of few games is shown as an interval', async () => {
  const report = {
    a: 'greedy', b: 'random', games: 2, wins: 2, draws: 0, losses: 0, score: 1, elo: 190.8, elo_error: null, elo_low: -216.4,
    elo_high: null, elo_is_bound: true, los: 0.5, pentanomial: [0, 0, 0, 0, 1], terminations: {}, is_finished: true,
  };
  const match = (id, changes) => ({ id, state: 'finished', error: null, total: 2, limit: '-', report: { ...report, ...changes }, games: [] });
  const all = [
    match('000001', {}),
    match('000002', { wins: 0, losses: 2, score: 0, elo: -190.8, elo_low: null, elo_high: 216.4 }),
    match('000003', { wins: 0, draws: 2, score: 0.5, elo: 0, elo_low: -216.4, elo_high: 216.4, elo_is_bound: false }),
    match('000004', { games: 40, wins: 30, losses: 10, score: 0.75, elo: 190.8, elo_error: 120, elo_low: 80.2, elo_high: 320, elo_is_bound: false }),
    match('000005', { games: 4, wins: 3, draws: 1, score: 0.875, elo: 338, elo_error: 160, elo_low: 149, elo_high: 470, elo_is_bound: false }),
  ];
  const tab = await lab.tab();
  await tab.route('**/api/matches**', (route) => {
    const id = route.request().url().split('/').at(-1);
    return route.fulfill({ json: all.find((found) => found.id === id) ?? all });
  });
  await tab.goto(`${lab.url}/#/arena`);
  const row = (number) => tab.getByRole('row', { name: `№ ${number}` });
  await row(1).filter({ hasText: '−216 or more' }).waitFor();
  await row(2).filter({ hasText: '+216 or less' }).waitFor();
  await row(3).filter({ hasText: '−216 to +216' }).waitFor();
  await row(4).filter({ hasText: '+191 (+80 to +320)' }).waitFor();
  await row(5).filter({ hasText: 'too few games' }).waitFor();
  assert.equal(await tab.getByText('beyond').count(), 0);
  await row(1).getByRole('link').click();
  await tab.getByText('2 of 2 points · Elo difference (95\u00a0%): −216 or more').waitFor();
  assert.equal(await tab.getByText('first player is stronger').count(), 0);
  await tab.context().close();
});

test('a match is played and one of its games replayed', async () => {
  await lab.open('arena');
  await page.getByLabel('First player').selectOption('greedy');
  await page.getByLabel('Second player').selectOption('random');
  await page.getByLabel('Games per pair').fill('4');
  // By default all players have the same time.
  const order = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/api/matches'));
  await page.getByRole('button', { name: 'Start' }).click();
  assert.equal((await order).postDataJSON().movetime_ms, 100);
  await page.getByText('finished').waitFor();
  await inspect(page, 'arena');
  await page.getByRole('link', { name: '№ 1' }).click();
  await page.locator('.replay .move').first().waitFor();
  await page.getByRole('button', { name: 'Next move' }).click();
  await inspect(page, 'match');
});

test('on a phone a game is replayed and a move is played by touch', async () => {
  const phone = await lab.phone();
  phone.setDefaultTimeout(60_000);
  await phone.goto(`${lab.url}/#/match/000001`);
  const moves = phone.locator('.replay .move');
  await moves.first().waitFor();
  const current = phone.locator('.replay .move[aria-current]');
  await phone.getByRole('button', { name: 'Next move' }).tap();
  assert.equal(await current.textContent(), await moves.first().textContent());
  await moves.nth(3).tap();
  assert.equal(await current.textContent(), await moves.nth(3).textContent());
  await phone.getByRole('button', { name: 'Previous move' }).tap();
  assert.equal(await current.textContent(), await moves.nth(2).textContent());
  await phone.goto(`${lab.url}/#/play?player=random`);
  await phone.locator('.game-status', { hasText: 'Your move' }).waitFor();
  await playByTouch(phone, 'e2e4');
  await phone.locator('.move-text', { hasText: 'e4' }).waitFor();
  await phone.context().close();
});

test('an endgame is shown beside its tablebase', async () => {
  await lab.open('endgame');
  await page.getByText('No endgame has been trained yet').waitFor();
  await page.evaluate(async () => {
    const order = { name: 'rook', learner: 'krk', preset: 'tiny', games: 60, seed: 1, threads: 1 };
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch('/api/runs', { method: 'POST', headers, body: JSON.stringify(order) });
    if (answer.status !== 201) throw new Error(await answer.text());
  });
  // The page finds the new run by itself.
  const learned = page.getByRole('grid', { name: 'Learned' });
  const tablebase = page.getByRole('grid', { name: 'Tablebase' });
  await page.getByText('Mean error').waitFor();
  // Black's king captures the unprotected rook.
  await page.getByLabel('White’s king on').fill('a1');
  await page.getByLabel('White’s rook on').fill('h8');
  await page.getByLabel('To move').selectOption('black');
  await tablebase.getByLabel('g7: 0 tablebase, a draw').click();
  const detail = page.locator('.ending-detail');
  await detail.getByRole('row', { name: 'Kxh8' }).waitFor();
  await detail.locator('.board piece').first().waitFor();
  // With the keyboard: one square to the left, where the rook is safe.
  await learned.locator('[tabindex="0"]').focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Enter');
  await detail.getByRole('heading', { name: /on f7, Black to move/ }).waitFor();
  await detail.getByText('White mates in').first().waitFor();
  await inspect(page, 'endgame');
});

test('a server with a token asks for it again after a wrong one', async () => {
  const token = 'the-token-of-this-test';
  const guarded = await openLab({ token });
  try {
    await guarded.open('play');
    const board = guarded.page.locator('.game-status');
    for (const given of ['a-token-that-is-not-it', token]) {
      await guarded.page.getByLabel('Token').fill(given);
      await guarded.page.getByRole('button', { name: 'Use this token' }).click();
      if (given !== token) await guarded.page.getByText('need the token of this server').waitFor();
    }
    await board.filter({ hasText: 'Your move' }).waitFor();
    assert.equal(await guarded.page.getByLabel('Token').count(), 0);
    assert.deepEqual(guarded.faults, []);
  } finally {
    await guarded.close();
  }
});

test('the page caused no errors', () => {
  assert.deepEqual(lab.faults, []);
});
