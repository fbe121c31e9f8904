// Subtitles in real players: the same cue is shown within 40 ms of its frame in every engine, container and
// source, and once, even if it spans several segments. Screenshots: target/screenshots/text-*.png.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { begun, launch, open as openIn } from './browser.mjs';
import { library, root, serve, skip } from './support.mjs';

/** Pages that play at the same time. */
const PAGES = 3;
/** Playback rate at which no cue ends before it is seen. */
const SLOW = 0.1;
const shots = path.join(root, 'target/screenshots');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-text-'));
/** Start and end in seconds, and text. The second one spans three segments; small ones follow in every segment, so that
 *  each segment of text that a player fetches contains a cue. */
const CUES = [
  [0.5, 1.8, 'First'], [3, 7.2, 'Spans three segments'],
  ...Array.from({ length: 14 }, (_, n) => [8.5 + 2 * n, 9.5 + 2 * n, `Small ${n}`]),
  [36.5, 37.5, 'Near the end'],
];
const [FIRST, SPANNING, LAST] = [CUES[0], CUES[1], CUES.at(-1)];
/** Sources of text in each film, by their label in menus. Every cue ends with the name of its source. */
const SOURCES = { German: 'srt', French: 'vtt', Spanish: 'ttml', Italian: 'tx3g', Portuguese: 'wvtt', Dutch: 'stpp' };
const SIDECARS = ['srt', 'vtt', 'ttml'];
/** Sources that the reference packager makes. */
const PACKAGED = ['wvtt', 'stpp'];
/** Sources whose times depend on the film: one of the sidecar files, which share a writer, and every kind of track. */
const TIMED = ['German', 'Italian', 'Portuguese', 'Dutch'];

const clock = (s, point = '.') => `${new Date(Math.round(s * 1000)).toISOString().slice(11, 19)}${point}${String(Math.round(s * 1000) % 1000).padStart(3, '0')}`;
const srt = (source) => CUES.map(([start, end, text], n) => `${n + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${n === 1 ? '{\\an8}' : ''}${text} <i>of</i> <font color="yellow">(${source})</font>\n`).join('\n');
const vtt = (source) => `WEBVTT\n\nSTYLE\n::cue(.yellow) { color: yellow }\n\n${CUES.map(([start, end, text], n) => `${n === 0 ? 'one\n' : ''}${clock(start)} --> ${clock(end)}${n === 0 ? ' line:0' : ''}\n${text} of <c.yellow>(${source})</c>\n`).join('\n')}`;
const ttml = (source) => `<tt xmlns="http://www.w3.org/ns/ttml"><body><div>${CUES.map(([start, end, text]) => `<p begin="${start}s" end="${end}s">${text} of <span>(${source})</span></p>`).join('')}</div></body></tt>`;
/** Labels in menus, by the words in file names. */
const SEVERAL = { 'de.forced': 'German (forced)', 'en.commentary': 'Commentary', 'en.default': 'English', 'fr.sdh': 'French (captions)', 'pt-BR': 'Portuguese' };
const packager = path.join(root, 'target/packager/packager');
/** The server with default settings, and one per form of text or encryption. */
let server;
const forms = {};
let browser;

const ffmpeg = (...args) => execFileSync('ffmpeg', ['-v', 'error', '-y', ...args], { cwd: folder });
/** Delay of the first picture in films without edit lists, in seconds. */
const DECODE_DELAY_S = 0.08;
const FILMS = ['delayed', 'undelayed', 'edited', 'late'];
const FRAGMENTED = ['-movflags', '+frag_keyframe+empty_moov+default_base_moof'];

/** Makes folders with a film and all sources of text. The film has B-frames (delayed), none (undelayed), an edit list
 *  that starts it later (edited), or no edit list and a first time of three hours (late). */
