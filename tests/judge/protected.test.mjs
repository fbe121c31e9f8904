// Common Encryption, read by ffmpeg's decryption, the reference packager's boxes and each player of the page
// (ClearKey), through an edge. The test derives keys as docs/how-to/drm.md specifies.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import hlsParser from 'hls-parser';
import { begun, ended, launch, open } from './browser.mjs';
import { get, library, root, serve, skip, start, text } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-protected-'));
const secret = crypto.randomBytes(32).toString('hex');
const records = path.join(folder, 'origin.jsonl');
const packager = process.env.PACKAGER ?? path.join(root, 'target/packager/packager');
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
  }
  servers.edge = await start('edge', '--origin', servers.cbcs.url);
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

/** Returns media playlists as { url, isVideo, playlist }. */
async function playlists(server, title) {
  const master = `${server.url}/${title}/.m3u8`;
  const uris = new Set((await text(master)).match(/[^"\n]+\.m3u8/g));
  return Promise.all([...uris].map(async (uri) => {
    const url = new URL(uri, master).href;
    const body = await text(url);
    return { url, isVideo: /video/.test(uri), isKeyFrames: uri.includes('keyframes'), body, lines: body.split('\n') };
  }));
}

/** Joins the init segment and media segments of a playlist into one file. */
async function download({ url, lines }, name) {
  const init = lines.find((line) => line.startsWith('#EXT-X-MAP')).match(/URI="([^"]+)"/)[1];
  const uris = [init, ...lines.filter((line) => line && !line.startsWith('#'))];
  const bytes = await Promise.all(uris.map((uri) => get(new URL(uri, url))));
  const file = path.join(folder, name);
  fs.writeFileSync(file, Buffer.concat(bytes));
  return file;
}

function frameHashes(file, key) {
  const args = ['-v', 'error', ...(key ? ['-decryption_key', key] : []), '-i', '-', '-map', '0', '-fps_mode', 'passthrough', '-f', 'framemd5', '-'];
  // FFmpeg 5 looks all fragments of a seekable file up in the last one's senc.
  const run = spawnSync('ffmpeg', args, { input: fs.readFileSync(file), maxBuffer: 1 << 26 });
  return { out: run.stdout.toString().replace(/^#software.*\n/m, ''), err: run.stderr.toString() };
}

const TITLES = ['avc.mp4', 'ladder', 'hevc.mp4', 'several_tracks.mp4', 'opus.mp4', 'flac.mp4'].filter((name) => fs.existsSync(path.join(library, name)));

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

for (const [engine, variants] of [['hls', ['cmaf']], ['shaka', ['dash', 'cmaf']], ['dash', ['time', 'number']]]) {
  for (const variant of variants) {
    for (const [name, scheme] of [['edge', 'cbcs'], ['cenc', 'cenc']]) {
      test(`a protected film plays with ${engine} ${variant}, ${scheme}, to the end`, async (t) => {
        if (!browser) return skip(t, 'browsers: Chromium is not installed');
        const view = await open(browser, servers[name], 'ladder', `player=${engine}&variant=${variant}`);
        await view.until('the start', begun);
        await view.until('the end', ended);
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
