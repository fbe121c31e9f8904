// A cache may serve the multivariant playlist of an earlier version of a film. Its media playlists
// redirect to the current version, and every player follows.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { begun, ended, launch, open } from './browser.mjs';
import { library, serve, skip, text } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-earlier-'));
const film = path.join(folder, 'film.mp4');
let server;
let browser;
let earlier;

/** Replaces the film atomically. */
const put = (name) => {
  fs.copyFileSync(path.join(library, name), `${film}.part`);
  fs.renameSync(`${film}.part`, film);
};

const playlists = (multivariant) => multivariant.match(/[^"\n]+\.m3u8/g);

before(async () => {
  put('avc.mp4');
  server = await serve(folder, '--recheck', '0s');
  earlier = await text(`${server.url}/film.mp4/.m3u8`);
  put('avc_co64.mp4');
  const now = playlists(await text(`${server.url}/film.mp4/.m3u8`));
  assert.ok(playlists(earlier).every((name) => !now.includes(name)), 'the versions must differ');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.stop();
  fs.rmSync(folder, { recursive: true });
});

for (const [engine, variant] of [['hls', 'cmaf'], ['shaka', 'cmaf'], ['native', 'cmaf']]) {
  test(`an outdated multivariant playlist plays with ${engine} ${variant} to the end`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const led = [];
    const prepare = async (page) => {
      page.on('response', (response) => response.status() === 307 && led.push(response.url()));
      await page.route('**/film.mp4/.m3u8*', (route) => route.fulfill({
        contentType: 'application/vnd.apple.mpegurl', body: earlier,
      }));
    };
    const view = await open(browser, server, 'film.mp4', `player=${engine}&variant=${variant}`, prepare);
    await view.until('the start', begun);
    await view.until('the end', ended);
    const last = await view.state();
    assert.deepEqual([last.errors, view.faults], [[], []]);
    assert.ok(led.length > 0, 'no player was redirected');
    assert.ok(Math.abs(last.currentTime - last.duration) < 0.3, `ended at ${last.currentTime} of ${last.duration}`);
    await view.page.close();
  });
}
