// Common Encryption, read by ffmpeg's decryption and each player of the page (ClearKey), through an edge. The test
// derives keys as docs/how-to/drm.md specifies.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import hlsParser from 'hls-parser';
import { parse as parseMpd } from 'mpd-parser';
import { begun, ended, launch, open } from './browser.mjs';
import { ENCODINGS, boxes, contentKey, download as downloadTo, encode, frameHashes, playlists, uuid } from './protection.mjs';
import { get, library, peakRate, serve, skip, start, text } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-protected-'));
const secret = crypto.randomBytes(32).toString('hex');
const records = path.join(folder, 'origin.jsonl');
const SCHEMES = ['cbcs', 'cenc'];
const servers = {};
let clear;
let browser;

before(async () => {
  const file = path.join(folder, 'secret');
  fs.writeFileSync(file, `${secret}\n`);
  clear = await serve(undefined, '--segment', '2s');
  for (const scheme of SCHEMES) {
    const protection = ['--segment', '2s', '--drm-keys', `secret:${file}`, '--drm-scheme', scheme, '--drm-key-per', 'type'];
    servers[scheme] = await serve(undefined, ...protection, ...(scheme === 'cbcs' ? ['--records', records] : []));
    servers[`dash-${scheme}`] = await serve(undefined, ...protection, '--dash-segment', '4s');
  }
  servers['dash-clear'] = await serve(undefined, '--segment', '2s', '--dash-segment', '4s');
  servers.edge = await start('edge', '--origin', servers.cbcs.url);
  encode(encodings);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  for (const server of [clear, ...Object.values(servers)]) server?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});
hlsParser.setOptions({ strictMode: true });

const derive = (label, title, part) => crypto.createHmac('sha256', secret).update(`${label}\n${title}\n${part}`).digest().subarray(0, 16);
const keyOf = (title, part) => derive('headwater drm key', title, part).toString('hex');
const keyIdOf = (title, part) => derive('headwater drm key id', title, part).toString('hex');

const encodings = path.join(folder, 'encodings');
const download = (playlist, name) => downloadTo(playlist, path.join(folder, name));

const TITLES = ['avc.mp4', 'ladder', 'hevc.mp4', 'hevc_hev1.mp4', 'avc_open_gop.mp4', 'frag_cmaf.mp4', 'several_tracks.mp4', 'ac3.mp4', 'eac3.mp4', 'opus.mp4', 'flac.mp4'].filter((name) => fs.existsSync(path.join(library, name)));

for (const scheme of SCHEMES) {
  for (const title of TITLES) {
    test(`${title}, ${scheme}: ffmpeg decrypts the same frames in segments and key frames`, async () => {
      const [theirs, ours] = [await playlists(clear, title), await playlists(servers[scheme], title)];
      assert.equal(ours.length, theirs.length);
      for (const [n, playlist] of ours.entries()) {
        const name = `${scheme}-${title}-${n}`;
        const [encrypted, plain] = [await download(playlist, `${name}.mp4`), await download(theirs[n], `${name}-clear.mp4`)];
        const key = keyOf(title, playlist.isVideo ? 'VIDEO' : 'AUDIO');
        const [decrypted, expected] = [frameHashes(encrypted, key), frameHashes(plain)];
        assert.ok(expected.out.split('\n').length > 3, expected.out);
        assert.ok(decrypted.out === expected.out, `${playlist.url} decodes differently: ${decrypted.err}`);
        const wrong = frameHashes(encrypted, '00'.repeat(16));
        assert.ok(wrong.out !== expected.out, `${playlist.url} is not encrypted`);
        assert.match(playlist.body, new RegExp(`#EXT-X-KEY:METHOD=${scheme === 'cbcs' ? 'SAMPLE-AES' : 'SAMPLE-AES-CTR'},.*KEYID=0x${keyIdOf(title, playlist.isVideo ? 'VIDEO' : 'AUDIO')}`));
      }
    });
  }
}

/** Returns the representations of an MPD as { isVideo, urls }, with the URL of the init segment first. */
async function representations(server, title) {
  const manifestUri = `${server.url}/${title}/.mpd`;
  const { playlists: video, mediaGroups } = parseMpd(await text(manifestUri), { manifestUri });
  const audio = Object.values(mediaGroups.AUDIO).flatMap((group) => Object.values(group)).flatMap((entry) => entry.playlists);
  const byName = new Map([...video, ...audio].map((playlist) => [playlist.attributes.NAME, playlist]));
  return [...byName.values()].map(({ attributes, segments }) => ({
    isVideo: Boolean(attributes.RESOLUTION),
    urls: [segments[0].map.resolvedUri, ...segments.map(({ resolvedUri }) => resolvedUri)],
  }));
}

