// The lab in a real browser: train, watch, play, look inside, compare.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { inspect, openLab, playByKeys, playByMouse, playByTouch } from './lab.mjs';

let lab;
let page;

before(async () => {
  lab = await openLab();
  ({ page } = lab);
  page.setDefaultTimeout(60_000);
});

after(async () => {
  await lab?.close();
});

const status = () => page.locator('.game-status');

/** Begins a game with the form of the play page. */
async function newGame({ player, side = 'white', fen = '', strength = 'sims:16' }) {
  await lab.open(`play?player=${encodeURIComponent(player)}&fen=${encodeURIComponent(fen)}`);
  await page.getByLabel('You play').selectOption(side);
  await page.getByLabel('Strength').selectOption(strength);
  await page.getByRole('button', { name: 'New game' }).click();
  await status().filter({ hasText: /Your move|thinks/ }).waitFor();
}

/** The moves so far, as the page shows them to the server. */
async function bestMove(fen, moves) {
  return page.evaluate(
    async ([start, played]) => {
      const body = JSON.stringify({ player: 'alphabeta', fen: start, moves: played, effort: { depth: 4 } });
      const headers = { 'Content-Type': 'application/json' };
      const answer = await fetch('/api/think', { method: 'POST', headers, body });
      const lines = (await answer.text()).trim().split('\n').map((line) => JSON.parse(line));
      return lines.at(-1).played.uci;
    },
    [fen, moves],
  );
}

async function playedMoves(fen) {
  const text = (await page.locator('.move-text').textContent()) ?? '';
  const sans = text.replace('No move yet.', '').split(/\s+/).filter((word) => word !== '' && !/^\d+[.…]+$/.test(word));
  return page.evaluate(
    async ([start, moves]) => {
      const headers = { 'Content-Type': 'application/json' };
      const answer = await fetch('/api/position', { method: 'POST', headers, body: JSON.stringify({ fen: start, moves }) });
      return (await answer.json()).played.map((move) => move.uci);
    },
    [fen, sans],
  );
}

/** Waits until more moves than these are played. */
async function movesAfter(known) {
  await page.waitForFunction(
    (count) => {
      const text = document.querySelector('.move-text').textContent;
      return text.split(/\s+/).filter((word) => word !== '' && !/^\d+[.…]+$/.test(word)).length > count;
    },
    known,
  );
}

