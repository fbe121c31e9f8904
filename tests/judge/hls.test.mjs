// HLS: two other parsers read every playlist, every URL is fetched, and the rules of the RFC are checked.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import hlsParser from 'hls-parser';
import { Parser } from 'm3u8-parser';
import { get, peakRate, rate, serve, text, titles } from './support.mjs';

let server;
before(async () => { server = await serve(undefined, '--segment', '2s'); });
after(() => server.stop());
hlsParser.setOptions({ strictMode: true });

function read(playlist) {
  const parser = new Parser();
  parser.push(playlist);
  parser.end();
  return parser.manifest;
}

/** Reads a media playlist with both parsers, which must agree, and fetches all segments. */
async function mediaPlaylist(url) {
  const body = await text(url);
  const theirs = read(body);
  const strict = hlsParser.parse(body);
  assert.equal(strict.isMasterPlaylist, false);
  assert.equal(strict.segments.length, theirs.segments.length);
  assert.equal(theirs.endList, true);
  assert.equal(theirs.playlistType, 'VOD');
  const segments = [];
  for (const [n, segment] of theirs.segments.entries()) {
    assert.equal(strict.segments[n].uri, segment.uri);
    const range = segment.byterange;
    assert.equal(range, undefined, 'byte ranges are not expected');
    const bytes = await get(new URL(segment.uri, url));
    segments.push({ duration: segment.duration, bytes: bytes.length, url: segment.uri });
  }
  const map = theirs.segments[0]?.map?.uri;
  if (map) await get(new URL(map, url));
  const kind = url.split('/').at(-2).startsWith('video') ? 'video' : 'audio';
  return { body, url, kind, segments, map, target: theirs.targetDuration, version: strict.version };
}

/** Parses EXTINF exactly, in nanoseconds. */
const printed = (body) => [...body.matchAll(/^#EXTINF:(\d+)(?:\.(\d+))?,/gm)]
  .map(([, whole, part = '']) => BigInt(whole) * 1_000_000_000n + BigInt(part.padEnd(9, '0').slice(0, 9)));

function mediaRules(media) {
  assert.ok(media.segments.length > 0, `${media.url} is empty`);
  for (const { duration } of media.segments) {
    assert.ok(duration > 0);
    assert.ok(Math.round(duration) <= media.target, `${media.url}: EXTINF ${duration} > ${media.target}`);
  }
  for (const line of media.body.matchAll(/^#EXTINF:(.*)$/gm)) {
    assert.match(line[1], /^\d+\.\d{6,},$/, `${media.url}: at least 6 decimals`);
  }
}

/** Returns peak and average bits per second. */
function measured({ segments, target }) {
  const sizes = segments.map((s) => ({ seconds: s.duration, bytes: s.bytes }));
  return { peak: peakRate(sizes, target), average: rate(sizes) };
}

const within = (stated, real, what) => {
  const ratio = stated / real;
  assert.ok(ratio >= 0.999 && ratio <= 1.1, `${what}: stated ${stated}, measured ${Math.round(real)}`);
};

for (const title of titles) {
  for (const format of ['cmaf', 'ts']) {
    test(`${title} as ${format}`, async (t) => {
      const address = `${server.url}/${title}/.m3u8${format === 'ts' ? '?format=ts' : ''}`;
      const response = await fetch(address);
      if (format === 'ts' && [404, 406, 415, 422].includes(response.status)) {
        const reason = response.headers.get('headwater-error');
        await response.arrayBuffer();
        assert.match(title, /av1|vp9|opus|flac/, `refused: ${reason}`);
        return;
      }
      const body = await response.text();
      assert.equal(response.status, 200, response.headers.get('headwater-error'));
      const master = read(body);
      const strict = hlsParser.parse(body);
      assert.equal(strict.isMasterPlaylist, true);
      const variants = strict.variants.filter((v) => !v.isIFrameOnly);
      assert.equal(variants.length, master.playlists.length);
      assert.ok(variants.length > 0);

      const playlists = new Map();
      const media = async (uri) => {
        const url = new URL(uri, address).href;
        if (!playlists.has(url)) playlists.set(url, await mediaPlaylist(url));
        return playlists.get(url);
      };
      for (const variant of variants) {
        const own = await media(variant.uri);
        let peak = measured(own).peak;
        let average = measured(own).average;
        const sounds = variant.audio.filter((sound) => sound.uri);
        if (sounds.length > 0 && own.kind === 'video') {
          const rates = await Promise.all(sounds.map(async (sound) => measured(await media(sound.uri))));
          peak += Math.max(...rates.map((r) => r.peak));
          average += Math.max(...rates.map((r) => r.average));
        }
        within(variant.bandwidth, peak, `${variant.uri} BANDWIDTH`);
        within(variant.averageBandwidth, average, `${variant.uri} AVERAGE-BANDWIDTH`);
        assert.ok(variant.codecs, `${variant.uri}: CODECS`);
        if (variant.uri.includes('/video')) {
          assert.ok(variant.resolution?.width > 0, `${variant.uri}: RESOLUTION`);
          assert.ok(variant.frameRate > 0, `${variant.uri}: FRAME-RATE`);
        }
      }
      for (const line of body.matchAll(/^#EXT-X-MEDIA:.*URI="([^"]+)"/gm)) await media(line[1]);

      const lengths = new Set();
      for (const own of playlists.values()) {
        mediaRules(own);
        lengths.add(own.target);
        const total = printed(own.body).reduce((a, b) => a + b, 0n);
        own.seconds = Number(total) / 1e9;
        assert.equal(format === 'ts', own.map === undefined, 'EXT-X-MAP is for CMAF');
      }
      assert.equal(lengths.size, 1, `one TARGETDURATION for all: ${[...lengths]}`);

      // Segments of all video renditions start at the same times.
      if (title.includes('ladder')) {
        const grids = [...playlists.values()].filter((p) => p.kind === 'video')
          .map((p) => printed(p.body).join());
        assert.equal(new Set(grids).size, 1, 'renditions share one grid');
      }

      for (const line of body.matchAll(/^#EXT-X-I-FRAME-STREAM-INF:(?:.*,)?BANDWIDTH=(\d+).*URI="([^"]+)"/gm)) {
        const keys = await mediaPlaylist(new URL(line[2], address).href);
        assert.match(keys.body, /#EXT-X-I-FRAMES-ONLY/);
        within(Number(line[1]), measured(keys).peak, `${line[2]} BANDWIDTH`);
        const film = [...playlists.values()].find((p) => p.kind === 'video');
        const total = keys.segments.reduce((sum, s) => sum + s.duration, 0);
        assert.ok(Math.abs(total - film.seconds) < 0.001 * (keys.segments.length + 1), `key frames tile: ${total} of ${film.seconds}`);
      }
    });
  }
}
