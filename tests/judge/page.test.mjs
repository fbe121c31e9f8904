// The page as a person uses it: keyboard, order of the library, live plot, contrast, and error texts.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { begun, launch, open as openIn } from './browser.mjs';
import { startRelay } from './relay.mjs';
import { library, serve, skip } from './support.mjs';

const EPISODES = ['Episode 10', 'Episode 2', 'Episode 1', 'episode 3', 'Season 2/Episode 9', 'Season 10/Episode 1', 'Season 2/Episode 11'];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-page-'));
let origin;
let series;
let relay;
let browser;

before(async () => {
  for (const name of EPISODES) {
    const file = path.join(folder, `${name}.mp4`);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.copyFileSync(path.join(library, 'avc.mp4'), file);
  }
  [origin, series] = await Promise.all([serve(undefined, '--segment', '2s'), serve(folder)]);
  relay = await startRelay(origin);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  relay?.stop();
  origin?.stop();
  series?.stop();
  fs.rmSync(folder, { recursive: true });
});

const open = (title, query, prepare) => openIn(browser, origin, title, query, prepare);
const isPaused = ([paused]) => document.querySelector('video').paused === paused;
const video = (page, name) => page.evaluate((property) => document.querySelector('video')[property], name);

test('keyboard shortcuts work without focus on the video', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, until } = await open('film', 'player=mse');
  await until('the start', begun);
  assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
  for (const key of ['k', ' ']) {
    await page.keyboard.press(key);
    await until(`a pause by "${key}"`, isPaused, true);
    await page.keyboard.press(key);
    await until(`playing by "${key}"`, isPaused, false);
  }
  await page.keyboard.press('k');
  assert.equal(await page.evaluate(() => window.scrollY), 0, 'space does not scroll');
  await page.keyboard.press('m');
  assert.equal(await video(page, 'muted'), false);
  await page.keyboard.press('Shift+M');
  assert.equal(await video(page, 'muted'), true);
  const before = await video(page, 'currentTime');
  await page.keyboard.press('ArrowRight');
  assert.ok(Math.abs(await video(page, 'currentTime') - before - 5) < 0.01, 'five seconds forward');
  await page.keyboard.press('ArrowLeft');
  assert.ok(Math.abs(await video(page, 'currentTime') - before) < 0.01, 'five seconds back');
  await page.keyboard.press('ArrowDown');
  assert.ok(Math.abs(await video(page, 'volume') - 0.9) < 0.01);
  await page.keyboard.press('ArrowUp');
  assert.ok(Math.abs(await video(page, 'volume') - 1) < 0.01);
  await page.keyboard.press('f');
  await until('full screen', () => document.fullscreenElement?.matches('.stage'));
  await page.keyboard.press('f');
  await until('the page again', () => document.fullscreenElement === null);
  await page.close();
});

test('shortcuts leave keys to the focused element', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, until } = await open('film', 'player=mse&autoplay=0');
  await until('the qualities', () => window.headwater.state().levels.length === 3);
  const quality = page.getByLabel('Quality');
  await quality.focus();
  for (const key of ['k', 'm', 'f', 'ArrowRight', 'Control+k']) await page.keyboard.press(key);
  assert.deepEqual([await video(page, 'paused'), await video(page, 'muted'), await video(page, 'currentTime')], [true, true, 0]);
  // The chosen player has the focus after a click: letters are free, arrows choose another player.
  await page.locator('input[value=mse]').focus();
  await page.keyboard.press('m');
  assert.equal(await video(page, 'muted'), false);
  await page.keyboard.press('ArrowRight');
  await until('the next player', () => window.headwater.state().engine === 'hls');
  // Space on the video is handled once: by the browser.
  await until('a picture', () => document.querySelector('video').readyState > 2);
  const wasPaused = await video(page, 'paused');
  await page.locator('video').focus();
  await page.keyboard.press(' ');
  await until('one change', isPaused, !wasPaused);
  await page.close();
});

test('typing in the search field does not play anything', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, until } = await open('film', 'player=mse&autoplay=0');
  await until('the player', () => window.headwater.state().engine === 'mse');
  await page.evaluate(() => document.querySelector('.row').append(Object.assign(document.createElement('input'), { type: 'search' })));
  await page.locator('input[type=search]').focus();
  await page.keyboard.type('kim f');
  assert.equal(await page.locator('input[type=search]').inputValue(), 'kim f');
  assert.deepEqual([await video(page, 'paused'), await video(page, 'muted')], [true, true]);
  await page.close();
});