test('the link to the content leads there', async () => {
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

test('a training is started, seen to learn, and stopped', async () => {
  await lab.open('runs');
  await inspect(page, 'runs-empty');
  await page.getByRole('button', { name: 'New training' }).click();
  await page.getByLabel('Name').fill('first');
  await page.getByLabel('Minutes').fill('5');
  await page.getByLabel('Settings', { exact: true }).selectOption('tiny');
  await page.getByLabel('Threads').fill('1');
  // On a fast machine so small a network soon knows nothing but draws, and would end the run.
  await page.getByLabel('Single settings').fill('guards.patience=1000000');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.locator('.state-training').waitFor();
  const loss = page.locator('figure', { hasText: 'Loss' });
  await loss.waitFor();
  const latest = loss.locator('.chart-latest');
  const first = await latest.textContent();
  // The curve moves without anything being asked for.
  await page.waitForFunction(
    ([text]) => [...document.querySelectorAll('figure')].some((figure) => figure.textContent.includes('Loss') && figure.querySelector('.chart-latest').textContent !== text),
    [first],
  );
  await page.locator('.glance piece').first().waitFor();
  await page.getByText('The game that ended last').waitFor();
  await inspect(page, 'run-live');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.locator('.state-stopped').waitFor();
  await inspect(page, 'run');
  await lab.open('runs');
  await page.getByRole('link', { name: 'first' }).waitFor();
  await inspect(page, 'runs');
});

test('its games are listed and replayed', async () => {
  await lab.open('games/first');
  const rows = page.locator('.game-list button');
  await rows.first().waitFor();
  // The generation that was being played when the training was stopped may have no more than one.
  const generation = page.getByLabel('Generation');
  await generation.fill(await generation.getAttribute('min'));
  await generation.press('Enter');
  const opened = (number) => page.locator('.game-list [aria-current]', { hasText: new RegExp(`^${number}$`) });
  await opened(0).waitFor();
  await rows.nth(1).click();
  await opened(1).waitFor();
  await page.getByRole('button', { name: 'To the end' }).click();
  await page.locator('.move[aria-current]').waitFor();
  await page.getByRole('button', { name: 'One move back' }).click();
  await inspect(page, 'games');
});

test('a whole game is won with the mouse, and reviewed', async () => {
  await newGame({ player: 'random' });
  for (;;) {
    await status().filter({ hasText: /Your move|by / }).waitFor();
    if (/ by /.test(await status().textContent())) break;
    const moves = await playedMoves(null);
    await playByMouse(page, await bestMove(null, moves));
    await movesAfter(moves.length);
  }
  assert.match(await status().textContent(), /1-0 by checkmate\. You have won\./);
  await inspect(page, 'play-won');
  await page.getByRole('button', { name: 'Review the game' }).click();
  await page.locator('.replay .eval-graph').waitFor();
  await inspect(page, 'review');
});

test('a whole game is won with the keyboard', async () => {
  await newGame({ player: 'random' });
  let cursor = 'e2';
  for (;;) {
    await status().filter({ hasText: /Your move|by / }).waitFor();
    if (/ by /.test(await status().textContent())) break;
    const moves = await playedMoves(null);
    cursor = await playByKeys(page, await bestMove(null, moves), cursor);
    await movesAfter(moves.length);
  }
  assert.match(await status().textContent(), /1-0 by checkmate\. You have won\./);
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
  await page.locator('.move-text', { hasText: 'No move yet.' }).waitFor();
  await newGame({ player: 'random', fen: '7k/P7/8/8/8/8/8/K7 w - - 0 1' });
  await playByMouse(page, 'a7a8n');
  await page.locator('.move-text', { hasText: 'a8=N' }).waitFor();
  await page.getByRole('button', { name: 'Take back' }).click();
  await page.locator('.move-text', { hasText: 'No move yet.' }).waitFor();
  await playByKeys(page, 'a7a8q', 'e2');
  await page.locator('.move-text', { hasText: 'a8=Q' }).waitFor();
});

test('a hint is given and the run that was trained plays', async () => {
  await newGame({ player: 'run:first', side: 'black', strength: 'sims:100' });
  await status().filter({ hasText: 'Your move' }).waitFor();
  await page.getByRole('button', { name: 'Hint' }).click();
  await status().filter({ hasText: 'Hint: ' }).waitFor();
  await page.locator('.play-side table').waitFor();
  await inspect(page, 'play');
});

test('a search is looked into', async () => {
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

test('a match is played and a game of it replayed', async () => {
  await lab.open('arena');
  await page.getByLabel('First player').selectOption('greedy');
  await page.getByLabel('Second player').selectOption('random');
  await page.getByLabel('Games of each pair').fill('4');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByText('finished').waitFor();
  await inspect(page, 'arena');
  await page.getByRole('link', { name: '№ 1' }).click();
  await page.locator('.replay .move').first().waitFor();
  await page.getByRole('button', { name: 'One move on' }).click();
  await inspect(page, 'match');
});

test('on a phone a game is replayed and a move played with a finger', async () => {
  const phone = await lab.phone();
  phone.setDefaultTimeout(60_000);
  await phone.goto(`${lab.url}/#/match/000001`);
  const moves = phone.locator('.replay .move');
  await moves.first().waitFor();
  const current = phone.locator('.replay .move[aria-current]');
  await phone.getByRole('button', { name: 'One move on' }).tap();
  assert.equal(await current.textContent(), await moves.first().textContent());
  await moves.nth(3).tap();
  assert.equal(await current.textContent(), await moves.nth(3).textContent());
  await phone.getByRole('button', { name: 'One move back' }).tap();
  assert.equal(await current.textContent(), await moves.nth(2).textContent());
  await phone.goto(`${lab.url}/#/play?player=random`);
  await phone.locator('.game-status', { hasText: 'Your move' }).waitFor();
  await playByTouch(phone, 'e2e4');
  await phone.locator('.move-text', { hasText: 'e4' }).waitFor();
  await phone.context().close();
});

test('an ending is seen beside the truth', async () => {
  await lab.open('endgame');
  await page.getByText('No ending has been learned yet').waitFor();
  await page.evaluate(async () => {
    const order = { name: 'rook', learner: 'krk', preset: 'tiny', games: 60, seed: 1, threads: 1 };
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch('/api/runs', { method: 'POST', headers, body: JSON.stringify(order) });
    if (answer.status !== 201) throw new Error(await answer.text());
  });
  // The page finds it by itself.
  const learned = page.getByRole('grid', { name: 'Learned' });
  const truth = page.getByRole('grid', { name: 'True' });
  await page.getByText('Mean error').waitFor();
  // The weaker king beside the rook that nobody guards takes it.
  await page.getByLabel('White’s king on').fill('a1');
  await page.getByLabel('White’s rook on').fill('h8');
  await page.getByLabel('To move').selectOption('black');
  await truth.getByLabel('g7: 0 true, a draw').click();
  const detail = page.locator('.ending-detail');
  await detail.getByRole('row', { name: 'Kxh8' }).waitFor();
  await detail.locator('.board piece').first().waitFor();
  // And with the keys: one to the left, where the rook is safe.
  await learned.locator('[tabindex="0"]').focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Enter');
  await detail.getByRole('heading', { name: /on f7, Black to move/ }).waitFor();
  await detail.getByText('White mates in').first().waitFor();
  await inspect(page, 'endgame');
});

test('a server with a token asks for it, and again when it was wrong', async () => {
  const token = 'the-token-of-this-test';
  const guarded = await openLab({ token });
  try {
    await guarded.open('play');
    const board = guarded.page.locator('.game-status');
    for (const given of ['a-token-that-is-not-it', token]) {
      await guarded.page.getByLabel('Token').fill(given);
      await guarded.page.getByRole('button', { name: 'Use it' }).click();
      if (given !== token) await guarded.page.getByText('asks for its token').waitFor();
    }
    await board.filter({ hasText: 'Your move' }).waitFor();
    assert.equal(await guarded.page.getByLabel('Token').count(), 0);
    assert.deepEqual(guarded.faults, []);
  } finally {
    await guarded.close();
  }
});

test('the page did nothing that it should not', () => {
  assert.deepEqual(lab.faults, []);
});
