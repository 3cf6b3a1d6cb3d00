// Playing with mistakes: invalid positions and players, leaving in the middle, taking moves back.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { beginGame, inspect, labForTests, playByMouse } from './lab.mjs';

const MATE_IN_ONE = '6k1/8/6K1/8/8/8/8/R7 w - - 0 1';

let page;
const lab = labForTests((opened) => {
  page = opened;
});

const status = () => page.locator('.game-status');
const moves = () => page.locator('.move-text');
const bar = () => page.locator('.eval-bar');
const table = () => page.locator('table.search-info');
const dialog = () => page.getByRole('dialog');
const yourMove = () => status().filter({ hasText: 'Your move' }).waitFor();
const button = (name) => page.getByRole('button', { name, exact: true });

/** Starts a game in a tab without a saved game. */
async function fresh(query) {
  await lab.open('runs');
  await page.evaluate(() => sessionStorage.clear());
  await lab.open(`play?${new URLSearchParams(query)}`);
  await status().filter({ hasText: /Your move|thinking/ }).waitFor();
}

async function type(move) {
  await page.getByLabel('Type a move').fill(move);
  await button('Move').click();
}

/** Records the search requests of the page from now on. */
function searchRequests() {
  const bodies = [];
  const listen = (request) => {
    if (request.url().endsWith('/api/search')) bodies.push(request.postDataJSON());
  };
  page.on('request', listen);
  return { bodies, stop: () => page.off('request', listen) };
}

/** Until a request has been answered to its end or was broken off. */
function ended(request) {
  return new Promise((resolve) => {
    for (const event of ['requestfinished', 'requestfailed']) {
      page.on(event, (other) => { if (other === request) resolve(event); });
    }
  });
}

test('a rejected position or player leaves the game unchanged', async () => {
  await fresh({ player: 'random' });
  await type('e4');
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  await yourMove();
  const soFar = await moves().textContent();
  const form = page.locator('form.card');
  await page.getByLabel('Start position (FEN)').fill('nonsense');
  await button('New game').click();
  await form.getByRole('alert').waitFor();
  assert.equal(await dialog().count(), 0, 'no confirmation is asked for a rejected game');
  assert.equal(await moves().textContent(), soFar);
  await page.getByLabel('Start position (FEN)').fill('');
  await page.getByLabel('Opponent', { exact: true }).selectOption('');
  await page.getByLabel('Player spec').fill('nonsense');
  await button('New game').click();
  await form.getByRole('alert').filter({ hasText: 'nonsense' }).waitFor();
  assert.equal(await moves().textContent(), soFar);
  assert.equal(await status().textContent(), 'Your move.');
  // The game can be continued.
  await playByMouse(page, 'd2d4');
  await moves().filter({ hasText: '2. d4' }).waitFor();
});

test('a game is saved in its tab and replaced only after confirmation', async () => {
  await fresh({ player: 'random' });
  await type('e4');
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  await yourMove();
  const soFar = await moves().textContent();
  const isKept = async () => {
    await moves().filter({ hasText: '1. e4' }).waitFor();
    assert.equal(await moves().textContent(), soFar);
  };
  await page.getByRole('link', { name: 'Runs' }).click();
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
  await page.getByRole('link', { name: 'Play', exact: true }).click();
  await isKept();
  await page.reload();
  await isKept();
  await button('New game').click();
  await dialog().getByRole('button', { name: 'Continue this game' }).click();
  await isKept();
  // A URL for another game asks too.
  await lab.open('play?player=greedy');
  await dialog().filter({ hasText: 'The game against random is not over' }).waitFor();
  await inspect(page, 'play-ask');
  await page.keyboard.press('Escape');
  await isKept();
  await button('Resign').click();
  await dialog().getByRole('button', { name: 'Keep playing' }).click();
  assert.equal(await status().textContent(), 'Your move.');
  await button('Resign').click();
  await dialog().getByRole('button', { name: 'Resign' }).click();
  await status().filter({ hasText: '0-1 by resignation. You lost.' }).waitFor();
  await page.reload();
  await status().filter({ hasText: '0-1 by resignation' }).waitFor();
  // A finished game is replaced without asking.
  await button('New game').click();
  await moves().filter({ hasText: 'No moves yet.' }).waitFor();
  assert.equal(await dialog().count(), 0);
});

