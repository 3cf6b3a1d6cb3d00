// A server and a real browser for the tests.
//
// SELFMATE is the binary, CHROMIUM the browser, SCREENSHOTS the folder for screenshots.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before } from 'node:test';

import { chromium } from 'playwright-core';

// Evaluated through the debugger, because the page's content security policy forbids other scripts.
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const pictures = process.env.SCREENSHOTS ?? 'screenshots';

/** Opens a lab before the tests of a file and closes it after them. `ready` gets its page. */
export function labForTests(ready) {
  const lab = {};
  before(async () => {
    Object.assign(lab, await openLab());
    lab.page.setDefaultTimeout(60_000);
    ready(lab.page);
  });
  after(async () => {
    await lab.close?.();
  });
  return lab;
}

/** Starts a server and a browser; `close` ends both. With `token` the server requires it. */
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
      // Violations of the content security policy are reported here.
      if (message.type() === 'error' && /Content Security Policy|Refused/.test(message.text())) faults.push(message.text());
    });
    return opened;
  };
  const page = await newPage(context);
  return {
    page,
    /** A tab with its own storage. */
    async tab() {
      return newPage(await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' }));
    },
    /** A page on a phone with touch. */
    async phone() {
      const place = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, reducedMotion: 'reduce' };
      return newPage(await browser.newContext(place));
    },
    url,
    /** The folder of runs. */
    runs,
    /** Errors of the page. */
    faults,
    async open(path) {
      // A blank page first, so that nothing of the previous page is mistaken for the new one.
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

/** Takes screenshots in light and dark, wide and narrow, and checks accessibility with axe-core. */
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

/** Starts the game of the form and waits for it; the previous game stays on the board until then. */
export async function beginGame(page) {
  const seed = () => JSON.parse(sessionStorage.getItem('selfmate-game') ?? '{}').seed ?? null;
  const before = await page.evaluate(seed);
  await page.getByRole('button', { name: 'New game' }).click();
  await page.waitForFunction(
    (old) => (JSON.parse(sessionStorage.getItem('selfmate-game') ?? '{}').seed ?? null) !== old,
    before,
  );
}

/** The screen coordinates of a square. */
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

/** Plays a move by touch. */
export async function playByTouch(page, uci) {
  await page.locator('.board').first().scrollIntoViewIfNeeded();
  for (const square of [uci.slice(0, 2), uci.slice(2, 4)]) {
    await page.touchscreen.tap(...(await centre(page, square)));
  }
  await promote(page, uci);
}

/** Plays a move with the arrow keys from the cursor square `from`. Returns the new cursor square. */
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
