// CMAF read by mp4box.js: no edit lists, tfdt is the sum of all earlier durations, no frame is shown
// before it is decoded, the first frame is shown at the time in the segment's name, and playlists and MPDs
// declare the real durations.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFile } from 'mp4box';
import { parse as parseMpd } from 'mpd-parser';
import { Parser } from 'm3u8-parser';
import { get, peakRate, serve, text, titles } from './support.mjs';

let server;
before(async () => { server = await serve(undefined, '--segment', '2s'); });
after(() => server.stop());

function open(bytes) {
  const file = createFile();
  let error = null;
  file.onError = (_, message) => { error = message; };
  const buffer = bytes.slice().buffer;
  buffer.fileStart = 0;
  file.appendBuffer(buffer, true);
  file.flush();
  assert.equal(error, null);
  return file;
}

/** Reads an init segment: one track, no samples, no edit list. */
async function init(url) {
  const file = open(await get(url));
  const { moov } = file;
  assert.deepEqual(file.boxes.map((b) => b.type).filter((b) => b !== 'free'), ['ftyp', 'moov'], url);
  assert.equal(moov.traks.length, 1, `${url}: one track`);
  const [trak] = moov.traks;
  assert.equal(trak.edts, undefined, `${url}: an edit list`);
  assert.equal(trak.mdia.minf.stbl.stsz?.sample_count ?? 0, 0);
  assert.equal(moov.mvex.trexs[0].track_id, trak.tkhd.track_id);
  const brands = [file.ftyp.major_brand, ...file.ftyp.compatible_brands];
  assert.ok(brands.includes('cmfc'), `${url}: ${brands}`);
  return {
    timescale: trak.mdia.mdhd.timescale,
    trex: moov.mvex.trexs[0],
    track: trak.tkhd.track_id,
    codec: file.getInfo().tracks[0].codec,
  };
}

/** Reads a media segment: decode time, duration, presentation times of its first and earliest frame.
 *  Checks that the samples fill its mdat exactly. */
async function segment(url, head) {
  const bytes = await get(url);
  const file = open(bytes);
  const media = file.boxes.filter((b) => b.type === 'moof' || b.type === 'mdat');
  let at = null;
  let duration = 0;
  let earliest = Infinity;
  let shown = null;
  let samples = 0;
  for (const moof of file.moofs) {
    assert.equal(moof.trafs.length, 1);
    const [traf] = moof.trafs;
    assert.equal(traf.tfhd.track_id, head.track);
    assert.ok(traf.tfhd.flags & 0x020000, `${url}: default-base-is-moof`);
    assert.ok(traf.tfdt, `${url}: tfdt`);
    const start = Number(traf.tfdt.baseMediaDecodeTime);
    if (at === null) at = start;
    assert.equal(start, at + duration, `${url}: fragments follow one another`);
    let filled = 0;
    for (const run of traf.truns) {
      for (let n = 0; n < run.sample_count; n += 1) {
        const cts = run.sample_composition_time_offset[n] ?? 0;
        assert.ok(cts >= 0, `${url}: a negative composition offset`);
        shown ??= at + cts;
        earliest = Math.min(earliest, at + duration + cts);
        duration += run.sample_duration[n] ?? (traf.tfhd.flags & 8 ? traf.tfhd.default_sample_duration : head.trex.default_sample_duration);
        filled += run.sample_size[n] ?? (traf.tfhd.flags & 16 ? traf.tfhd.default_sample_size : head.trex.default_sample_size);
        samples += 1;
      }
    }
    const mdat = media[media.indexOf(moof) + 1];
    assert.equal(mdat.type, 'mdat');
    assert.equal(mdat.size - (mdat.hdr_size ?? 8), filled, `${url}: mdat is filled exactly`);
    assert.equal(traf.truns[0].data_offset, mdat.start + (mdat.hdr_size ?? 8) - moof.start, `${url}: data_offset`);
  }
  assert.ok(samples > 0, `${url}: no samples`);
  return { at, duration, shown, earliest, samples, bytes: bytes.length };
}

/** Reads a rendition. Checks that tfdt is the time in the URL minus one constant delay, and the sum of
 *  all earlier durations. */
