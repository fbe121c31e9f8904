// Real players on the page in headless Chromium: start, switch down and up, seek, play to the end, without
// errors, stalls or failed requests. Screenshots: target/screenshots.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { assertFlawless, begun, ended, launch, open as openIn } from './browser.mjs';
import { root, serve, skip, titles } from './support.mjs';

const shots = path.join(root, 'target/screenshots');
let server;
let browser;

before(async () => {
  server = await serve(undefined, '--segment', '2s');
  fs.mkdirSync(shots, { recursive: true });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.stop();
});

const open = (title, query) => openIn(browser, server, title, query);

const engines = [
  ['mse'], ['hls', 'cmaf'], ['hls', 'ts'], ['dash', 'time'], ['dash', 'number'],
  ['shaka', 'dash'], ['shaka', 'cmaf'], ['shaka', 'ts'], ['native', 'cmaf'], ['consumer', 'segments'],
];

for (const [engine, variant] of engines) {
  test(`film with ${engine} ${variant ?? ''}: start, switch, seek, end`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const view = await open('film', `player=${engine}${variant ? `&variant=${variant}` : ''}`);
    const { page, state, until } = view;
    await until('the start', begun);
    const first = await state();
    assert.deepEqual(first.errors, []);
    assert.ok(Math.abs(first.duration - 40) < 0.3, `duration ${first.duration}`);

    if (!['native', 'consumer'].includes(engine)) {
      assert.equal(first.levels.length, 3, JSON.stringify(first.levels));
      const byHeight = first.levels.map((l, index) => ({ ...l, index })).sort((a, b) => a.height - b.height);
      // dash.js plays its buffer of up to 14 s before it shows the chosen quality, so the film is long
      // enough for two switches only: to the lowest, then to another one per variant.
      const order = engine === 'dash' ? [0, variant === 'time' ? 1 : 2] : [0, 2, 1];
      for (const level of order.map((place) => byHeight[place])) {
        await page.evaluate((index) => window.headwater.quality(index), level.index);
        await until(`a picture ${level.height} high`, ([height]) => {
          const s = window.headwater.state();
          return s.errors.length > 0 || (s.height === height && s.currentTime > 0);
        }, level.height);
        assert.deepEqual((await state()).errors, []);
      }
    }
    await page.screenshot({ path: path.join(shots, `film-${engine}${variant ? `-${variant}` : ''}.png`) });
    for (const at of [12.5, 3.2, 37]) {
      await page.evaluate((seconds) => window.headwater.seek(seconds), at);
      await until(`playing on from ${at}`, ([seconds]) => {
        const s = window.headwater.state();
        return s.errors.length > 0 || (s.currentTime > seconds + 0.3 && s.currentTime < seconds + 5);
      }, at);
    }
    await until('the end', ended);
    const last = await state();
    assertFlawless(view, last);
    assert.ok(Math.abs(last.currentTime - 40) < 0.3, `ended at ${last.currentTime}`);
    await page.close();
  });
}

test('a film ends that dash.js ended before the element did', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  // Gives the test the player, to report the end as its timer does when it is first.
  const expose = `;{ const make = dashjs.MediaPlayer;
    const wrapped = Object.assign(() => ({ create: () => (window.dashPlayer = make().create()) }), make, { events: make.events });
    window.dashjs = { ...dashjs, MediaPlayer: wrapped }; }`;
  const prepare = (page) => page.route('**/dash.all.min.js', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: await response.text() + expose });
  });
  const view = await openIn(browser, server, 'avc.mp4', 'player=dash&variant=time', prepare);
  await view.until('the start', begun);
  await view.page.evaluate(() => window.dashPlayer.trigger('playbackEnded', { isLast: true }));
  await view.until('the end', ended);
  assert.deepEqual((await view.state()).errors, []);
  await view.page.close();
});

// After three seeks, hls.js once cancelled its queued end-of-stream event and never repeated it.
test('a film finishes even if hls.js loses the end of stream', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const prepare = (page) => page.addInitScript(() => {
    const { prototype } = window.MediaSource;
    const original = prototype.endOfStream;
    prototype.endOfStream = function forgotten() { prototype.endOfStream = original; window.forgotten = true; };
  });
  const view = await openIn(browser, server, 'avc.mp4', 'player=hls', prepare);
  await view.until('the end', ended);
  assert.ok(await view.page.evaluate(() => window.forgotten));
  assert.deepEqual([(await view.state()).errors, view.faults], [[], []]);
  await view.page.close();
});

test('the library works on a phone', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  await page.goto(`${server.url}/`);
  await page.locator('[title="avc.mp4"]').first().waitFor();
  await page.screenshot({ path: path.join(shots, 'library-phone.png') });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `${wide} pixels wide on a phone`);
  await page.close();
});

// Chromium does not play HEVC, AC-3, E-AC-3 or MP3 in MP4; only ffmpeg tests these.
const decodable = titles.filter((name) => !/^(hevc|ac3|eac3|mp3)|^film$/.test(name));

/** The page that opens one film after the other. */
let shared;

/** Opens a title in the shared page, in which films play fast. */
async function openFast(title, query) {
  if (shared) {
    await shared.replaceTitle(title, query);
  } else {
    shared = await open(title, query);
    await shared.page.evaluate(() => {
      const hurry = () => document.querySelectorAll('video').forEach((v) => { v.playbackRate = 4; });
      setInterval(hurry, 50);
    });
  }
  return shared;
}

for (const engine of ['mse', 'hls']) {
  for (const title of decodable) {
    test(`${title} plays with ${engine} to the end`, async (t) => {
      if (!browser) return skip(t, 'browsers: Chromium is not installed');
      const view = await openFast(title, `player=${engine}`);
      await view.until('the end', ended);
      // At this speed a busy machine may stall. The test above checks stalls.
      const last = await view.state();
      assert.deepEqual([last.errors, view.faults], [[], []]);
      assert.ok(Math.abs(last.currentTime - last.duration) < 0.3, `ended at ${last.currentTime} of ${last.duration}`);
    });
  }
}