test('a failed request for a move can be repeated', async () => {
  await fresh({ player: 'random' });
  await page.route('**/api/search', (route) => route.abort());
  await type('e4');
  await page.getByRole('alert').filter({ hasText: 'The server does not answer' }).waitFor();
  await status().filter({ hasText: 'random did not move' }).waitFor();
  await page.unroute('**/api/search');
  await button('Try again').click();
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  // A move that did not reach the server is not played.
  const soFar = await moves().textContent();
  await page.route('**/api/position', (route) => route.abort());
  await yourMove();
  await playByMouse(page, 'd2d4');
  await page.getByRole('alert').filter({ hasText: 'The server does not answer' }).waitFor();
  assert.equal(await moves().textContent(), soFar);
  await page.unroute('**/api/position');
  await button('Try again').click();
  await moves().filter({ hasText: '2. d4' }).waitFor();
});

test('the opponent can move after a failed take back', async () => {
  await fresh({ player: 'random' });
  // The opponent searches until the page aborts the request.
  await page.route('**/api/search', () => {});
  await type('e4');
  await status().filter({ hasText: 'random is thinking' }).waitFor();
  await page.route('**/api/position', (route) => route.abort());
  await button('Take back').click();
  await status().filter({ hasText: 'It is random’s turn.' }).waitFor();
  await button('Try again').waitFor();
  await page.unroute('**/api/position');
  await page.unroute('**/api/search');
  await button('Let the opponent move').click();
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  await yourMove();
  assert.equal(await button('Try again').count(), 0);
});

test('a hint requested while a move is being sent is not shown in the next position', async () => {
  await fresh({ player: 'random' });
  let letGo;
  const held = new Promise((resolve) => { letGo = resolve; });
  await page.route('**/api/position', async (route) => {
    await held;
    await route.continue();
  });
  await type('e4');
  const asked = page.waitForRequest('**/api/search');
  await button('Hint').click();
  const over = ended(await asked);
  await table().waitFor();
  letGo();
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  await page.unroute('**/api/position');
  await yourMove();
  await over;
  // What it still brought is drawn by the next frame.
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  assert.equal(await table().count(), 0);
  assert.equal(await status().textContent(), 'Your move.');
  const kept = await page.evaluate(() => JSON.parse(sessionStorage.getItem('selfmate-game')).played.length);
  assert.equal(kept, 2);
});

test('a saved game that cannot be restored is not replaced without asking', async () => {
  await fresh({ player: 'random' });
  await type('e4');
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  await yourMove();
  const soFar = await moves().textContent();
  const kept = () => page.evaluate(() => sessionStorage.getItem('selfmate-game'));
  const before = await kept();
  // Only the saved game has moves.
  await page.route('**/api/position', (route) => (route.request().postDataJSON().moves.length > 0 ? route.abort() : route.continue()));
  await lab.open('play?player=greedy');
  await button('Try again').waitFor();
  assert.equal(await dialog().count(), 0);
  await button('New game').click();
  await dialog().filter({ hasText: 'The game against random is not over' }).waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await kept(), before);
  await page.unroute('**/api/position');
  await button('Try again').click();
  // The URL still asks for its game.
  await dialog().getByRole('button', { name: 'Continue this game' }).click();
  assert.equal(await moves().textContent(), soFar);
});

