// A server of our own binary and a real browser, for the tests.
//
// SELFMATE is the binary, CHROMIUM the browser, SCREENSHOTS the folder for pictures.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { chromium } from 'playwright-core';

// Evaluated through the debugger: the page's content security policy lets no script in.
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const pictures = process.env.SCREENSHOTS ?? 'screenshots';

/** Starts everything; `close` ends it. With a token the server asks for it. */
export async function openLab({ token } = {}) {
  const binary = process.env.SELFMATE;
  assert.ok(binary, 'SELFMATE: expected the path of the selfmate binary');
  const runs = mkdtempSync(join(tmpdir(), 'selfmate-e2e-'));
  const env = token === undefined ? process.env : { ...process.env, SELFMATE_TOKEN: token };
  const server = spawn(binary, ['--runs', runs, 'serve', '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'], env });
  const url = await new Promise((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`serve ended with ${code}`)));
    createInterface(server.stdout).once('line', (line) => resolve(line.replace(/^.* at /, '')));
  });
  const front = await fetch(url);
  assert.equal(front.status, 200, await front.text());
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  const faults = [];
  const newPage = async (place) => {
    const opened = await place.newPage();
    opened.on('pageerror', (error) => faults.push(String(error)));
    opened.on('console', (message) => {
      // The content security policy tells what it blocks here.
      if (message.type() === 'error' && /Content Security Policy|Refused/.test(message.text())) faults.push(message.text());
    });
    return opened;
  };
  const page = await newPage(context);
  return {
    page,
    /** A tab of its own, which knows nothing of the others. */
    async tab() {
      return newPage(await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' }));
    },
    /** A page on a phone, to be used with the fingers. */
    async phone() {
      const place = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, reducedMotion: 'reduce' };
      return newPage(await browser.newContext(place));
    },
    url,
    /** The folder of runs. */
    runs,
    /** What the page should never have done. */
    faults,
    async open(path) {
      // Away and back: the page begins afresh, and nothing of the last one is taken for it.
      await page.goto('about:blank');
      await page.goto(`${url}/#/${path}`);
      await page.locator('main h1').first().waitFor();
    },
    async close() {
      await browser.close();
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGINT');
      await ended;
      rmSync(runs, { recursive: true, force: true });
    },
  };
}

/** Pictures in light and dark, wide and narrow, and what axe-core finds in each. */
export async function inspect(page, name) {
  mkdirSync(pictures, { recursive: true });
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [size, width, height] of [['wide', 1280, 900], ['phone', 390, 844]]) {
      await page.setViewportSize({ width, height });
      await page.waitForFunction(() => document.getAnimations().length === 0);
      await page.screenshot({ path: join(pictures, `${name}-${scheme}-${size}.png`), fullPage: true });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 1, `${name} is ${overflow} pixels too wide on a ${size} screen`);
    }
    await page.evaluate(axe);
    const found = await page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, help, nodes }) => `${id}: ${help} (${nodes.map((node) => node.target.join(' ')).slice(0, 3).join('; ')})`);
    });
    assert.deepEqual(found, [], `accessibility of ${name}, ${scheme}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** Begins the game of the form and waits until it is there: the one before stays on the board until then. */
export async function beginGame(page) {
  const seed = () => JSON.parse(sessionStorage.getItem('selfmate-game') ?? '{}').seed ?? null;
  const before = await page.evaluate(seed);
  await page.getByRole('button', { name: 'New game' }).click();
  await page.waitForFunction(
    (old) => (JSON.parse(sessionStorage.getItem('selfmate-game') ?? '{}').seed ?? null) !== old,
    before,
  );
}

/** Where a square is on the screen. */
async function centre(page, square) {
  const box = await page.locator('.board').first().boundingBox();
  const isBlackBelow = (await page.locator('.board.orientation-black, .board .orientation-black').count()) > 0;
  const [file, rank] = ['abcdefgh'.indexOf(square[0]), Number(square[1]) - 1];
  const [column, row] = isBlackBelow ? [7 - file, rank] : [file, 7 - rank];
  return [box.x + ((column + 0.5) * box.width) / 8, box.y + ((row + 0.5) * box.height) / 8];
}

/** Plays a move with the mouse. */
export async function playByMouse(page, uci) {
  await page.locator('.board').first().scrollIntoViewIfNeeded();
  for (const square of [uci.slice(0, 2), uci.slice(2, 4)]) {
    const [x, y] = await centre(page, square);
    await page.mouse.click(x, y);
  }
  await promote(page, uci);
}

/** Plays a move with a finger. */
export async function playByTouch(page, uci) {
  await page.locator('.board').first().scrollIntoViewIfNeeded();
  for (const square of [uci.slice(0, 2), uci.slice(2, 4)]) {
    await page.touchscreen.tap(...(await centre(page, square)));
  }
  await promote(page, uci);
}

/** Plays a move with the arrow keys; `from` is where the cursor stands. Returns where it is then. */
export async function playByKeys(page, uci, from, blackBelow = false) {
  const frame = page.locator('.board-frame').first();
  await frame.focus();
  let here = from;
  for (const square of [uci.slice(0, 2), uci.slice(2, 4)]) {
    const sign = blackBelow ? -1 : 1;
    const files = sign * ('abcdefgh'.indexOf(square[0]) - 'abcdefgh'.indexOf(here[0]));
    const ranks = sign * (Number(square[1]) - Number(here[1]));
    for (let step = 0; step < Math.abs(files); step += 1) await frame.press(files > 0 ? 'ArrowRight' : 'ArrowLeft');
    for (let step = 0; step < Math.abs(ranks); step += 1) await frame.press(ranks > 0 ? 'ArrowUp' : 'ArrowDown');
    await frame.press('Enter');
    here = square;
  }
  await promote(page, uci);
  return here;
}

async function promote(page, uci) {
  const names = { q: 'Queen', r: 'Rook', b: 'Bishop', n: 'Knight' };
  if (uci.length === 5) await page.getByRole('button', { name: names[uci[4]] }).click();
}