/** Fetches a URL in three ranges, and checks that they are those of the whole response. */
async function getInRanges(url) {
  const whole = Buffer.from(await get(url));
  const cuts = [0, Math.ceil(whole.length / 3), Math.ceil(whole.length / 2), whole.length];
  const parts = cuts.slice(1).map(async (end, n) => {
    const response = await fetch(url, { headers: { range: `bytes=${cuts[n]}-${end - 1}` } });
    assert.equal(response.status, 206, url);
    return Buffer.from(await response.arrayBuffer());
  });
  const joined = Buffer.concat(await Promise.all(parts));
  assert.ok(joined.equals(whole), `the ranges of ${url} are other bytes`);
  return joined;
}

for (const scheme of SCHEMES) {
  for (const title of TITLES) {
    test(`${title}, ${scheme}: ffmpeg decrypts the segments of DASH, fetched in ranges`, async () => {
      const [theirs, ours] = [await representations(servers['dash-clear'], title), await representations(servers[`dash-${scheme}`], title)];
      assert.equal(ours.length, theirs.length);
      assert.ok(ours.length > 0);
      for (const [n, { isVideo, urls }] of ours.entries()) {
        const join = async (list, name) => {
          const file = path.join(folder, name);
          fs.writeFileSync(file, Buffer.concat(await Promise.all(list.map(getInRanges))));
          return file;
        };
        const key = keyOf(title, isVideo ? 'VIDEO' : 'AUDIO');
        const decrypted = frameHashes(await join(urls, `dash-${scheme}-${title}-${n}.mp4`), key);
        const expected = frameHashes(await join(theirs[n].urls, `dash-clear-${title}-${n}.mp4`));
        assert.ok(urls.length > 2 && expected.out.split('\n').length > 3, expected.err);
        assert.ok(decrypted.out === expected.out, `${urls[0]} decodes differently: ${decrypted.err}`);
      }
    });
  }
}

for (const scheme of SCHEMES) {
  test(`${scheme}: ffmpeg decrypts slices of every kind`, async () => {
    const file = path.join(folder, 'secret');
    const server = await serve(encodings, '--segment', '2s', '--drm-keys', `secret:${file}`, '--drm-scheme', scheme);
    const plain = await serve(encodings, '--segment', '2s');
    for (const title of Object.keys(ENCODINGS)) {
      const [ours] = await playlists(server, title);
      const [theirs] = await playlists(plain, title);
      const decrypted = frameHashes(await download(ours, `kinds-${scheme}-${title}`), keyOf(title, 'ALL'));
      const expected = frameHashes(await download(theirs, `kinds-clear-${title}`));
      assert.ok(expected.out.split('\n').length > 90, expected.err);
      assert.ok(decrypted.out === expected.out, `${title}: ${decrypted.err}`);
    }
    server.stop();
    plain.stop();
  });
}

/** Returns the bytes of the slice header of each packet with one NAL unit, as ffmpeg parses it; undefined for others. */
function tracedHeaders(file) {
  const run = spawnSync('ffmpeg', ['-i', file, '-map', '0:v', '-c', 'copy', '-bsf:v', 'trace_headers', '-f', 'null', '-'], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const packets = run.stderr.split(/Packet: \d+ bytes/).slice(1);
  return packets.map((packet) => {
    const units = packet.match(/nal_unit_type/g)?.length;
    const fields = [...packet.matchAll(/\] (\d+) +\S.* ([01]+) = /g)].map(([, at, bits]) => Number(at) + bits.length);
    return units === 1 && packet.includes('Slice Segment Header') ? Math.ceil(Math.max(...fields) / 8) : undefined;
  });
}

test('declared bandwidths cover protected segments', async () => {
  for (const [place, title] of [[library, 'ladder'], [encodings, 'slices.mp4']]) {
    for (const scheme of SCHEMES) {
      const server = await serve(place, '--segment', '2s', '--drm-keys', `secret:${path.join(folder, 'secret')}`, '--drm-scheme', scheme);
      const mpd = await text(`${server.url}/${title}/.mpd`);
      for (const { url, lines, isVideo, isKeyFrames } of await playlists(server, title)) {
        if (!isVideo || isKeyFrames) continue;
        const target = Number(lines.find((line) => line.startsWith('#EXT-X-TARGETDURATION')).split(':')[1]);
        const seconds = lines.filter((line) => line.startsWith('#EXTINF')).map((line) => parseFloat(line.slice(8)));
        const bytes = await Promise.all(lines.filter((line) => line.endsWith('.m4s')).map(async (uri) => (await get(new URL(uri, url))).length));
        const peak = Math.floor(peakRate(bytes.map((size, n) => ({ bytes: size, seconds: seconds[n] })), target));
        const [, declared] = mpd.match(new RegExp(`id="${decodeURIComponent(url.split('/').at(-2))}" bandwidth="(\\d+)"`));
        assert.ok(Number(declared) >= peak && Number(declared) < peak * 1.1, `${url}: ${declared} of ${peak}`);
      }
      server.stop();
    }
  }
});