function makeFilms() {
  fs.writeFileSync(path.join(folder, 'tx3g.srt'), srt('tx3g'));
  const encode = ['-map', '0', '-c:v', 'libx264', '-preset', 'veryfast', '-g', '50', '-c:a', 'copy', '-t', '40'];
  // Longer than the buffer of every player, so that text is fetched before and after the video.
  ffmpeg('-stream_loop', '3', '-i', path.join(library, 'avc.mp4'), ...encode, 'source.mp4');
  ffmpeg('-i', 'source.mp4', ...encode, '-bf', '0', 'plain.mp4');
  const textOptions = ['-map', '0', '-map', '1', '-c', 'copy', '-c:s', 'mov_text', '-metadata:s:s:0', 'language=ita'];
  for (const name of FILMS) fs.mkdirSync(path.join(folder, name));
  ffmpeg('-i', 'source.mp4', '-i', 'tx3g.srt', ...textOptions, 'delayed/film.mp4');
  ffmpeg('-i', 'plain.mp4', '-i', 'tx3g.srt', ...textOptions, 'undelayed/film.mp4');
  ffmpeg('-itsoffset', '0.4', '-i', 'delayed/film.mp4', '-map', '0', '-c', 'copy', 'edited/film.mp4');
  ffmpeg('-i', 'delayed/film.mp4', '-map', '0', '-c', 'copy', ...FRAGMENTED, 'fragmented.mp4');
  fs.writeFileSync(path.join(folder, 'late/film.mp4'), delayFragments(fs.readFileSync(path.join(folder, 'fragmented.mp4')), 3 * 3600));
  // Text of a film starts with its first picture, as in files that ffmpeg writes.
  const starts = { delayed: 0, undelayed: 0, edited: 0.4, late: 3 * 3600 + DECODE_DELAY_S };
  for (const [name, start] of Object.entries(starts)) addTracks(path.join(folder, name), start);
  for (const name of FILMS) addSidecars(path.join(folder, name), { srt: 'film.de.srt', vtt: 'fr.vtt', ttml: 'film.es.ttml' });
  fs.copyFileSync(path.join(folder, 'delayed/film.mp4'), path.join(folder, 'beside.mp4'));
  addSidecars(folder, { srt: 'beside.de.srt', vtt: 'beside.fr.vtt', ttml: 'beside.es.ttml' });
}

/** Writes files of text into a folder. */
function addSidecars(title, names) {
  for (const [source, write] of Object.entries({ srt, vtt, ttml })) fs.writeFileSync(path.join(title, names[source]), write(source));
}

/** Writes files with tracks of text whose times start at `start` seconds. */
function addTracks(title, start) {
  if (!fs.existsSync(packager)) return;
  for (const [source, format, lang] of [['wvtt', 'vtt', 'pt'], ['stpp', 'ttml', 'nl']]) {
    const made = path.join(folder, `${source}.mp4`);
    fs.writeFileSync(path.join(folder, `${source}.vtt`), vtt(source));
    if (!fs.existsSync(made)) execFileSync(packager, [`in=${source}.vtt,stream=text,output=${made},format=${format}+mp4,lang=${lang}`], { cwd: folder, stdio: 'ignore' });
    const moved = delayFragments(fs.readFileSync(made), start);
    fs.writeFileSync(path.join(title, `${source}.mp4`), source === 'stpp' ? delayDocuments(moved, start) : moved);
  }
}

/** Adds seconds to the times inside of TTML documents, whose lengths do not change. */
const delayDocuments = (bytes, seconds) => Buffer.from(bytes.toString('latin1').replaceAll(/(?<==")(\d\d):(\d\d):(\d\d\.\d{3})(?=")/g, (_, h, m, s) => clock(h * 3600 + m * 60 + Number(s) + seconds)), 'latin1');

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
      const ticks = Math.round(seconds * timescales.get(track));
      if (name === 'tfdt' && wide) out.writeBigUInt64BE(out.readBigUInt64BE(at + 12) + BigInt(ticks), at + 12);
      if (name === 'tfdt' && !wide) out.writeUInt32BE(out.readUInt32BE(at + 12) + ticks, at + 12);
      at += size;
    }
  };
  walk(0, out.length);
  return out;
}

