// Subtitles in real players: the same cue is shown within 40 ms of its frame in every engine, container and
// source, and once, even if it spans several segments. Screenshots: target/screenshots/text-*.png.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { begun, launch, open as openIn } from './browser.mjs';
import { library, root, serve, skip } from './support.mjs';

const shots = path.join(root, 'target/screenshots');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-text-'));
const SRT = `1
00:00:00,500 --> 00:00:02,500
First <i>cue</i> & <font color="yellow">yellow</font>

2
00:00:03,000 --> 00:00:07,200
{\\an8}Spans three segments
`;
const VTT = `WEBVTT

STYLE
::cue(.yellow) { color: yellow }

one
00:00.500 --> 00:02.500 line:0
First <i>cue</i> &amp; <c.yellow>yellow</c>

NOTE
A comment.

00:03.000 --> 00:07.200
Spans three segments
`;
const CUES = [[0.5, 2.5, 'First'], [3, 7.2, 'Spans']];
/** Films by name, with their sources. x264 delays the first by two frames, the last has no B-frames. */
const FILMS = { 'delayed': 'avc.mp4', 'undelayed': 'short.mp4' };
let server;
let browser;

before(async () => {
  fs.mkdirSync(shots, { recursive: true });
  for (const [name, source] of Object.entries(FILMS)) {
    fs.copyFileSync(path.join(library, source), path.join(folder, `${name}.mp4`));
    fs.writeFileSync(path.join(folder, `${name}.en.srt`), SRT);
    fs.writeFileSync(path.join(folder, `${name}.de.sdh.vtt`), VTT);
  }
  server = await serve(folder, '--segment', '2s');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.stop();
  fs.rmSync(folder, { recursive: true });
});

const ENGINES = [
  ['hls', 'cmaf'], ['hls', 'ts'], ['shaka', 'cmaf'], ['shaka', 'ts'], ['shaka', 'dash'],
  ['dash', 'time'], ['dash', 'number'], ['mse'], ['native', 'cmaf'], ['native', 'ts'], ['native', 'file'],
];

/** Returns whether exactly one cue with this text is shown. */
const isShownOnce = ([text]) => {
  const shown = [...document.querySelector('video').textTracks].flatMap((track) => [...track.activeCues ?? []]);
  return shown.filter((cue) => cue.text.includes(text)).length === 1;
};

/** Returns whether the cues with a text are shown from `start` to `end`, in seconds after the first frame. Players
 *  may have several cues for one that is cut at segment boundaries. */
const spans = ([text, start, end, zero]) => {
  const video = document.querySelector('video');
  const first = zero ?? video.buffered.start(0);
  const cues = [...video.textTracks].flatMap((track) => (track.mode === 'disabled' ? [] : [...track.cues ?? []]));
  const same = cues.filter((cue) => cue.text.includes(text));
  window.cues = cues.map((cue) => [cue.startTime, cue.endTime, cue.text, first]);
  const is = (a, b) => Math.abs(a - b) < 0.04;
  return is(Math.min(...same.map((cue) => cue.startTime)) - first, start) && is(Math.max(...same.map((cue) => cue.endTime)) - first, end);
};

for (const [engine, variant] of ENGINES) {
  for (const label of ['English', 'German (captions)']) {
    const id = `${engine}${variant ? `-${variant}` : ''}-${label.slice(0, 2).toLowerCase()}`;
    test(`delayed.mp4 with ${id}: cues at their frames`, async (t) => {
      if (!browser) return skip(t, 'browsers: Chromium is not installed');
      const view = await openIn(browser, server, 'delayed.mp4', `player=${engine}${variant ? `&variant=${variant}` : ''}`);
      const { page, state, until } = view;
      await until('the start', begun);
      await until('the menu', () => window.headwater.state().texts.length === 2);
      assert.equal((await state()).text, -1, 'no text is shown without being asked for');
      const index = (await state()).texts.findIndex((text) => text.label === label);
      assert.ok(index >= 0, JSON.stringify((await state()).texts));
      await page.evaluate((n) => window.headwater.text(n), index);
      await page.evaluate(() => window.headwater.seek(0));
      // The browser's own player starts its timeline at the first frame of HLS.
      const zero = ['native', 'mse'].includes(engine) ? 0 : null;
      for (const [start, end, text] of CUES) {
        await until(`“${text}” to be shown`, isShownOnce, text);
        await until(`“${text}” from ${start} to ${end}`, spans, text, start, end, zero).catch(async (error) => {
          assert.fail(`${JSON.stringify(await page.evaluate(() => window.cues))} ${error.message}`);
        });
      }
      await page.evaluate(() => window.headwater.seek(6.5));
      await until('the cue in whose middle it is', isShownOnce, CUES[1][2]);
      await page.screenshot({ path: path.join(shots, `text-${id}.png`) });
      assert.deepEqual([(await state()).errors, view.faults], [[], []]);
      await page.close();
    });
  }
}