test('Episode 2 comes before Episode 10', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  await page.goto(`${series.url}/`);
  await page.locator('.card').nth(EPISODES.length - 1).waitFor();
  const shown = await page.locator('.card h2').evaluateAll((all) => all.map((h) => h.title.replace('.mp4', '')));
  assert.deepEqual(shown, ['Episode 1', 'Episode 2', 'episode 3', 'Episode 10', 'Season 2/Episode 9', 'Season 2/Episode 11', 'Season 10/Episode 1']);
  await page.close();
});

test('the throughput line is not clipped', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page } = await open('avc.mp4', 'player=mse&autoplay=0');
  // The rows of the throughput line, from the top of the plot, for a link that becomes ten times faster.
  const rows = await page.evaluate(async () => {
    const { Plot } = await import('/-/plot.js');
    const canvas = Object.assign(document.createElement('canvas'), { className: 'plot' });
    document.querySelector('main').prepend(canvas);
    const plot = new Plot(canvas);
    const at = performance.now();
    const drawn = (throughput) => {
      plot.samples = [30, 20, 10, 0].map((s) => ({ at: at - s * 1000, buffered: 0, bitrate: 6e5, throughput, stalled: false }))
        .map((sample, i) => (i < 2 ? { ...sample, throughput: throughput / 10 } : sample));
      plot.draw();
      const probe = Object.assign(document.createElement('i'), { style: 'color: var(--throughput)' });
      document.body.append(probe);
      const [r, g, b] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
      const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const found = new Set();
      for (let i = 0; i < data.length; i += 4) {
        if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12 && data[i + 3] > 200) found.add(Math.floor(i / 4 / width));
      }
      return [...found];
    };
    return [drawn(3e7), drawn(9e8)].map((all) => ({ top: Math.min(...all), bottom: Math.max(...all) }));
  });
  for (const { top, bottom } of rows) {
    assert.ok(top > 12, `the line touches the top: ${JSON.stringify(rows)}`);
    assert.ok(bottom - top > 10, `ten times the rate is not higher: ${JSON.stringify(rows)}`);
  }
  await page.close();
});

for (const colorScheme of ['light', 'dark']) {
  test(`text has a contrast of at least 4.5 (WCAG AA), ${colorScheme}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const { page, until } = await open('film', 'player=mse', (p) => p.emulateMedia({ colorScheme }));
    await until('the start', begun);
    const low = await page.evaluate(() => {
      const lines = document.querySelector('.lines');
      lines.closest('details').open = true;
      for (const kind of ['error', 'stall', 'warning', 'switch', 'quality', 'audio', 'fetch', 'append']) {
        const line = lines.firstElementChild.cloneNode(true);
        line.className = `step ${kind}`;
        lines.append(line);
      }
      document.querySelector('[role=alert]').innerHTML = '<p class="bad">What failed. <button>Try again</button></p>';
      const rgba = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return { rgb: [r, g, b], a }; };
      const ground = (node) => {
        if (!node) return [255, 255, 255];
        const { rgb, a } = rgba(getComputedStyle(node).backgroundColor);
        return a === 1 ? rgb : ground(node.parentElement).map((c, i) => c * (1 - a) + rgb[i] * a);
      };
      const luminance = (rgb) => {
        const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const texts = [...document.querySelectorAll('.step *, .tiles *, legend, label span, figcaption span, .bad, .bad button, summary, h1, .top a, .keys, .keys *')];
      return texts.filter((node) => node.checkVisibility()).flatMap((node) => {
        const [one, other] = [luminance(rgba(getComputedStyle(node).color).rgb), luminance(ground(node))].sort((a, b) => b - a);
        const contrast = (one + 0.05) / (other + 0.05);
        return contrast < 4.5 ? [`${node.parentElement.className} ${node.tagName} "${node.textContent}": ${contrast.toFixed(2)}`] : [];
      });
    });
    assert.deepEqual([...new Set(low)], []);
    await page.close();
  });
}

const TERMS = /hls\.js|dash\.js|Shaka|fragLoad|[A-Z]+_[A-Z]+|client;|https?:|\d{4}|Pipeline/;

for (const player of ['mse', 'hls', 'dash', 'shaka', 'native', 'consumer']) {
  test(`${player}: an error is a sentence for people, and the log has the details`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    relay.fault = 404;
    const { page, until } = await openIn(browser, relay, 'film', `player=${player}`);
    await until('the error', () => document.querySelector('[role=alert]')?.textContent);
    const text = await page.locator('[role=alert] p').textContent();
    assert.doesNotMatch(text, TERMS);
    if (player !== 'native') assert.match(text, /^The server does not have this film, or a part of it is missing\. Check the address, /);
    assert.match((await page.evaluate(() => window.headwater.log())).map((line) => line.text).join('\n'), /404|PIPELINE|Pipeline/);
    relay.fault = undefined;
    await page.getByRole('button', { name: 'Try again' }).click();
    await until('playing after another try', () => window.headwater.state().currentTime > 0.3);
    assert.equal(await page.locator('[role=alert]').textContent(), '');
    await page.close();
  });
}

for (const player of ['hls', 'dash', 'shaka']) {
  test(`${player}: a player that cannot start releases the video element`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const prepare = (page) => page.route(/\.(m3u8|mpd)/, (route) => route.fulfill({ status: 404 }));
    const { page, until } = await open('film', `player=${player}`, prepare);
    await until('the error', begun);
    await until('the release', () => !document.querySelector('video').getAttribute('src') && !document.querySelector('.imsc'));
    await page.close();
  });
}

test('shaka: a player that fails while it closes does not disturb the next player', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const failing = `;{ const { prototype } = globalThis.shaka.Player; const { destroy } = prototype;
    prototype.destroy = async function () { await destroy.call(this); window.destroyed = true; throw new Error('expected'); }; }`;
  const prepare = (page) => page.route('**/shaka-player.compiled.js', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: await response.text() + failing });
  });
  const { page, faults, until } = await open('film', 'player=shaka', prepare);
  await until('the start', begun);
  await page.evaluate(() => document.querySelector('input[value=mse]').click());
  await until('the end of the first player', () => window.destroyed === true);
  await until('playing with the next player', () => window.headwater.state().engine === 'mse' && window.headwater.state().currentTime > 0.3);
  assert.deepEqual(faults, []);
  await page.close();
});

test('hls: each start can recover from media errors', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const expose = `;{ const { Hls } = globalThis; window.recoveries = 0;
    window.Hls = class extends Hls { constructor(config) { super(config); window.hlsPlayer = this; } recoverMediaError() { window.recoveries += 1; } }; }`;
  const prepare = (page) => page.route('**/hls.min.js', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: await response.text() + expose });
  });
  const { page, until } = await open('film', 'player=hls', prepare);
  await until('the start', begun);
  const fail = () => page.evaluate(() => {
    window.hlsPlayer.trigger('hlsError', { type: 'mediaError', details: 'bufferAppendError', fatal: true });
    return window.recoveries;
  });
  for (const recoveries of [1, 2, 3, 3]) assert.equal(await fail(), recoveries);
  await page.getByRole('button', { name: 'Try again' }).click();
  await until('playing after another try', () => window.headwater.state().currentTime > 0.3);
  assert.equal(await fail(), 4);
  await page.close();
});

test('a film that no player of this browser can play is explained', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  await page.addInitScript(() => { delete window.MediaSource; delete window.ManagedMediaSource; });
  await page.route('**/film/.json', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...await response.json(), encryption: 'cenc' } });
  });
  await page.goto(`${origin.url}/#/play/film?player=native`);
  assert.match(await page.locator('[role=alert]').textContent(), /^This browser cannot play this film/);
  await page.close();
});