before(async () => {
  fs.mkdirSync(shots, { recursive: true });
  makeFilms();
  fs.copyFileSync(path.join(folder, 'source.mp4'), path.join(folder, 'several.mp4'));
  for (const words of Object.keys(SEVERAL)) fs.writeFileSync(path.join(folder, `several.${words}.srt`), srt('srt'));
  const secret = path.join(folder, 'secret');
  fs.writeFileSync(secret, crypto.randomBytes(32).toString('hex'));
  const flags = { stpp: ['--hls-text', 'stpp', '--dash-text', 'stpp'], file: ['--dash-text', 'file'], cbcs: ['--drm-keys', `secret:${secret}`, '--drm-scheme', 'cbcs'], aes: ['--aes-secret', secret] };
  server = await serve(folder, '--segment', '2s');
  for (const [form, more] of Object.entries(flags)) forms[form] = await serve(folder, '--segment', '2s', ...more);
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

/** Returns whether exactly one cue with this text is shown at a time. dash.js draws IMSC into an element. Shaka Player may
 *  move a seek that arrives while it loads a playlist of text, so the seek is repeated once per second. */
const isShownOnce = ([text, source, at]) => {
  const video = document.querySelector('video');
  if (Math.abs(video.currentTime - at) > 1 && performance.now() - window.soughtAt > 1000) {
    window.soughtAt = performance.now();
    window.headwater.seek(at);
  }
  const shown = [...video.textTracks].flatMap((track) => [...track.activeCues ?? []]);
  const drawn = [...document.querySelectorAll('.imsc > div')];
  const contains = (one) => [text, `(${source})`].every((part) => (one.text ?? one.textContent).includes(part));
  return [...shown, ...drawn].filter(contains).length === 1;
};

/** Returns whether the cues with a text are shown from `start` to `end`, in seconds after the first frame at `first`.
 *  Players may have several cues for one that is cut at segment boundaries. */
const spans = ([text, source, start, end, first]) => {
  const video = document.querySelector('video');
  const textOfIsd = ({ text: own, contents }) => own ?? (contents ?? []).map(textOfIsd).join('');
  const textOf = (cue) => cue.text || textOfIsd(cue.isd ?? {});
  const cues = [...video.textTracks].flatMap((track) => (track.mode === 'disabled' ? [] : [...track.cues ?? []]));
  const same = cues.filter((cue) => [text, `(${source})`].every((part) => textOf(cue).includes(part)));
  window.cues = cues.map((cue) => [cue.startTime, cue.endTime, textOf(cue), first]);
  const is = (a, b) => Math.abs(a - b) < 0.04;
  return is(Math.min(...same.map((cue) => cue.startTime)) - first, start) && is(Math.max(...same.map((cue) => cue.endTime)) - first, end);
};

/** Returns whether a cue of the chosen text has been parsed. */
const isParsed = ([source]) => {
  const textOfIsd = ({ text, contents }) => text ?? (contents ?? []).map(textOfIsd).join('');
  const tracks = [...document.querySelector('video').textTracks].filter((track) => track.mode !== 'disabled');
  return tracks.flatMap((track) => [...track.cues ?? []]).some((cue) => (cue.text || textOfIsd(cue.isd ?? {})).includes(`(${source})`));
};

/** Opens a title and waits for its menu. `first` is the time of the first frame. */
async function openTitle(on, film, engine, variant) {
  const view = await openIn(browser, on, film, `player=${engine}${variant ? `&variant=${variant}` : ''}`);
  await view.until('the start', begun);
  await view.until('the menu', () => window.headwater.state().texts.length > 0);
  // The browser's own player starts its timeline at the first picture of HLS.
  const first = ['native', 'mse'].includes(engine) ? 0 : await view.page.evaluate(() => document.querySelector('video').buffered.start(0));
  return { ...view, first };
}

/** Plays a film, chooses each of its texts, or those with the chosen labels, and seeks into its cues. */
async function play(t, film, engine, variant, form = '', chosen = Object.keys(SOURCES)) {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const open = () => openTitle(forms[form] ?? server, film, engine, variant);
  let view = await open();
  const { text, texts } = await view.state();
  assert.equal(text, -1, 'no text is shown unless the viewer selects it');
  const labels = Object.keys(SOURCES).filter((label) => !PACKAGED.includes(SOURCES[label]) || (FILMS.includes(film) && fs.existsSync(packager)));
  assert.deepEqual(texts.map(({ label }) => label).toSorted(), labels.toSorted());
  for (const [n, label] of labels.filter((one) => chosen.includes(one)).entries()) {
    // After several changes of text and seeks on a page, dash.js once did not show a cue that it had loaded.
    if (n > 0 && engine === 'dash') {
      await finish(view);
      view = await open();
    }
    const index = (await view.state()).texts.findIndex((one) => one.label === label);
    await chooseText(view, index, SOURCES[label]);
    await checkCues(view, { film, engine, variant, source: SOURCES[label] });
  }
  await view.page.screenshot({ path: path.join(shots, `text-${film}-${engine}${variant}${form}.png`) });
  await finish(view);
}

async function finish({ page, state, faults }) {
  assert.deepEqual([(await state()).errors, faults], [[], []]);
  await page.close();
}

const setRate = (page, rate) => page.evaluate((to) => { document.querySelector('video').playbackRate = to; }, rate);

/** A seek before the first text segment has arrived stops the text of Shaka Player, so the film plays until then. */
async function chooseText({ page, until }, index, source) {
  await page.evaluate((n) => window.headwater.text(n), index);
  await setRate(page, 1);
  await until(`the first text of ${source}`, isParsed, source);
}

/** Seeks into the cues of the chosen text: each is shown once, and at its time. */
async function checkCues({ page, until, first }, { film, engine, variant, source }) {
  // Without edit lists, the film starts with its audio, two frames before the first picture.
  const from = film === 'late' && SIDECARS.includes(source) ? DECODE_DELAY_S : 0;
  const isShown = async ([, , text], seconds) => {
    await page.evaluate((to) => { window.soughtAt = performance.now(); window.headwater.seek(to); }, first + seconds);
    await until(`“${text}” of ${source} to be shown`, isShownOnce, text, source, first + seconds);
  };
  const isAtItsTime = ([start, end, text]) => until(`“${text}” of ${source} from ${start} to ${end}`, spans, text, source, start - from, end - from, first).catch(async (error) => {
    assert.fail(`${JSON.stringify(await page.evaluate(() => window.cues))} ${error.message}`);
  });
  await setRate(page, SLOW);
  await isShown(LAST, 36.8);
  await isAtItsTime(LAST);
  await isShown(FIRST, 0.8);
  await isAtItsTime(FIRST);
  // Players that cut cues have all parts of this one only if they have loaded the segments from here.
  await setRate(page, 1);
  await isAtItsTime(SPANNING);
  await setRate(page, SLOW);
  await isShown(SPANNING, 6.5);
}

test('the reference packager makes tracks of wvtt and stpp', (t) => {
  if (!fs.existsSync(packager)) skip(t, 'the reference packager is not installed');
});

describe('text in players', { concurrency: PAGES }, () => {
  for (const film of FILMS) {
    const engines = film === 'delayed' ? ENGINES : ENGINES.filter(([engine, variant]) => engine !== 'mse' && variant !== 'number');
    for (const [engine, variant = ''] of engines.filter(([, variant]) => variant !== 'file')) {
      test(`each source of text of the ${film} film with ${engine} ${variant}`, (t) => play(t, film, engine, variant, '', film === 'delayed' ? Object.keys(SOURCES) : TIMED));
    }
  }
  for (const [engine, variant = ''] of ENGINES.slice(-2)) {
    test(`each source of text of a film without a folder with ${engine} ${variant}`, (t) => play(t, 'beside.mp4', engine, variant));
  }
  for (const [form, engine, variant] of [
    ['stpp', 'hls', 'cmaf'], ['stpp', 'shaka', 'cmaf'], ['stpp', 'shaka', 'dash'], ['stpp', 'dash', 'time'],
    ['file', 'shaka', 'dash'], ['file', 'dash', 'time'],
    // Text is not encrypted.
    ['cbcs', 'hls', 'cmaf'], ['cbcs', 'shaka', 'cmaf'], ['cbcs', 'shaka', 'dash'], ['cbcs', 'dash', 'time'], ['aes', 'hls', 'ts'],
  ]) {
    test(`text as ${form} with ${engine} ${variant}`, (t) => play(t, 'delayed', engine, variant, form, ['German', 'Italian']));
  }
  for (const [engine, variant = ''] of ENGINES) {
    test(`the menu lists every text, the default is shown, and can be changed with ${engine} ${variant}`, (t) => chooseFromMenu(t, engine, variant));
  }
});

async function chooseFromMenu(t, engine, variant) {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const { page, state, until } = await openTitle(server, 'several.mp4', engine, variant);
  const labels = (await state()).texts.map((text) => text.label);
  await until('the default text', ([index]) => window.headwater.state().text === index, labels.indexOf(SEVERAL['en.default']));
  assert.deepEqual(labels.toSorted(), Object.values(SEVERAL).toSorted());
  const options = await page.getByLabel('Subtitles').locator('option').allTextContents();
  assert.deepEqual(options, ['None', ...labels]);
  await page.getByLabel('Subtitles').selectOption({ label: 'Portuguese' });
  await until('the choice', ([index]) => window.headwater.state().text === index, labels.indexOf('Portuguese'));
  await page.screenshot({ path: path.join(shots, `text-menu-${engine}${variant}.png`) });
  await page.close();
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
  await until('the last cue', last, LAST[2]);
  const start = await page.evaluate(last, [LAST[2]]);
  await page.close();
  return start - zero;
}

// Shaka Player 5.2 takes the decode time of a segment for its presentation time, but only without an offset in the MPD
// (getTimestampAndDispatchMetadata). So every film whose pictures are reordered has an offset.
test('Shaka Player shows cues of DASH at their time, and late by the decode delay without a presentationTimeOffset', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const unchanged = await startOfLastCue((mpd) => mpd);
  const withoutOffset = await startOfLastCue((mpd) => mpd.replaceAll(/ presentationTimeOffset="\d+"/g, ''));
  const close = (actual, expected) => assert.ok(Math.abs(actual - expected) < 0.01, `${actual}, not ${expected}`);
  close(unchanged, LAST[0]);
  close(withoutOffset, LAST[0] + DECODE_DELAY_S);
});
