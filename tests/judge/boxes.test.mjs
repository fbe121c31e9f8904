// CMAF read by mp4box.js: no edit lists, tfdt is the sum of all earlier durations, no frame is shown
// before it is decoded, the earliest frame is shown at the time in the segment's name, and playlists and MPDs
// declare the real durations.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parse as parseMpd } from 'mpd-parser';
import { Parser } from 'm3u8-parser';
import { init, segment } from './cmaf.mjs';
import { peakRate, serve, text, titles } from './support.mjs';

let server;
before(async () => { server = await serve(undefined, '--segment', '2s'); });
after(() => server.stop());

/** Reads a rendition. Checks that tfdt is the sum of all earlier durations, and that the time in the URL is
 *  that of the earliest frame. `shownTicks` of a segment is the time from its earliest frame to that of the next
 *  segment, or to the end of the frame that is presented last. */
async function rendition(initUrl, urls) {
  const head = await init(initUrl);
  let next = null;
  const found = [];
  for (const url of urls) {
    const own = await segment(url, head);
    const named = String(url).match(/\/(\d+)\.m4s$/);
    if (named && !/\/n\/\d+\.m4s/.test(url)) assert.equal(own.earliest, Number(named[1]), `${url}: the earliest frame`);
    // Exception: leading frames of open GOPs.
    if (!/open_gop/.test(url)) assert.equal(own.earliest, own.shown, `${url}: the first frame is shown first`);
    if (next !== null) assert.equal(own.at, next, `${url}: tfdt is the sum of all earlier durations`);
    next = own.at + own.duration;
    found.push(own);
  }
  const end = found.map((own) => own.last).sort((a, b) => a.shown - b.shown).at(-1).end;
  found.forEach((own, n) => { own.shownTicks = (found[n + 1]?.earliest ?? end) - own.earliest; });
  return { ...head, segments: found };
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
      // EXTINF is the exact time between presentation times to the last digit, without drift.
      let listed = 0;
      let real = 0;
      track.segments.forEach((own, n) => {
        const lead = n === 0 ? segments[0].duration - own.shownTicks / track.timescale : 0;
        if (n === 0 && lead > 0.25) listed -= lead;
        listed += segments[n].duration;
        real += own.shownTicks / track.timescale;
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
          const off = Math.abs(s.duration - track.segments[n].shownTicks / track.timescale);
          assert.ok(off < 1e-6, `${name} ${n}: ${s.duration} listed`);
        });
        const sizes = track.segments.map((s) => ({ seconds: s.shownTicks / track.timescale, bytes: s.bytes }));
        const peak = peakRate(sizes, longest);
        const stated = playlist.attributes.BANDWIDTH;
        assert.ok(stated >= peak * 0.999 && stated <= peak * 1.1, `${name}: bandwidth ${stated}, measured ${peak}`);
      }
      const declared = xml.match(/mediaPresentationDuration="PT([\d.]+)S"/);
      assert.ok(declared, 'mediaPresentationDuration in seconds');
    });
  }
}