test('a film that does not exist is reported without internal terms', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  await page.goto(`${origin.url}/#/play/missing.mp4`);
  const text = await page.locator('[role=alert]').textContent();
  assert.match(text, /^The server does not have this film/);
  assert.doesNotMatch(text, /404|\.json|client/);
  await page.close();
});

test('the link to the content keeps the film', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, until } = await open('film', 'player=mse&autoplay=0');
  await until('the player', () => window.headwater.state().engine === 'mse');
  const before = page.url();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  assert.equal(page.url(), before);
  assert.equal(await page.evaluate(() => window.headwater.state().title), 'film');
  await page.close();
});

test('a link to another view leaves the focus at the content', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  await page.goto(`${series.url}/`);
  await page.locator('a.card').first().focus();
  await page.keyboard.press('Enter');
  await page.locator('.stage').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await page.close();
});

test('a list of titles that arrives late does not replace the film, and a film that was left does not start again', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  const held = [];
  await page.route('**/library.json', (route) => { held.push(route); });
  const playlists = [];
  page.on('request', (request) => request.url().includes('.m3u8') && playlists.push(request.url()));
  await page.goto(`${origin.url}/`);
  await page.evaluate(() => { window.location.hash = '#/play/film?player=mse&muted=1'; });
  await page.waitForFunction(begun);
  const arrived = page.waitForResponse('**/library.json');
  await held.shift().continue();
  await (await arrived).finished();
  await page.evaluate(() => new Promise((done) => { setTimeout(done); }));
  assert.equal(await page.locator('.stage').count(), 1);
  await page.evaluate(() => { window.location.hash = '#/'; });
  await page.waitForFunction(() => window.headwater.state().title === null);
  // The controls of the film are there until the list arrives.
  await page.evaluate(() => document.querySelector('input[value=hls]').click());
  await held.shift().continue();
  await page.locator('.card').first().waitFor();
  assert.deepEqual(playlists, []);
  await page.close();
});

