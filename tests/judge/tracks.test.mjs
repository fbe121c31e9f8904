// Which tracks are served and how they are described: films of which a part is left out play to the end,
// players show captions in the video, and they know commentary and audio description.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import hlsParser from 'hls-parser';
import { ended, launch, open as openIn } from './browser.mjs';
import { root, serve, skip, text } from './support.mjs';

hlsParser.setOptions({ strictMode: true });
let library;
let partial;
let browser;

before(async () => {
  library = await serve(undefined, '--segment', '2s');
  partial = await serve(path.join(root, 'target/fixtures/tracks'), '--segment', '2s');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  library?.stop();
  partial?.stop();
});

const engines = [['mse'], ['hls', 'cmaf'], ['dash', 'time'], ['shaka', 'dash'], ['shaka', 'cmaf']];

for (const [engine, variant] of engines) {
  for (const title of ['still.mp4', 'no_stsd.mp4', 'cut.mp4', 'text.mp4']) {
    test(`${title} plays with ${engine} ${variant ?? ''} without the part that is left out`, async (t) => {
      if (!browser) return skip(t, 'browsers: Chromium is not installed');
      const view = await openIn(browser, partial, title, `player=${engine}${variant ? `&variant=${variant}` : ''}`);
      await view.until('the end', ended);
      const last = await view.state();
      assert.deepEqual([last.errors, view.faults], [[], []]);
      // Each has one video rendition: the still is none.
      assert.deepEqual(last.levels.map((level) => level.height), [180], JSON.stringify(last.levels));
      await view.page.close();
    });
  }
}

test('the page names what is left out', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page } = await openIn(browser, partial, 'text.mp4', 'player=mse');
  const notes = page.locator('.notes li', { hasText: 'Left out' });
  await notes.first().waitFor({ state: 'attached' });
  assert.deepEqual(await notes.allTextContents(), [
    'Left out: text.en.ass, because this format of text is not supported; convert it to WebVTT or SRT',
  ]);
  await page.close();
});

test('every playlist has scores and stable identifiers', async () => {
  for (const [server, titles] of [[library, ['purposes.mp4', 'film', 'several_tracks.mp4']], [partial, ['still.mp4', 'cut.mp4', 'xhe_aac.mp4']]]) {
    for (const title of titles) {
      const playlist = hlsParser.parse(await text(`${server.url}/${title}/.m3u8`));
      for (const variant of playlist.variants.filter((v) => !v.isIFrameOnly)) {
        assert.ok(variant.score > 0, `${title}: SCORE`);
        assert.ok(variant.uri.includes(`/${variant.stableVariantId}/`), `${title}: STABLE-VARIANT-ID`);
        assert.equal(new Set(variant.audio.map((audio) => audio.name)).size, variant.audio.length);
      }
    }
  }
});

/** Opens a page on which hls.js, Shaka Player and dash.js are loaded. */
async function openBlank(server) {
  const page = await browser.newPage({ bypassCSP: true });
  await page.goto(`${server.url}/`);
  for (const file of ['hls.min.js', 'shaka-player.compiled.js', 'dash.all.min.js']) {
    await page.addScriptTag({ path: path.join(root, 'player/vendor', file) });
  }
  return page;
}

/** Plays a title with hls.js and returns the texts of all captions that it finds in two seconds of film. */
const captionsOf = (page, title) => page.evaluate(async (url) => {
  const video = document.createElement('video');
  document.body.append(video);
  video.muted = true;
  const hls = new window.Hls();
  hls.loadSource(url);
  hls.attachMedia(video);
  await video.play();
  while (video.currentTime < 3) await new Promise((done) => { setTimeout(done, 50); });
  const cues = [...video.textTracks].flatMap((track) => [...(track.cues ?? [])]);
  hls.destroy();
  return cues.map((cue) => cue.text);
}, `/${title}/.m3u8`);

