// Subtitles in real players: the same cue is shown within 40 ms of its frame in every engine, container and
// source, and once, even if it spans several segments. Screenshots: target/screenshots/text-*.png.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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

3
00:00:36,500 --> 00:00:37,500
Near the end
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

00:36.500 --> 00:37.500
Near the end
`;
const CUES = [[0.5, 2.5, 'First'], [3, 7.2, 'Spans']];
const LAST_CUE = [36.5, 37.5, 'Near the end'];
/** Labels in menus, by the words in file names. */
const SEVERAL = { 'de.forced': 'German (forced)', 'en.commentary': 'Commentary', 'en.default': 'English', 'fr.sdh': 'French (captions)', 'pt-BR': 'Portuguese' };
/** Engines for text inside of films. The others use the same cues. */
const SEGMENTED = [['hls', 'cmaf'], ['hls', 'ts'], ['shaka', 'cmaf'], ['shaka', 'ts'], ['shaka', 'dash'], ['dash', 'time']];
const packager = path.join(root, 'target/packager/packager');
/** The server with default settings, and one per form of text. */
let server;
const forms = {};
let browser;

const ffmpeg = (...args) => execFileSync('ffmpeg', ['-v', 'error', '-y', ...args], { cwd: folder });
const FRAGMENTED = ['-movflags', '+frag_keyframe+empty_moov+default_base_moof'];

/** Films with text in them. */
function makeFilms() {
  fs.writeFileSync(path.join(folder, 'cues.srt'), SRT);
  fs.writeFileSync(path.join(folder, 'cues.vtt'), VTT);
  const source = path.join(folder, 'delayed.mp4');
  // Longer than the buffer of Shaka Player, which shows text over HLS only after the next segment of video.
  ffmpeg('-stream_loop', '3', '-i', path.join(library, 'avc.mp4'), '-map', '0', '-c:v', 'libx264', '-g', '50', '-c:a', 'copy', '-t', '40', source);
  ffmpeg('-i', source, '-i', 'cues.srt', '-map', '0', '-map', '1', '-c', 'copy', '-c:s', 'mov_text', '-metadata:s:s:0', 'language=eng', 'tx3g.mp4');
  ffmpeg('-itsoffset', '0.4', '-i', 'tx3g.mp4', '-map', '0', '-c', 'copy', 'edited.mp4');
  ffmpeg('-i', 'tx3g.mp4', '-map', '0', '-c', 'copy', ...FRAGMENTED, 'fragmented.mp4');
  fs.writeFileSync(path.join(folder, 'late.mp4'), delayFragments(fs.readFileSync(path.join(folder, 'fragmented.mp4')), 3 * 3600));
  ffmpeg('-i', source, '-map', '0', '-c:v', 'libx264', '-bf', '0', '-g', '50', '-c:a', 'copy', 'undelayed.mp4');
  for (const format of ['vtt', 'ttml']) {
    const title = path.join(folder, `${format}-in-cmaf`);
    fs.mkdirSync(title);
    fs.copyFileSync(source, path.join(title, 'film.mp4'));
    if (fs.existsSync(packager)) execFileSync(packager, [`in=cues.vtt,stream=text,output=${title}/text.mp4,format=${format}+mp4,lang=en`], { cwd: folder, stdio: 'ignore' });
  }
}

/** Adds seconds to the decode time of every fragment. */
function delayFragments(bytes, seconds) {
  const out = Buffer.from(bytes);
  const timescales = new Map();
  let track;
  const walk = (at, end) => {
    while (at + 8 <= end) {
      const [size, name] = [out.readUInt32BE(at), out.toString('latin1', at + 4, at + 8)];
      if (['moov', 'trak', 'mdia', 'moof', 'traf'].includes(name)) walk(at + 8, at + size);
      const wide = out[at + 8] === 1;
      if (name === 'tkhd') track = out.readUInt32BE(at + (wide ? 28 : 20));
      if (name === 'mdhd') timescales.set(track, out.readUInt32BE(at + (wide ? 28 : 20)));
      if (name === 'tfhd') track = out.readUInt32BE(at + 12);
      if (name === 'tfdt') {
        assert.ok(wide, 'a decode time of 64 bits');
        out.writeBigUInt64BE(out.readBigUInt64BE(at + 12) + BigInt(seconds * timescales.get(track)), at + 12);
      }
      at += size;
    }
  };
  walk(0, out.length);
  return out;
}

before(async () => {
  fs.mkdirSync(shots, { recursive: true });
  makeFilms();
  for (const name of ['delayed', 'undelayed', 'late']) {
    fs.writeFileSync(path.join(folder, `${name}.en.srt`), SRT);
    fs.writeFileSync(path.join(folder, `${name}.de.sdh.vtt`), VTT);
  }
  fs.copyFileSync(path.join(folder, 'delayed.mp4'), path.join(folder, 'several.mp4'));
  for (const words of Object.keys(SEVERAL)) fs.writeFileSync(path.join(folder, `several.${words}.srt`), SRT);
  server = await serve(folder, '--segment', '2s');
  forms.stpp = await serve(folder, '--segment', '2s', '--hls-text', 'stpp', '--dash-text', 'stpp');
  forms.file = await serve(folder, '--segment', '2s', '--dash-text', 'file');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  [server, ...Object.values(forms)].forEach((one) => one?.stop());
  fs.rmSync(folder, { recursive: true });
});

const ENGINES = [
  ['hls', 'cmaf'], ['hls', 'ts'], ['shaka', 'cmaf'], ['shaka', 'ts'], ['shaka', 'dash'],
  ['dash', 'time'], ['dash', 'number'], ['mse'], ['native', 'cmaf'], ['native', 'ts'], ['native', 'file'],
];

/** Returns whether exactly one cue with this text is shown. dash.js draws IMSC into an element. */
const isShownOnce = ([text]) => {
  const shown = [...document.querySelector('video').textTracks].flatMap((track) => [...track.activeCues ?? []]);
  const drawn = [...document.querySelectorAll('.imsc > div')];
  const contains = (one) => (one.text ?? one.textContent).includes(text);
  return [...shown, ...drawn].filter(contains).length === 1;
};

/** Returns whether the cues with a text are shown from `start` to `end`, in seconds after the first frame, or one of
 *  `shifts` later. Players may have several cues for one that is cut at segment boundaries. */
const spans = ([text, start, end, zero, shifts]) => {
  const video = document.querySelector('video');
  if (video.buffered.length === 0) return false;
  const first = zero ?? video.buffered.start(0);
  const textOfIsd = ({ text: own, contents }) => own ?? (contents ?? []).map(textOfIsd).join('');
  const textOf = (cue) => cue.text || textOfIsd(cue.isd ?? {});
  const cues = [...video.textTracks].flatMap((track) => (track.mode === 'disabled' ? [] : [...track.cues ?? []]));
  const same = cues.filter((cue) => textOf(cue).includes(text));
  window.cues = cues.map((cue) => [cue.startTime, cue.endTime, textOf(cue), first]);
  const is = (a, b) => shifts.some((shift) => Math.abs(a - b - shift) < 0.04);
  return is(Math.min(...same.map((cue) => cue.startTime)) - first, start) && is(Math.max(...same.map((cue) => cue.endTime)) - first, end);
};

/** Delay of the first picture in films without edit lists, in seconds. */
const DECODE_DELAY_S = 0.08;

/** Returns by how much cues may be late. Shaka Player shows those of DASH too late in films whose picture starts later
 *  than its decode time, if text was parsed after a segment of video: see the last test. */
const shiftsOf = (film, engine, variant) => (engine === 'shaka' && variant === 'dash' && ['fragmented.mp4', 'late.mp4'].includes(film) ? [0, DECODE_DELAY_S] : [0]);

/** `from` is the time of the first frame in the film, if it is not 0. */
async function play(t, film, label, engine, variant, from = 0, form = '') {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const view = await openIn(browser, forms[form] ?? server, film, `player=${engine}${variant ? `&variant=${variant}` : ''}`);
  const { page, state, until } = view;
  await until('the start', begun);
  await until('the menu', () => window.headwater.state().texts.length > 0);
  assert.equal((await state()).text, -1, 'no text is shown without being asked for');
  const index = (await state()).texts.findIndex((text) => text.label === label);
  assert.ok(index >= 0, JSON.stringify((await state()).texts));
  await page.evaluate((n) => window.headwater.text(n), index);
  // A seek before the first text segment has arrived stops the text of Shaka Player.
  await until('the first text', () => [...document.querySelector('video').textTracks].some((track) => track.mode !== 'disabled' && track.cues?.length > 0));
  await page.evaluate(() => window.headwater.seek(0));
  // The browser's own player starts its timeline at the first frame of HLS.
  const zero = ['native', 'mse'].includes(engine) ? 0 : null;
  for (const [start, end, text] of CUES) {
    await until(`“${text}” to be shown`, isShownOnce, text);
    await until(`“${text}” from ${start} to ${end}`, spans, text, start - from, end - from, zero, shiftsOf(film, engine, variant)).catch(async (error) => {
      assert.fail(`${JSON.stringify(await page.evaluate(() => window.cues))} ${error.message}`);
    });
  }
  await page.evaluate(() => window.headwater.seek(6.5));
  await until('the cue in whose middle it is', isShownOnce, CUES[1][2]);
  await page.screenshot({ path: path.join(shots, `text-${film}-${label.slice(0, 2)}-${engine}${variant ?? ''}${form}.png`) });
  assert.deepEqual([(await state()).errors, view.faults], [[], []]);
  await page.close();
}

for (const [engine, variant = ''] of ENGINES) {
  for (const label of ['English', 'German (captions)']) {
    test(`${label} beside a film with ${engine} ${variant}`, (t) => play(t, 'delayed.mp4', label, engine, variant));
  }
}

for (const [engine, variant = ''] of ENGINES) {
  test(`the menu lists every text, the default is shown, and can be changed with ${engine} ${variant}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const { page, state, until } = await openIn(browser, server, 'several.mp4', `player=${engine}${variant ? `&variant=${variant}` : ''}`);
    await until('the start', begun);
    await until('the menu', () => window.headwater.state().texts.length > 0);
    const labels = (await state()).texts.map((text) => text.label);
    await until('the default text', ([index]) => window.headwater.state().text === index, labels.indexOf(SEVERAL['en.default']));
    assert.deepEqual(labels.toSorted(), Object.values(SEVERAL).toSorted());
    const options = await page.getByLabel('Subtitles').locator('option').allTextContents();
    assert.deepEqual(options, ['None', ...labels]);
    await page.getByLabel('Subtitles').selectOption({ label: 'Portuguese' });
    await until('the choice', ([index]) => window.headwater.state().text === index, labels.indexOf('Portuguese'));
    await page.screenshot({ path: path.join(shots, `text-menu-${engine}${variant}.png`) });
    await page.close();
  });
}

