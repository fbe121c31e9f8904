// First and last presentation times: manifests (hls-parser, mpd-parser) and segments (mp4box.js) agree with what
// ffprobe reports of the source.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import hlsParser from 'hls-parser';
import { parse as parseMpd } from 'mpd-parser';
import { init, segment } from './cmaf.mjs';
import { partialFilms, probePartialFilm, probeTimes } from './probe.mjs';
import { serve, text, titles, tracks } from './support.mjs';

/** Durations of edits are rounded to ticks of the movie, usually milliseconds. */
const EDIT_SLACK_S = 0.0011;
/** A track that starts this much after the first one has the difference in its first segment. */
const LEAD_S = 0.25;

let server;
let partial;
before(async () => {
  server = await serve(undefined, '--segment', '2s');
  partial = await serve(tracks, '--segment', '2s');
});
after(() => {
  server?.stop();
  partial?.stop();
});
hlsParser.setOptions({ strictMode: true });

/** Reads the MPD and segments: the duration, and for each rendition its kind, start and end in the MPD, and first and
 *  last presentation time in its segments, in seconds since the film's zero. */
async function readDash(server, title) {
  const url = `${server.url}/${title}/.mpd`;
  const xml = await text(url);
  const { playlists, mediaGroups } = parseMpd(xml, { manifestUri: url });
  const groups = Object.values(mediaGroups.AUDIO).flatMap((g) => Object.values(g)).flatMap((g) => g.playlists);
  const byName = new Map([...playlists, ...groups].map((p) => [p.attributes.NAME, p]));
  const renditions = new Map();
  for (const [name, { segments }] of byName) {
    const zero = zeroOf(xml, name);
    const start = Number(segments[0].resolvedUri.match(/\/(\d+)\.m4s$/)[1]) / zero.timescale - zero.offset;
    const length = segments.reduce((sum, s) => sum + s.duration, 0);
    const media = await readMedia(segments, zero);
    renditions.set(name, { kind: name.split(/[=_]/)[0], start, end: start + length, ...media, zero });
  }
  return { duration: Number(xml.match(/mediaPresentationDuration="PT([\d.]+)S"/)[1]), renditions };
}

/** Returns presentation times in the first and last segment, in seconds since the film's zero. */
async function readMedia(segments, { timescale, offset }) {
  const head = await init(segments[0].map.resolvedUri);
  const first = await segment(segments[0].resolvedUri, head);
  const final = segments.length > 1 ? await segment(segments.at(-1).resolvedUri, head) : first;
  const since = (ticks) => ticks / timescale - offset;
  return { earliest: since(first.earliest), last: since(final.last.shown), mediaEnd: since(final.last.end) };
}

/** Returns timescale and presentationTimeOffset of a Representation's template, the latter in seconds. */
function zeroOf(xml, name) {
  const set = xml.split('<AdaptationSet').find((part) => part.includes(` id="${name}"`));
  const own = set.slice(set.indexOf(` id="${name}"`));
  const template = set.split('<SegmentTemplate').length > 2 ? own.match(/<SegmentTemplate[^>]*>/)[0] : set.match(/<SegmentTemplate[^>]*>/)[0];
  const timescale = Number(template.match(/timescale="(\d+)"/)[1]);
  const offset = Number(template.match(/presentationTimeOffset="(\d+)"/)?.[1] ?? 0) / timescale;
  return { timescale, offset };
}

/** Reads the HLS playlists: the precise start, and name, start (served time) and length of each, in seconds. */
async function readHls(server, title) {
  const url = `${server.url}/${title}/.m3u8`;
  const multivariant = hlsParser.parse(await text(url));
  const uris = multivariant.variants.filter((v) => !v.isIFrameOnly).flatMap((v) => [v.uri, ...v.audio.map((a) => a.uri)]);
  const playlists = new Map();
  for (const uri of new Set(uris.filter(Boolean))) {
    const media = hlsParser.parse(await text(new URL(uri, url)));
    const ticks = Number(media.segments[0].uri.match(/^(\d+)\.m4s$/)[1]);
    playlists.set(uri.split('/').at(-2), { ticks, length: media.segments.reduce((sum, s) => sum + s.duration, 0) });
  }
  return { start: multivariant.start, playlists };
}

const near = (a, b, slack = EDIT_SLACK_S) => Math.abs(a - b) <= slack;

