// The page explains why the picture stands still, with every player, and plays on when data arrives again.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { begun, ended, launch, open } from './browser.mjs';
import { startRelay } from './relay.mjs';
import { library, serve, skip } from './support.mjs';

let origin;
let relay;
let browser;

before(async () => {
  origin = await serve(undefined, '--segment', '2s');
  relay = await startRelay(origin);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  relay?.stop();
  origin?.stop();
});

const waits = ([pattern]) => new RegExp(pattern).test(document.querySelector('.waiting')?.textContent ?? 'not shown');

/** Starts a film, and seeks while its media fail. */
async function openAndFail(player, fault) {
  relay.fault = undefined;
  const view = await open(browser, relay, 'film', `player=${player}`);
  await view.until('the start', begun);
  relay.fault = fault;
  await view.page.evaluate(() => window.headwater.seek(30));
  return view;
}

for (const player of ['mse', 'hls', 'dash', 'shaka']) {
  test(`a film that waits for data shows the reason and continues (${player})`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const view = await openAndFail(player, 503);
    await view.until('the reason of the wait', waits, '^Waiting for data: the server responds with 503 \\([2-9] attempts\\)$');
    const state = await view.state();
    assert.match(state.waiting, /503/);
    assert.deepEqual(state.errors, []);
    assert.match(await view.page.locator('[data-tile=stalls]').textContent(), /^waiting · /);
    relay.fault = undefined;
    await view.until('playing on', () => window.headwater.state().currentTime > 30.5);
    await view.until('no message', waits, '^$');
    await view.page.close();
  });
}

test('a server that closes connections is named as unreachable', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const view = await openAndFail('mse', 'drop');
  await view.until('the reason', waits, '^Waiting for data: the server cannot be reached \\(\\d+ attempts\\)$');
  await view.page.close();
});

test('a server that does not respond is called slow, without attempts', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const view = await openAndFail('mse', 'hang');
  await view.until('the reason', waits, '^Waiting for data: the network or the server is slow$');
  await view.page.close();
});

test('the player of the browser explains a wait for the plain file', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  relay.fault = 'hang';
  const view = await open(browser, relay, 'avc.mp4', 'player=native&variant=file');
  await view.until('the reason', waits, '^Waiting for data: ');
  await view.page.close();
});

// Chromium's own HLS player gives up after one failed segment.
test('the player of the browser shows that the film stopped arriving', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const view = await openAndFail('native', 503);
  await view.until('the error', () => document.querySelector('[role=alert]')?.textContent.startsWith('The film stopped arriving. '));
  assert.equal(await view.page.locator('.waiting').textContent(), '');
  relay.fault = undefined;
  await view.page.getByRole('button', { name: 'Try again' }).click();
  await view.until('playing again', begun);
  await view.page.close();
});

test('a film is not waiting while it is paused or over', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  relay.fault = undefined;
  const view = await open(browser, relay, 'avc.mp4', 'player=mse');
  await view.until('the end', ended);
  const monitor = await view.page.evaluate(async () => {
    await new Promise((done) => { setTimeout(done, 2500); });
    return [window.headwater.state().waiting, document.querySelector('[data-tile=stalls]').textContent];
  });
  assert.deepEqual(monitor, [null, 'none']);
  await view.page.close();
});

const MISSING = 'The server does not have this film, or a part of it is missing.';
// Chromium's own player does not tell the page why a segment failed.
for (const [player, what] of [['mse', MISSING], ['hls', MISSING], ['dash', MISSING], ['shaka', MISSING], ['native', 'The film stopped arriving.']]) {
  test(`a film that is deleted during playback is an error for the viewer (${player})`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-deleted-'));
    fs.cpSync(path.join(library, 'film'), path.join(folder, 'film'), { recursive: true });
    const server = await serve(folder, '--segment', '2s');
    try {
      const view = await open(browser, server, 'film', `player=${player}`);
      await view.until('the start', begun);
      assert.deepEqual((await view.state()).errors, []);
      // Nothing beyond 35 s is in the buffers.
      await view.page.evaluate(() => document.querySelector('video').pause());
      fs.rmSync(path.join(folder, 'film'), { recursive: true });
      while ((await fetch(`${server.url}/film/.mpd`)).status !== 404) await sleep(100);
      await view.page.evaluate(() => { window.headwater.seek(37); document.querySelector('video').play().catch(() => {}); });
      await view.until('the error', () => document.querySelector('[role=alert]')?.textContent);
      const alert = view.page.locator('[role=alert]');
      const message = await alert.innerText();
      assert.ok(message.startsWith(what), message);
      // Numbers of statuses and names of engines are for the log.
      assert.doesNotMatch(message, /\d{3}|Error|hls\.js|dash\.js|Shaka/);
      assert.match(message, /(Check the address|Try again), or choose another (film|player)/);
      assert.ok(await alert.isVisible());
      assert.ok(await alert.getByRole('button', { name: 'Try again' }).isVisible());
      await view.page.close();
    } finally {
      server.stop();
      fs.rmSync(folder, { recursive: true });
    }
  });
}
