// Details of text in real players: settings and styles of cues, captions inside of the video, and text that is chosen
// when the film is in the buffer already.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { begun, launch, open } from './browser.mjs';
import { library, serve, skip } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-text-details-'));
/** Shorter than the buffer of every player. */
const FILM_S = 8;
const VTT = `WEBVTT

STYLE
::cue(.yellow) { color: yellow }

first
00:00:00.500 --> 00:00:07.500 line:10% position:20% size:60% align:start
A <b>bold</b>, <i>italic</i>, <u>underlined</u> and <c.yellow>yellow</c> cue
`;
let server;
let stpp;
let browser;

before(async () => {
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', path.join(library, 'avc.mp4'), '-c', 'copy', '-t', String(FILM_S), 'film.mp4'], { cwd: folder });
  fs.writeFileSync(path.join(folder, 'film.en.vtt'), VTT);
  // Longer than the buffer of dash.js, which parses captions only as it fetches segments.
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-stream_loop', '9', '-i', path.join(library, 'avc_captions.mp4'), '-c', 'copy', 'captions.mp4'], { cwd: folder });
  server = await serve(folder, '--segment', '2s');
  stpp = await serve(folder, '--segment', '2s', '--hls-text', 'stpp', '--dash-text', 'stpp');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  [server, stpp].forEach((one) => one?.stop());
  fs.rmSync(folder, { recursive: true });
});

const ENGINES = [['hls', 'cmaf'], ['hls', 'ts'], ['shaka', 'cmaf'], ['shaka', 'ts'], ['shaka', 'dash'], ['dash', 'time']];

/** Chooses the only text of the film and waits until its cue is shown. */
async function openCue(on, engine, variant, wait = async () => {}) {
  const view = await open(browser, on, 'film.mp4', `player=${engine}&variant=${variant}`);
  const { page, until } = view;
  await until('the start', begun);
  await until('the menu', () => window.headwater.state().texts.length > 0);
  await wait(view);
  await page.evaluate(() => { document.querySelector('video').playbackRate = 0.1; window.headwater.text(0); });
  await until('the cue', () => {
    const shown = [...document.querySelector('video').textTracks].flatMap((track) => [...track.activeCues ?? []]);
    const drawn = [...document.querySelectorAll('.imsc > div')];
    return [...shown, ...drawn].some((one) => (one.text ?? one.textContent).includes('bold'));
  });
  return view;
}

/** Returns the settings and the text of the cue that is shown. */
const readCue = () => {
  const [cue] = [...document.querySelector('video').textTracks].flatMap((track) => [...track.activeCues ?? []]);
  const { line, snapToLines, position, size, align, text } = cue;
  return { line, snapToLines, position, size, align, text };
};

for (const [engine, variant] of ENGINES) {
  test(`settings and styles of a cue are those of its file with ${engine} ${variant}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const { page, faults } = await openCue(server, engine, variant);
    const { text, ...settings } = await page.evaluate(readCue);
    assert.deepEqual(settings, { line: 10, snapToLines: false, position: 20, size: 60, align: 'start' });
    for (const styled of ['<b>bold</b>', '<i>italic</i>', '<u>underlined</u>']) assert.ok(text.includes(styled), text);
    assert.deepEqual(faults, []);
    await page.close();
  });

  test(`text that is chosen when the film is in the buffer is shown with ${engine} ${variant}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const { page, faults } = await openCue(server, engine, variant, ({ until }) => until('the whole film in the buffer', ([end]) => {
      const { buffered } = document.querySelector('video');
      return buffered.length > 0 && buffered.end(buffered.length - 1) > end;
    }, FILM_S - 0.5));
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test('styles of IMSC are drawn by dash.js', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page } = await openCue(stpp, 'dash', 'time');
  // Each word has several spans, and an underline is a property of one of them only.
  const missing = await page.evaluate((expected) => {
    const spans = [...document.querySelectorAll('.imsc span')];
    const has = ([word, property, value]) => spans.some((span) => span.textContent === word && getComputedStyle(span)[property] === value);
    return expected.filter((one) => !has(one));
  }, [['bold', 'fontWeight', '700'], ['italic', 'fontStyle', 'italic'], ['underlined', 'textDecorationLine', 'underline'], ['yellow', 'color', 'rgb(255, 255, 0)']]);
  assert.deepEqual(missing, []);
  await page.close();
});

for (const [engine, variant] of ENGINES) {
  test(`CEA-608 captions in the video are shown with ${engine} ${variant}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const { page, until, faults } = await open(browser, server, 'captions.mp4', `player=${engine}&variant=${variant}`);
    await until('the start', begun);
    await until('the menu', () => window.headwater.state().texts.length > 0);
    await page.evaluate(() => window.headwater.text(0));
    // dash.js draws captions into an element.
    await until('a caption', () => [...document.querySelector('video').textTracks].some((track) => track.mode === 'showing' && [...track.activeCues ?? []].some((cue) => cue.text.includes('CAPTION')))
      || document.querySelector('.imsc')?.textContent.includes('CAPTION'));
    assert.deepEqual(faults, []);
    await page.close();
  });
}