for (const [engine, variant] of SEGMENTED) {
  test(`text beside undelayed.mp4 with ${engine} ${variant}`, (t) => play(t, 'undelayed.mp4', 'German (captions)', engine, variant));
  // Without edit lists, the film starts with its audio, two frames before the first picture.
  test(`text beside late.mp4 with ${engine} ${variant}`, (t) => play(t, 'late.mp4', 'German (captions)', engine, variant, DECODE_DELAY_S));
  for (const film of ['tx3g.mp4', 'edited.mp4', 'fragmented.mp4', 'late.mp4', 'vtt-in-cmaf', 'ttml-in-cmaf']) {
    test(`text inside of ${film} with ${engine} ${variant}`, (t) => {
      if (film.endsWith('cmaf') && !fs.existsSync(packager)) return skip(t, 'the reference packager is not installed');
      return play(t, film, 'English', engine, variant);
    });
  }
}

for (const [form, engine, variant] of [
  ['stpp', 'hls', 'cmaf'], ['stpp', 'shaka', 'cmaf'], ['stpp', 'shaka', 'dash'], ['stpp', 'dash', 'time'],
  ['file', 'shaka', 'dash'], ['file', 'dash', 'time'],
]) {
  for (const label of ['English', 'German (captions)']) {
    test(`${label} as ${form} with ${engine} ${variant}`, (t) => play(t, 'delayed.mp4', label, engine, variant, 0, form));
  }
}