async function rendition(initUrl, urls) {
  const head = await init(initUrl);
  let next = null;
  let delay = null;
  const found = [];
  for (const url of urls) {
    const own = await segment(url, head);
    const named = String(url).match(/\/(\d+)\.m4s$/);
    delay ??= own.shown - own.at;
    if (named && !/\/n\/\d+\.m4s/.test(url)) assert.equal(own.at, Number(named[1]) - delay, `${url}: tfdt`);
    // Exceptions: leading frames of open GOPs, and dropped frames between reordered ones.
    if (!/open_gop|vfr/.test(url)) {
      assert.equal(own.earliest, own.shown, `${url}: the first frame is shown first`);
      assert.equal(own.shown, own.at + delay, `${url}: the first frame is shown at the time in the URL`);
    }
    if (next !== null) assert.equal(own.at, next, `${url}: tfdt is the sum of all earlier durations`);
    next = own.at + own.duration;
    found.push(own);
  }
  return { ...head, segments: found, start: found[0].at, end: next };
}

function mediaPlaylist(body) {
  const parser = new Parser();
  parser.push(body);
  parser.end();
  return parser.manifest;
}

for (const title of titles) {
  test(`${title} in HLS`, async () => {
    const master = `${server.url}/${title}/.m3u8`;
    const body = await text(master);
    const uris = [...body.matchAll(/URI="(hls\/[^"]+)"/g)].map((m) => m[1]);
    uris.push(...body.split('\n').filter((line) => line && !line.startsWith('#')));
    for (const uri of new Set(uris)) {
      const url = new URL(uri, master);
      const printed = await text(url);
      const { segments } = mediaPlaylist(printed);
      const track = await rendition(
        new URL(segments[0].map.uri, url),
        segments.map((s) => new URL(s.uri, url)),
      );
      const codecs = [...body.matchAll(/CODECS="([^"]+)"/g)].flatMap((m) => m[1].split(','));
      const alike = (codec) => codec.toLowerCase().replace('mp4a.6b', 'mp4a.40.34');
      const isChecked = /^(avc1|mp4a|hvc1)/.test(track.codec);
      assert.ok(!isChecked || codecs.map(alike).includes(alike(track.codec)), `${uri}: ${track.codec} is not in ${codecs}`);
      // EXTINF is the exact media duration to the last digit, without drift.
      let listed = 0;
      let real = 0;
      track.segments.forEach((own, n) => {
        const lead = n === 0 ? segments[0].duration - own.duration / track.timescale : 0;
        if (n === 0 && lead > 0.25) listed -= lead;
        listed += segments[n].duration;
        real += own.duration / track.timescale;
        assert.ok(Math.abs(listed - real) < 1 / track.timescale + 1e-6 * (n + 1), `${uri} ${n}: listed ${listed}, is ${real}`);
      });
    }
  });

  for (const template of ['time', 'number']) {
    test(`${title} in DASH by ${template}`, async () => {
      const url = `${server.url}/${title}/.mpd?template=${template}`;
      const xml = await text(url);
      const { playlists, mediaGroups } = parseMpd(xml, { manifestUri: url });
      const groups = Object.values(mediaGroups.AUDIO).flatMap((g) => Object.values(g)).flatMap((g) => g.playlists);
      const all = [...playlists, ...groups];
      const ids = [...xml.matchAll(/<Representation[^>]*\bid="([^"]+)"/g)].map((m) => m[1]);
      const unique = [...new Map(all.map((p) => [p.attributes.NAME, p])).values()];
      assert.equal(unique.length, ids.length, `mpd-parser finds ${unique.map((p) => p.attributes.NAME)}`);
      const longest = Math.round(Math.max(...unique.flatMap((p) => p.segments.map((s) => s.duration))));
      for (const playlist of unique) {
        const name = playlist.attributes.NAME;
        const track = await rendition(
          playlist.segments[0].map.resolvedUri,
          playlist.segments.map((s) => s.resolvedUri),
        );
        playlist.segments.forEach((s, n) => {
          const off = Math.abs(s.duration - track.segments[n].duration / track.timescale);
          assert.ok(off < 1e-6, `${name} ${n}: ${s.duration} listed`);
        });
        const sizes = track.segments.map((s) => ({ seconds: s.duration / track.timescale, bytes: s.bytes }));
        const peak = peakRate(sizes, longest);
        const stated = playlist.attributes.BANDWIDTH;
        assert.ok(stated >= peak * 0.999 && stated <= peak * 1.1, `${name}: bandwidth ${stated}, measured ${peak}`);
      }
      const declared = xml.match(/mediaPresentationDuration="PT([\d.]+)S"/);
      assert.ok(declared, 'mediaPresentationDuration in seconds');
    });
  }
}