test('slice headers with entry points end where ffmpeg ends them', async () => {
  const title = 'hevc-wavefront.mp4';
  const server = await serve(encodings, '--segment', '60s', '--drm-keys', `secret:${path.join(folder, 'secret')}`);
  const [playlist] = await playlists(server, title);
  const [senc] = boxes(fs.readFileSync(await download(playlist, 'traced.mp4')), 'senc');
  const traced = tracedHeaders(path.join(encodings, title));
  let compared = 0;
  for (let at = 16, n = 0; n < traced.length; n += 1) {
    const count = senc.readUInt16BE(at);
    // Four bytes are the length of the unit.
    if (traced[n] !== undefined) {
      assert.deepEqual([count, senc.readUInt16BE(at + 2)], [1, 4 + traced[n]], `sample ${n}`);
      compared += 1;
    }
    at += 2 + 6 * count;
  }
  assert.ok(compared > 90, `${compared} of ${traced.length}`);
  server.stop();
});

/** Now and then, dash.js does not end the stream of a protected film with numbered segments: playback reaches the end
 *  and pauses there. */
const reachesEnd = () => {
  const { ended, currentTime, duration } = window.headwater.state();
  return ended || currentTime >= duration - 0.05;
};

for (const [engine, variants] of [['hls', ['cmaf']], ['shaka', ['dash', 'cmaf']], ['dash', ['time', 'number']]]) {
  for (const variant of variants) {
    for (const [name, scheme] of [['edge', 'cbcs'], ['cenc', 'cenc']]) {
      test(`a protected film plays with ${engine} ${variant}, ${scheme}, to the end`, async (t) => {
        if (!browser) return skip(t, 'browsers: Chromium is not installed');
        const view = await open(browser, servers[name], 'ladder', `player=${engine}&variant=${variant}`);
        await view.until('the start', begun);
        await view.until('the end', engine === 'dash' ? reachesEnd : ended);
        const last = await view.state();
        assert.deepEqual([last.engine, last.variant, last.errors, view.faults], [engine, variant, [], []]);
        assert.ok(Math.abs(last.currentTime - last.duration) < 0.3, `ended at ${last.currentTime} of ${last.duration}`);
        await view.page.close();
      });
    }
  }
}

test('nothing unencrypted is available', async () => {
  const { url } = servers.cbcs;
  for (const name of ['avc.mp4', 'avc.mp4/.m3u8?format=ts', 'avc.mp4/.key', 'ladder/v1_180p.mp4']) {
    const response = await fetch(`${url}/${name}`);
    assert.equal(response.status, 404, name);
    await response.arrayBuffer();
  }
});

test('no cache stores a license, and records do not contain keys', async () => {
  const response = await fetch(`${servers.edge.url}/avc.mp4/.license`, { method: 'POST', body: JSON.stringify({ kids: [], type: 'temporary' }) });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const { keys } = await response.json();
  const expected = ['VIDEO', 'AUDIO'].map((part) => [keyIdOf('avc.mp4', part), keyOf('avc.mp4', part)]);
  assert.deepEqual(keys.map(({ kid, k }) => [kid, k].map((word) => Buffer.from(word, 'base64url').toString('hex'))), expected);
  await servers.cbcs.drain();
  const written = fs.readFileSync(records, 'utf8');
  assert.match(written, /"kind":"key"/);
  for (const [, key] of expected) assert.ok(!written.includes(key));
});

test('three keys of a document play with ClearKey from a license server', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  const ids = ['a1', 'a2', 'a3'].map((end) => '0'.repeat(30) + end);
  const values = ids.map(() => crypto.randomBytes(16).toString('hex'));
  const filters = ['<VideoFilter maxPixels="100000"/>', '<VideoFilter minPixels="100001"/>', '<AudioFilter/>'];
  const document = path.join(folder, 'three.cpix');
  const rules = ids.map((id, n) => `<ContentKeyUsageRule kid="${uuid(id)}">${filters[n]}</ContentKeyUsageRule>`);
  fs.writeFileSync(document, `<CPIX><ContentKeyList>${ids.map((id, n) => contentKey(id, values[n])).join('')}</ContentKeyList><ContentKeyUsageRuleList>${rules.join('')}</ContentKeyUsageRuleList></CPIX>`);
  const requested = new Set();
  const word = (hex) => Buffer.from(hex, 'hex').toString('base64url');
  // The page's security policy allows only its own server, so the license server has the same address.
  const license = (route) => {
    const { kids } = route.request().postDataJSON();
    kids.forEach((kid) => requested.add(Buffer.from(kid, 'base64url').toString('hex')));
    const keys = ids.map((id, n) => ({ kty: 'oct', kid: word(id), k: word(values[n]) })).filter(({ kid }) => kids.includes(kid));
    return route.fulfill({ json: { keys, type: 'temporary' } });
  };
  const server = await serve(undefined, '--segment', '2s', '--drm-keys', `cpix:${document}`, '--drm-systems', 'clearkey', '--drm-license-url-clearkey', '/license');
  for (const quality of [0, 2]) {
    const view = await open(browser, server, 'ladder', `player=shaka&variant=dash&quality=${quality}`, (page) => page.route('**/license', license));
    await view.until('the end', ended);
    const last = await view.state();
    assert.deepEqual([last.errors, view.faults], [[], []]);
    await view.page.close();
  }
  assert.deepEqual([...requested].sort(), ids);
  server.stop();
});