/** Plays a film over DASH in Shaka Player. Returns the start of the last cue after the first frame, in seconds. The cue
 *  is parsed long after segments of video. */
async function startOfLastCue(changeMpd) {
  const view = await openIn(browser, server, 'fragmented.mp4', 'player=shaka&variant=dash', (page) => page.route('**/.mpd', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: changeMpd(await response.text()) });
  }));
  const { page, until } = view;
  const first = () => [...document.querySelector('video').textTracks].some((track) => track.mode !== 'disabled' && track.cues?.length > 0);
  const last = ([text]) => [...document.querySelector('video').textTracks].flatMap((track) => [...track.cues ?? []]).find((cue) => cue.text.includes(text))?.startTime;
  await until('the start', begun);
  await until('the menu', () => window.headwater.state().texts.length > 0);
  await page.evaluate(() => window.headwater.text(0));
  await until('the first text', first);
  const zero = await page.evaluate(() => document.querySelector('video').buffered.start(0));
  // The last cue is beyond the buffer from here, so that segments of video precede it.
  await page.evaluate(() => window.headwater.seek(18));
  await until('the last cue', last, LAST_CUE[2]);
  const start = await page.evaluate(last, [LAST_CUE[2]]);
  await page.close();
  return start - zero;
}

// Shaka Player 5.2 takes the decode time of a segment for its presentation time, but only without an offset in the MPD
// (getTimestampAndDispatchMetadata). An offset of one tick is a workaround that no segment needs, and proves the cause.
test('Shaka Player moves cues of DASH by the decode delay if the MPD has no presentationTimeOffset', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const unchanged = await startOfLastCue((mpd) => mpd);
  const withOffset = await startOfLastCue((mpd) => mpd.replaceAll('<SegmentTemplate ', '<SegmentTemplate presentationTimeOffset="1" '));
  const close = (actual, expected) => assert.ok(Math.abs(actual - expected) < 0.01, `${actual}, not ${expected}`);
  close(withOffset, LAST_CUE[0]);
  close(unchanged, LAST_CUE[0] + DECODE_DELAY_S);
});