test('menus work in browsers without the selector :open', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const prepare = (page) => page.addInitScript(() => {
    const { matches } = Element.prototype;
    Element.prototype.matches = function matchesWithoutOpen(selector) {
      if (selector.includes(':open')) throw new DOMException('not a valid selector', 'SyntaxError');
      return matches.call(this, selector);
    };
    CSS.supports = () => false;
  });
  const { page, until, faults } = await open('film', 'player=mse&autoplay=0', prepare);
  await until('the qualities', () => window.headwater.state().levels.length === 3);
  await page.getByLabel('Quality').focus();
  const log = await page.evaluate(() => { window.headwater.quality(0); return window.headwater.log().length; });
  await until('a step after the choice', ([length]) => window.headwater.log().length > length, log);
  await page.evaluate(() => new Promise((done) => { setTimeout(done, 600); }));
  assert.deepEqual(faults, []);
  await page.close();
});

test('options of the address that do not exist are ignored', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  for (const options of ['quality=99', 'quality=x', 't=Infinity']) {
    const { page, until, state } = await open('film', `player=mse&${options}`);
    await until('the start', begun);
    assert.deepEqual((await state()).errors, [], options);
    await page.close();
  }
});

test('another attempt starts at the position of the address', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, until } = await open('film', 'player=hls&t=20', (p) => p.route('**/*.m3u8', (route) => route.fulfill({ status: 404 })));
  await until('the error', () => document.querySelector('[role=alert]')?.textContent);
  await page.unroute('**/*.m3u8');
  await page.getByRole('button', { name: 'Try again' }).click();
  await until('playing', () => window.headwater.state().currentTime > 0.3);
  assert.ok(await video(page, 'currentTime') >= 20);
  await page.close();
});

test('a film that cannot be opened is an error for scripts, too', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page } = await open('film', 'player=mse&autoplay=0');
  const errors = await page.evaluate(() => window.headwater.load('missing.mp4').then(() => window.headwater.state().errors));
  assert.equal(errors.length, 1);
  assert.match(errors[0], /^The server does not have this film/);
  await page.close();
});

test('a license that Shaka Player cannot get is explained', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, until } = await open('film', 'player=shaka&variant=cmaf', async (p) => {
    await p.route('**/film/.json', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), encryption: 'cbcs', license: '.license' } });
    });
    await p.route('**/.license', (route) => route.fulfill({ status: 503 }));
  });
  await until('the error', () => document.querySelector('[role=alert]')?.textContent);
  assert.match(await page.locator('[role=alert] p').textContent(), /^The server is too busy to send the film\. Wait a moment/);
  await page.close();
});

test('only posters of cards that are shown are loaded, and they are small', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page } = await open('film', 'player=mse&autoplay=0');
  const requests = [];
  page.on('request', (request) => requests.push(new URL(request.url()).pathname));
  const size = await page.evaluate(async () => {
    for (const [name, value] of [['videoWidth', 3840], ['videoHeight', 2160]]) Object.defineProperty(HTMLVideoElement.prototype, name, { get: () => value });
    const { queuePoster } = await import('/-/poster.js');
    const [removed, shown, bars] = Array.from({ length: 3 }, () => document.createElement('canvas'));
    document.querySelector('main').append(shown, bars);
    queuePoster('avc_faststart.mp4', removed, bars, () => {});
    await new Promise((done) => { new MutationObserver(done).observe(shown, { attributes: true, attributeFilter: ['data-drawn'] }); queuePoster('avc.mp4', shown, bars, () => {}); });
    return [shown.width, shown.height];
  });
  assert.deepEqual(size, [640, 360]);
  assert.deepEqual(requests.filter((name) => name.includes('avc_faststart')), []);
  assert.ok(requests.includes('/avc.mp4/.json'));
  await page.close();
});

test('the focus moves to the first title that "Show more" adds', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await browser.newPage();
  const titles = Array.from({ length: 130 }, (_, n) => ({ path: `film-${n}`, name: `Film ${n}`, kind: 'file', duration_ms: null, bytes: 1, video: [], audio: [], error: null }));
  await page.route('**/library.json', (route) => route.fulfill({ json: { titles, truncated: false, source: 'folder', ignored: { count: 0, first: [] } } }));
  await page.goto(`${origin.url}/`);
  await page.getByRole('button', { name: 'Show more of 130' }).focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), '#/play/film-120');
  assert.equal(await page.locator('a.card').count(), 130);
  await page.close();
});

test('the page says so if it cannot copy a URL', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  // As on a page without TLS.
  const prepare = (page) => page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  const { page } = await open('film', 'player=mse&autoplay=0', prepare);
  await page.getByText('Tracks and URLs').click();
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByRole('button', { name: 'Copying is blocked' }).waitFor();
  await page.close();
});
