// Browsers play through the edge, and the records of the origin contain each segment once. Also checks the
// status page of the edge. Screenshot: target/screenshots/edge-status.png.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ended, launch, open } from './browser.mjs';
import { library, root, skip, start } from './support.mjs';

const TOKEN = 'a-token-for-this-test';
const WAIT_MS = 60_000;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-edge-'));
const records = path.join(folder, 'origin.jsonl');
const token = path.join(folder, 'token');
let origin;
let edge;
let browser;

before(async () => {
  fs.writeFileSync(token, TOKEN);
  origin = await start('serve', library, '--segment', '2s', '--records', records);
  edge = await start('edge', '--origin', origin.url, '--admin', '127.0.0.1:0', '--admin-token-file', token,
    '--disk-dir', path.join(folder, 'disk'), '--disk', '1GiB');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  edge?.stop();
  origin?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Plays the film to its end at four times the speed. */
async function play(player) {
  const { page, faults, state, until } = await open(browser, edge, 'film', `player=${player}`);
  await page.evaluate(() => {
    setInterval(() => document.querySelectorAll('video').forEach((v) => { v.playbackRate = 4; }), 50);
  });
  await until(`the end with ${player}`, ended);
  assert.deepEqual([(await state()).errors, faults], [[], []], player);
  await page.close();
}

test('two viewers of each kind cost the origin each segment once', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  // Concurrent viewers join a fetch, and later viewers hit the cache.
  const players = ['hls&variant=cmaf', 'dash&variant=time'];
  await Promise.all([...players.map(play), status()]);
  for (const player of players) await play(player);
  await tier();
  assert.equal(await edge.drain(), 0);
  assert.equal(await origin.drain(), 0);
  const requestCounts = new Map();
  for (const line of fs.readFileSync(records, 'utf8').trim().split('\n')) {
    const record = JSON.parse(line);
    if (!['segment', 'init'].includes(record.kind)) continue;
    assert.equal(record.status, 200, line);
    requestCounts.set(record.path, (requestCounts.get(record.path) ?? 0) + 1);
  }
  assert.ok(requestCounts.size > 20, `only ${requestCounts.size} segments`);
  const twice = [...requestCounts].filter(([, count]) => count > 1);
  assert.deepEqual(twice, []);
});

/** Opens the status page, and collects its errors. */
async function admin() {
  const context = await browser.newContext({
    httpCredentials: { username: 'me', password: TOKEN }, viewport: { width: 1100, height: 1000 },
  });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  await page.goto(edge.admin);
  await page.getByText(/^up /).waitFor();
  return { context, page, faults };
}

/** Checks the status page during traffic. */
async function status() {
  const { context, page, faults } = await admin();
  const rows = () => ['#top', '#connections'].every((id) => document.querySelector(`${id} td.n`))
    && document.querySelectorAll('#top tr').length > 10;
  await page.waitForFunction(rows, undefined, { timeout: WAIT_MS });
  assert.equal(await page.locator('#origins td.good').textContent(), 'healthy');
  fs.mkdirSync(path.join(root, 'target/screenshots'), { recursive: true });
  await page.screenshot({ path: path.join(root, 'target/screenshots/edge-status.png') });
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `${wide} pixels wide on a phone`);
  assert.deepEqual(faults, []);
  await context.close();
}

/** Checks the disk figures on the page, after all objects with two requests are written. */
async function tier() {
  const { context, page, faults } = await admin();
  const readDiskTable = () => page.evaluate(() => {
    const [titles, values] = document.querySelectorAll('#tier tr');
    const texts = (row) => [...row.children].map((cell) => cell.textContent);
    return Object.fromEntries(texts(titles).map((title, n) => [title, texts(values)[n]]));
  });
  await page.waitForFunction(() => {
    const cells = [...document.querySelectorAll('#tier td')].map((cell) => cell.textContent);
    return Number(cells[1]) > 20 && cells[2] === '0';
  }, undefined, { timeout: WAIT_MS });
  const now = await readDiskTable();
  assert.match(now.stored, /^[\d.]+ [KM]iB of 1.0 GiB$/);
  assert.deepEqual([now['not written'], now.damaged], ['0', '0']);
  assert.ok(Number(now.written) >= Number(now.objects), JSON.stringify(now));
  assert.ok(await page.locator('#disk').isVisible());
  assert.equal(await page.locator('#tier .bad').count(), 0);
  assert.deepEqual(faults, []);
  await context.close();
}