test('hls.js shows captions in the video, unless the operator declares that there are none', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await openBlank(library);
  const found = await captionsOf(page, 'avc_captions.mp4');
  assert.ok(found.some((cue) => cue.includes('CAPTION 1')), JSON.stringify(found));
  await page.close();
  const silent = await serve(undefined, '--closed-captions', 'none');
  const other = await openBlank(silent);
  assert.deepEqual(await captionsOf(other, 'avc_captions.mp4'), []);
  await other.close();
  silent.stop();
});

test('captions in the video can be chosen and hidden on the page with hls.js', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, state, until, faults } = await openIn(browser, library, 'avc_captions.mp4', 'player=hls&variant=cmaf');
  await until('the menu', () => window.headwater.state().texts.length > 0);
  assert.equal((await state()).text, -1, 'no text is shown unless the viewer selects it');
  await page.evaluate(() => window.headwater.text(0));
  await until('a caption', () => [...document.querySelector('video').textTracks].some((track) => track.mode === 'showing' && track.cues?.length > 0));
  assert.equal((await state()).text, 0);
  await page.evaluate(() => window.headwater.text(-1));
  await until('no caption', () => [...document.querySelector('video').textTracks].every((track) => track.mode !== 'showing'));
  const last = await state();
  assert.deepEqual([last.text, last.errors, faults], [-1, [], []]);
  await page.close();
});

for (const manifest of ['.mpd', '.m3u8']) {
  test(`Shaka Player reads the purposes of audio in ${manifest}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const page = await openBlank(library);
    const tracks = await page.evaluate(async (url) => {
      const player = new window.shaka.Player();
      await player.attach(document.createElement('video'));
      await player.load(url);
      const found = player.getAudioTracks();
      await player.destroy();
      return found.map(({ active, roles, accessibilityPurpose }) => ({ active, roles, accessibilityPurpose }));
    }, `/purposes.mp4/${manifest}`);
    assert.equal(tracks.length, 3, JSON.stringify(tracks));
    const described = tracks.filter((track) => track.accessibilityPurpose === 'visually impaired');
    assert.equal(described.length, 1, JSON.stringify(tracks));
    const active = tracks.find((track) => track.active);
    assert.equal(active.accessibilityPurpose ?? null, null, JSON.stringify(tracks));
    if (manifest === '.mpd') {
      assert.deepEqual(active.roles, ['main']);
      assert.ok(tracks.some((track) => track.roles.includes('commentary')), JSON.stringify(tracks));
    }
    await page.close();
  });
}

test('dash.js reads the purposes of audio, and plays the main audio', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await openBlank(library);
  const { tracks, current } = await page.evaluate(async (url) => {
    const player = window.dashjs.MediaPlayer().create();
    player.initialize(document.createElement('video'), url, false);
    await new Promise((done) => { player.on(window.dashjs.MediaPlayer.events.STREAM_INITIALIZED, done); });
    const values = (list) => (list ?? []).map(({ value }) => value);
    const facts = (track) => ({ roles: values(track.roles), aids: values(track.accessibility) });
    const found = { tracks: player.getTracksFor('audio').map(facts), current: facts(player.getCurrentTrackFor('audio')) };
    player.destroy();
    return found;
  }, '/purposes.mp4/.mpd');
  assert.equal(tracks.length, 3);
  assert.deepEqual(tracks.map((track) => track.aids).filter((aids) => aids.length > 0), [['1']]);
  assert.deepEqual(current, { roles: ['main'], aids: [] });
  await page.close();
});

test('hls.js plays the main audio', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const page = await openBlank(library);
  const names = await page.evaluate(async (url) => {
    const hls = new window.Hls();
    const switched = new Promise((done) => { hls.on(window.Hls.Events.AUDIO_TRACK_SWITCHING, (_, { name }) => done(name)); });
    hls.loadSource(url);
    hls.attachMedia(document.createElement('video'));
    const first = await switched;
    const all = hls.audioTracks.map((track) => track.name);
    hls.destroy();
    return { first, all };
  }, '/purposes.mp4/.m3u8');
  assert.equal(names.first, 'English', JSON.stringify(names));
  assert.equal(names.all.length, 3, JSON.stringify(names));
  await page.close();
});
