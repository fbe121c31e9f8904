// Cues as other parsers read them: webvtt-parser (W3C), vtt.js (video.js) and mp4box.js read what we serve, and ttconv
// (Sandflow) converts the sources. All agree on every cue.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { createFile, VTTin4Parser } from 'mp4box';
import mpdParser from 'mpd-parser';
import vtt from 'vtt.js';
import webvtt from 'webvtt-parser';
import { get, root, serve, skip, text } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-cues-'));
const packager = path.join(root, 'target/packager/packager');
const tt = path.join(root, 'target/ttconv/bin/tt');
const FILM_S = 60;
let server;

const clock = (ms, point) => {
  const digits = (n, width = 2) => String(Math.floor(n)).padStart(width, '0');
  return `${digits(ms / 3_600_000)}:${digits((ms / 60_000) % 60)}:${digits((ms / 1000) % 60)}${point}${digits(ms % 1000, 3)}`;
};

/** Cues of all kinds, one after another: [start, end, lines], in milliseconds. */
const CUES = Array.from({ length: 80 }, (_, n) => {
  const lines = [
    [`Plain text ${n}`], [`Two lines ${n}`, 'the second one'], [`<i>All of it ${n}</i>`], [`A <b>bold</b> word ${n}`],
    [`Größe, 字幕, «né» ${n}`], [`Q&A number ${n}`], [`<u>Under</u><i>lined</i> ${n}`], [`Ends with digits ${n}`, '42'],
  ][n % 8];
  return [250 + n * 700, 250 + n * 700 + (n % 5 === 0 ? 700 : 533), lines];
});
/** The reference packager escapes markup twice in TTML. */
const UNMARKED = CUES.map(([start, end, lines]) => [start, end, lines.map((line) => line.replaceAll(/<[^>]*>/g, '').replaceAll('&', 'and'))]);
/** The same start, nested and across segments. */
const OVERLAPPING = [[1000, 9000, ['Outer']], [2000, 3000, ['Inner']], [2000, 4500, ['<i>Inner too</i>']], [8999, 9001, ['Short']]];

const srt = (cues) => cues.map(([start, end, lines], n) => `${n + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${lines.join('\n')}\n`).join('\n');
const escapeXml = (line) => line.replaceAll(/&/g, '&amp;');
const webvttFile = (cues) => `WEBVTT\n\nNOTE\nA comment.\n\n${cues.map(([start, end, lines], n) => `${n % 3 === 0 ? `id ${n}\n` : ''}${clock(start, '.')} --> ${clock(end, '.')} ${['', 'line:0', 'align:start', 'position:20% size:60%'][n % 4]}\n${lines.map(escapeXml).join('\n')}\n`).join('\n')}`;
const TAGS = { b: 'tts:fontWeight="bold"', i: 'tts:fontStyle="italic"', u: 'tts:textDecoration="underline"' };
const spans = (line) => escapeXml(line).replaceAll(/<(\w)>/g, (_, tag) => `<span ${TAGS[tag]}>`).replaceAll(/<\/\w>/g, '</span>');
/** Times as clock time, as an offset, as frames and as ticks. */
const ttmlTime = (ms, n) => [clock(ms, '.'), `${ms / 1000}s`, `${ms * 10}t`, `${ms}ms`][n % 4];
const ttml = (cues) => `<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" xml:lang="en" ttp:tickRate="10000" ttp:timeBase="media">
<head><layout><region xml:id="low" tts:origin="10% 80%" tts:extent="80% 15%" tts:displayAlign="after"/></layout></head>
<body><div>
${cues.map(([start, end, lines], n) => `<p xml:id="p${n}" region="low" begin="${ttmlTime(start, n)}" end="${ttmlTime(end, n + 1)}">${lines.map(spans).join('<br/>')}</p>`).join('\n')}
</div></body></tt>`;