const films = [...titles.map((title) => ({ title, isPartial: false })), ...partialFilms.map((title) => ({ title, isPartial: true }))];
for (const { title, isPartial } of films) {
  test(`${title}: DASH and HLS present the times of ffprobe`, async () => {
    const sources = isPartial ? probePartialFilm(title) : probeTimes(title);
    const from = isPartial ? partial : server;
    // The zero of a film that starts late is its first presented sample.
    const late = Math.min(...sources.map((s) => s.first));
    const dash = await readDash(from, title);
    const hls = await readHls(from, title);
    assert.deepEqual([...hls.playlists.keys()].sort(), [...dash.renditions.keys()].sort());
    const served = [...dash.renditions.values()];
    const isServed = (source, own) => own.kind === source.kind
      && near(source.first - late, Math.max(own.earliest, 0)) && near(source.last - late, own.last);
    for (const source of sources) {
      assert.ok(served.some((own) => isServed(source, own)), `not served: ${JSON.stringify(source)}: ${JSON.stringify(served)}`);
    }
    const earliest = Math.min(...served.map((r) => r.start));
    for (const [name, own] of dash.renditions) {
      assert.ok(sources.some((source) => isServed(source, own)), `${name}: ${JSON.stringify(own)}; ffprobe: ${JSON.stringify(sources)}`);
      assert.ok(near(own.start, own.earliest, 1e-9), `${name}: the MPD starts at ${own.start}, media at ${own.earliest}`);
      assert.ok(near(own.end, own.mediaEnd, 1e-6), `${name}: the MPD ends at ${own.end}, media at ${own.mediaEnd}`);
      const playlist = hls.playlists.get(name);
      assert.equal(playlist.ticks, Math.round((own.start + own.zero.offset) * own.zero.timescale), `${name}: the first segment`);
      const lead = own.start - earliest > LEAD_S ? own.start - earliest : 0;
      // The lead is rounded to a tick.
      const slack = 2e-6 + (lead > 0 ? 1 / own.zero.timescale : 0);
      assert.ok(near(playlist.length, own.end - own.start + lead, slack), `${name}: HLS lasts ${playlist.length}, DASH ${own.end - own.start}`);
    }
    const end = Math.max(...served.map((own) => own.end));
    assert.ok(near(dash.duration, end, 1e-6), `mediaPresentationDuration ${dash.duration}, media ${end}`);
    assertPreciseStart(hls, served.find((r) => r.kind === 'video'));
  });
}

/** Playlists that start with hidden pictures have a precise start at the film's zero. */
function assertPreciseStart(hls, video) {
  const hidden = video ? -video.start : 0;
  if (hidden < 0.01) {
    assert.equal(hls.start, undefined, 'EXT-X-START without hidden pictures');
    return;
  }
  assert.equal(hls.start?.precise, true, `EXT-X-START for ${hidden} s of hidden pictures`);
  assert.ok(near(hls.start.offset, hidden, 2e-6), `TIME-OFFSET ${hls.start.offset}, hidden ${hidden}`);
}

for (const [title, rate] of [['vfr_slows.mp4', 60], ['avc_vfr.mp4', 30], ['avc_2997.mp4', 29.97]]) {
  test(`${title}: FRAME-RATE and @maxFrameRate are the maximum`, async () => {
    const { variants } = hlsParser.parse(await text(`${server.url}/${title}/.m3u8`));
    assert.equal(variants[0].frameRate, rate);
    const [, frames, seconds = '1'] = (await text(`${server.url}/${title}/.mpd`)).match(/maxFrameRate="(\d+)(?:\/(\d+))?"/);
    assert.ok(near(Number(frames) / Number(seconds), rate, 0.001), `${frames}/${seconds}`);
  });
}

for (const [title, isIndependent] of [['avc_open_gop.mp4', false], ['avc.mp4', true]]) {
  test(`${title}: segments are ${isIndependent ? '' : 'not '}listed as independent`, async () => {
    const url = `${server.url}/${title}/.m3u8`;
    const multivariant = hlsParser.parse(await text(url));
    const media = hlsParser.parse(await text(new URL(multivariant.variants[0].uri, url)));
    assert.deepEqual([multivariant.independentSegments ?? false, media.independentSegments ?? false], [isIndependent, isIndependent]);
    const video = (await text(`${server.url}/${title}/.mpd`)).match(/<AdaptationSet[^>]*contentType="video"[^>]*>/)[0];
    assert.match(video, isIndependent ? /startWithSAP="1"/ : /startWithSAP="3"/);
  });
}