test('the evaluation bar follows the game', async () => {
  const label = () => bar().getAttribute('aria-label');
  await fresh({ player: 'random', fen: MATE_IN_ONE });
  assert.equal(await label(), 'Evaluation: none yet');
  await button('Hint').click();
  await status().filter({ hasText: 'Hint: Ra8#' }).waitFor();
  assert.equal(await label(), 'Evaluation: White expects +1.00 (−1 lost, +1 won)');
  await beginGame(page);
  await yourMove();
  assert.equal(await label(), 'Evaluation: none yet');
  await type('Ra8');
  await status().filter({ hasText: '1-0 by checkmate' }).waitFor();
  assert.equal(await label(), 'Evaluation: White expects +1.00 (−1 lost, +1 won)');
  await button('Take back').click();
  await yourMove();
  assert.equal(await label(), 'Evaluation: none yet');
  // A hint belongs to its position.
  await button('Hint').click();
  await status().filter({ hasText: 'Hint: ' }).waitFor();
  await table().waitFor();
  await type('Ra2');
  await moves().filter({ hasText: /1\. Ra2 \S+/ }).waitFor();
  await yourMove();
  assert.equal(await table().count(), 0);
  await button('Hint').click();
  await status().filter({ hasText: 'Hint: ' }).waitFor();
  await table().waitFor();
  await button('Take back').click();
  await moves().filter({ hasText: 'No moves yet.' }).waitFor();
  assert.equal(await table().count(), 0);
  // White's share is on White's side of the board.
  const whiteIsBelow = () =>
    page.evaluate(() => {
      const [whole, white] = ['.eval-bar', '.eval-white'].map((name) => document.querySelector(name).getBoundingClientRect());
      return Math.abs(whole.bottom - white.bottom) < 4;
    });
  await fresh({ player: 'alphabeta:depth=2', side: 'black' });
  await yourMove();
  assert.match(await label(), /^Evaluation: White expects/);
  assert.equal(await whiteIsBelow(), false);
  await button('Flip the board').click();
  assert.equal(await whiteIsBelow(), true);
});

test('the opponent searches one line and its move comes first in the table', async () => {
  const last = async () => (await moves().textContent()).trim().split(/\s+/).at(-1);
  const row = () => table().locator('tbody tr').first();
  await fresh({ player: 'alphabeta:depth=5' });
  await page.getByLabel('Strength').selectOption('');
  await beginGame(page);
  await yourMove();
  const asked = searchRequests();
  await type('e4');
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  // The other lines come from a separate player after the move.
  await table().locator('tbody tr').nth(3).waitFor();
  const [play, beside] = asked.bodies;
  assert.deepEqual([play.lines, beside.lines], [1, 4]);
  assert.notEqual(play.seed, beside.seed);
  assert.equal(await row().getAttribute('class'), 'chosen');
  assert.equal(await row().locator('th').textContent(), await last());
  await inspect(page, 'play-search');
  // With the table hidden there is no second request.
  asked.bodies.length = 0;
  await page.getByLabel('Show the opponent’s search').uncheck();
  assert.equal(await table().count(), 0);
  await type('d3');
  await moves().filter({ hasText: /2\. d3 \S+/ }).waitFor();
  await yourMove();
  assert.deepEqual(asked.bodies.map(({ lines }) => lines), [1]);
  asked.stop();
});

test('a tree search reports its own lines, without scores for unvisited moves', async () => {
  await fresh({ player: 'material' });
  await page.getByLabel('Strength').selectOption('sims:1');
  await beginGame(page);
  await yourMove();
  const asked = searchRequests();
  await type('e4');
  await moves().filter({ hasText: /1\. e4 \S+/ }).waitFor();
  await yourMove();
  await table().locator('tbody tr.chosen').waitFor();
  assert.deepEqual(asked.bodies.map(({ lines }) => lines), [4]);
  asked.stop();
  const scores = await table().locator('tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll('td')].slice(0, 2).map((cell) => cell.textContent)),
  );
  assert.equal(scores.length, 4);
  for (const [score, visits] of scores) assert.equal(score === '–', visits === '0', `${score} after ${visits} visits`);
});

test('a warning names the checkpoint that plays when the newest is damaged', async () => {
  const train = ['--runs', lab.runs, 'train', 'zero', '--run', 'hurt', '--preset', 'tiny', '--games', '128', '--plain'];
  execFileSync(process.env.SELFMATE, train, { stdio: 'ignore' });
  const checkpoints = join(lab.runs, 'hurt', 'checkpoints');
  const steps = readdirSync(checkpoints).map(Number).sort((a, b) => a - b);
  assert.ok(steps.length >= 2, `${steps.length} checkpoints`);
  const [older, newest] = steps.slice(-2);
  truncateSync(join(checkpoints, String(newest), 'model.safetensors'), 100);
  await fresh({ player: 'run:hurt' });
  await yourMove();
  await type('e4');
  await yourMove();
  const warning = page.getByText(`step ${older} is used instead`);
  await warning.waitFor();
  assert.match(await warning.textContent(), new RegExp(`${newest}.*model\\.safetensors`));
});

test('the page caused no errors', () => {
  assert.deepEqual(lab.faults, []);
});