const run = (program, ...args) => execFileSync(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
const ffmpeg = (...args) => run('ffmpeg', '-v', 'error', '-y', ...args);

before(async () => {
  ffmpeg('-f', 'lavfi', '-i', `color=size=64x36:rate=10:duration=${FILM_S}`, '-c:v', 'libx264', '-g', '20', 'plain.mp4');
  const sources = { 'srt.en.srt': srt(CUES), 'vtt.en.vtt': webvttFile(CUES), 'ttml.en.ttml': ttml(CUES), 'overlapping.en.srt': srt(OVERLAPPING) };
  for (const [name, content] of Object.entries(sources)) {
    fs.writeFileSync(path.join(folder, name), content);
    fs.copyFileSync(path.join(folder, 'plain.mp4'), path.join(folder, `${name.split('.')[0]}.mp4`));
  }
  ffmpeg('-i', 'plain.mp4', '-i', 'srt.en.srt', '-map', '0', '-map', '1', '-c', 'copy', '-c:s', 'mov_text', '-metadata:s:s:0', 'language=eng', 'tx3g.mp4');
  fs.writeFileSync(path.join(folder, 'unmarked.vtt'), webvttFile(UNMARKED));
  for (const [format, source] of [['vtt', 'vtt.en.vtt'], ['ttml', 'unmarked.vtt']]) {
    const title = path.join(folder, `${format}-in-cmaf`);
    fs.mkdirSync(title);
    fs.copyFileSync(path.join(folder, 'plain.mp4'), path.join(title, 'film.mp4'));
    if (fs.existsSync(packager)) run(packager, `in=${source},stream=text,output=${title}/text.mp4,format=${format}+mp4,lang=en`);
  }
  server = await serve(folder, '--segment', '2s');
});
after(() => {
  server?.stop();
  fs.rmSync(folder, { recursive: true });
});

/** Text without markup, by line. */
const linesOf = (payload) => payload.split('\n').map((line) => line.replaceAll(/<[^>]*>/g, '').replaceAll('&amp;', '&').replaceAll('&lt;', '<').replaceAll('&gt;', '>').trim());

/** The times at which each line is shown, joined. Converters that cut overlapping cues into intervals (ttconv) and cues
 *  that are cut at segments (CMAF) therefore compare equal to the uncut ones. */
function timeline(cues) {
  const lines = new Map();
  for (const { startTime, endTime, text: payload } of cues.toSorted((a, b) => a.startTime - b.startTime)) {
    for (const line of linesOf(payload)) {
      const spansOfLine = lines.get(line) ?? [];
      const last = spansOfLine.at(-1);
      const [start, end] = [Math.round(startTime * 1000), Math.round(endTime * 1000)];
      if (last && start <= last[1]) last[1] = Math.max(last[1], end);
      else spansOfLine.push([start, end]);
      lines.set(line, spansOfLine);
    }
  }
  return [...lines].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Reads WebVTT strictly: any error of the W3C's parser fails. */
function readStrictly(content, url) {
  const { cues, errors } = new webvtt.WebVTTParser().parse(content, 'metadata');
  assert.deepEqual(errors, [], url);
  return cues;
}

/** Reads WebVTT as video.js does. */
function readWithVttJs(content) {
  class VTTCue {
    constructor(startTime, endTime, payload) { Object.assign(this, { startTime, endTime, text: payload, id: '' }); }
  }
  const parser = new vtt.WebVTT.Parser({ VTTCue, VTTRegion: class {} }, vtt.WebVTT.StringDecoder());
  const cues = [];
  parser.oncue = (cue) => cues.push(cue);
  parser.onparsingerror = (error) => assert.fail(error.message);
  parser.parse(content);
  parser.flush();
  return cues;
}

const seen = (cue) => [cue.id, cue.startTime, cue.endTime, cue.text];
/** Cues in the order of text tracks in browsers, which webvtt-parser returns. */
const ordered = (cues) => cues.toSorted((a, b) => a.startTime - b.startTime || b.endTime - a.endTime).map(seen);

/** Reads WebVTT with both parsers, which agree. */
function readVtt(content, url) {
  const strict = readStrictly(content, url);
  assert.deepEqual(ordered(readWithVttJs(content)), strict.map(seen), url);
  return strict;
}

/** Returns the URL of the WebVTT file of a title's only text. */
async function findText(title) {
  const { texts } = JSON.parse(await text(`${server.url}/${title}/.json`));
  assert.equal(texts.length, 1, title);
  return new URL(texts[0].url, `${server.url}/${title}/`).href;
}

async function readWhole(title) {
  const url = await findText(title);
  return readVtt(await text(url), url);
}

/** Reads all segments of HLS; cues that several segments contain are equal. */
async function readHlsSegments(title, manifest) {
  const multivariant = `${server.url}/${title}/${manifest}`;
  const [, uri] = (await text(multivariant)).match(/TYPE=SUBTITLES.*URI="([^"]+)"/);
  const playlist = new URL(uri, multivariant);
  const segments = (await text(playlist)).split('\n').filter((line) => line && !line.startsWith('#'));
  const cues = new Map();
  for (const segment of segments) {
    const lines = (await text(new URL(segment, playlist))).split('\n');
    // Only HLS defines this line (RFC 8216, 3.5); for webvtt-parser, a blank line must follow the first.
    assert.match(lines.splice(1, 1)[0], /^X-TIMESTAMP-MAP=MPEGTS:\d+,LOCAL:00:00:00\.000$/);
    for (const cue of readVtt(lines.join('\n'), segment)) cues.set(JSON.stringify(seen(cue)), cue);
  }
  return [...cues.values()];
}

/** mp4box.js reads the UTF-8 of cues as one character per byte. */
const utf8 = (bytes) => Buffer.from(bytes, 'latin1').toString('utf8');

/** Reads the samples of DASH text with mp4box.js. */
async function readDashSegments(title) {
  const manifest = `${server.url}/${title}/.mpd`;
  const mpd = await text(manifest);
  const { mediaGroups } = mpdParser.parse(mpd, { manifestUri: manifest });
  // mpd-parser does not return it.
  const [, timescale, ticks] = mpd.match(/contentType="text"[^]*?timescale="(\d+)" presentationTimeOffset="(\d+)"/);
  const offset = ticks / timescale;
  const [group] = Object.values(Object.values(mediaGroups.SUBTITLES.subs)[0].playlists ?? []);
  const cues = [];
  for (const segment of group.segments) {
    const file = createFile();
    const bytes = Buffer.concat([await get(segment.map.resolvedUri), await get(segment.resolvedUri)]);
    const { buffer } = new Uint8Array(bytes);
    buffer.fileStart = 0;
    file.appendBuffer(buffer, true);
    file.flush();
    for (const sample of file.getTrackSamplesInfo(file.getInfo().tracks[0].id)) {
      const data = new Uint8Array(bytes.subarray(sample.offset, sample.offset + sample.size));
      for (const box of new VTTin4Parser().parseSample(data).filter(({ type }) => type === 'vttc')) {
        cues.push({ startTime: sample.cts / sample.timescale - offset, endTime: (sample.cts + sample.duration) / sample.timescale - offset, text: utf8(box.payl.text) });
      }
    }
  }
  return cues;
}

/** Reads the IMSC documents of all DASH segments with ttconv. Their times are those of the track. */
async function readImscSegments(title) {
  const folderOfText = (await findText(title)).replace(/all\.vtt$/, '');
  const playlist = await text(`${folderOfText}imsc.m3u8`);
  const cues = [];
  for (const segment of playlist.split('\n').filter((line) => line && !line.startsWith('#'))) {
    const bytes = Buffer.from(await get(`${folderOfText}${segment}`));
    fs.writeFileSync(path.join(folder, 'segment.ttml'), bytes.subarray(bytes.indexOf('mdat') + 4));
    cues.push(...convertWithTtconv('segment.ttml'));
  }
  const zero = JSON.parse(await text(`${server.url}/${title}/.json`)).zero_ms / 1000;
  return cues.map((cue) => ({ ...cue, startTime: cue.startTime - zero, endTime: cue.endTime - zero }));
}

/** Converts a source to WebVTT with ttconv. Returns its cues. */
function convertWithTtconv(source) {
  run(tt, 'convert', '-i', source, '-o', 'converted.vtt');
  return readStrictly(fs.readFileSync(path.join(folder, 'converted.vtt'), 'utf8'), source);
}

const expected = (cues) => timeline(cues.map(([start, end, lines]) => ({ startTime: start / 1000, endTime: end / 1000, text: lines.map(escapeXml).join('\n') })));

for (const [title, source, cues] of [
  ['srt.mp4', 'srt.en.srt', CUES], ['vtt.mp4', 'vtt.en.vtt', CUES], ['ttml.mp4', 'ttml.en.ttml', CUES],
  ['overlapping.mp4', 'overlapping.en.srt', OVERLAPPING], ['tx3g.mp4', 'srt.en.srt', CUES],
  ['vtt-in-cmaf', 'vtt.en.vtt', CUES], ['ttml-in-cmaf', 'unmarked.vtt', UNMARKED],
]) {
  test(`other parsers agree on every cue of ${title}`, async (t) => {
    if (title.endsWith('cmaf') && !fs.existsSync(packager)) return skip(t, 'the reference packager is not installed');
    const wanted = expected(cues);
    assert.deepEqual(timeline(await readWhole(title)), wanted, 'the whole file');
    assert.deepEqual(timeline(await readHlsSegments(title, '.m3u8')), wanted, 'HLS');
    assert.deepEqual(timeline(await readHlsSegments(title, '.m3u8?format=ts')), wanted, 'HLS-TS');
    assert.deepEqual(timeline(await readDashSegments(title)), wanted, 'DASH');
  });

  test(`ttconv agrees on every cue of ${source} in ${title}`, async (t) => {
    if (!fs.existsSync(tt)) return skip(t, 'ttconv is not installed');
    if (title.endsWith('cmaf') && !fs.existsSync(packager)) return skip(t, 'the reference packager is not installed');
    assert.deepEqual(timeline(await readWhole(title)), timeline(convertWithTtconv(source)));
  });
}

test('ttconv agrees on every cue of the IMSC segments that we write', async (t) => {
  if (!fs.existsSync(tt)) return skip(t, 'ttconv is not installed');
  for (const [title, cues] of [['srt.mp4', CUES], ['overlapping.mp4', OVERLAPPING]]) {
    assert.deepEqual(timeline(await readImscSegments(title)), expected(cues), title);
  }
});
