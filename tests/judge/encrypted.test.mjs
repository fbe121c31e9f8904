// HLS encrypted with AES-128, read by Node's cipher, ffmpeg, a strict parser, and each player that supports
// it, through an edge. The test derives keys as docs/decisions/0019-aes-128.md specifies.
// Screenshot: target/screenshots/encrypted.png.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import hlsParser from 'hls-parser';
import { begun, ended, launch, open } from './browser.mjs';
import { get, peakRate, root, serve, skip, start, text } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-encrypted-'));
const secret = crypto.randomBytes(32).toString('hex');
const records = path.join(folder, 'origin.jsonl');
let clear;
let origin;
let edge;
let browser;

before(async () => {
  const file = path.join(folder, 'secret');
  fs.writeFileSync(file, `${secret}\n`);
  clear = await serve(undefined, '--segment', '2s');
  origin = await serve(undefined, '--segment', '2s', '--aes-secret', file, '--records', records);
  edge = await start('edge', '--origin', origin.url);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  for (const server of [edge, origin, clear]) server?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});
hlsParser.setOptions({ strictMode: true });

const keyOf = (title) => crypto.createHmac('sha256', secret).update(`headwater aes-128\n${title}`).digest().subarray(0, 16);

function decrypted(bytes, key, number) {
  const iv = Buffer.alloc(16);
  iv.writeUInt32BE(number, 12);
  const cipher = crypto.createDecipheriv('aes-128-cbc', key, iv);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

/** Returns the media playlists of a title, without I-frame playlists. */
async function playlists(server, title, query) {
  const master = `${server.url}/${title}/.m3u8${query}`;
  const body = await text(master);
  const uris = new Set(body.match(/[^"\n]+\.m3u8/g).filter((uri) => !uri.includes('keyframes')));
  return { body, media: [...uris].map((uri) => new URL(uri, master).href) };
}

for (const [title, query] of [['ladder', ''], ['ladder', '?format=ts'], ['film', ''], ['film', '?format=ts'], ['hevc.mp4', '']]) {
  test(`${title}${query}: decrypts to the unencrypted film with Node's cipher`, async () => {
    const key = keyOf(title);
    assert.deepEqual(Buffer.from(await get(`${edge.url}/${title}/.key`)), key);
    const [theirs, ours] = [await playlists(clear, title, query), await playlists(edge, title, query)];
    assert.equal(ours.media.length, theirs.media.length);
    assert.ok(hlsParser.parse(ours.body).isMasterPlaylist);
    assert.ok(!ours.body.includes('I-FRAME'));
    const peaks = [];
    for (const [n, url] of ours.media.entries()) {
      const playlist = hlsParser.parse(await text(url));
      const clearOnes = hlsParser.parse(await text(theirs.media[n])).segments;
      assert.equal(playlist.segments.length, clearOnes.length);
      const sizes = [];
      for (const [at, segment] of playlist.segments.entries()) {
        assert.equal(segment.key.method, 'AES-128');
        assert.equal(new URL(segment.key.uri, url).href, `${edge.url}/${title}/.key`);
        assert.equal(segment.duration, clearOnes[at].duration);
        const bytes = await get(new URL(segment.uri, url));
        sizes.push({ seconds: segment.duration, bytes: bytes.length });
        const same = decrypted(bytes, key, segment.mediaSequenceNumber).equals(await get(new URL(clearOnes[at].uri, theirs.media[n])));
        assert.ok(same, `${segment.uri} is another segment`);
      }
      peaks.push([new URL(url).pathname, Math.floor(peakRate(sizes, playlist.targetDuration))]);
    }
    // The declared bandwidth includes padding, so it is never below the real one.
    for (const [, stated, uri] of ours.body.matchAll(/^#EXT-X-STREAM-INF:BANDWIDTH=(\d+).*\n(.+)$/gm)) {
      const [, peak] = peaks.find(([name]) => name.endsWith(uri));
      assert.ok(Number(stated) >= peak, `${uri}: ${stated} of ${peak}`);
    }
  });
}

for (const query of ['', '?format=ts']) {
  test(`ffmpeg decodes the same video and audio${query}`, () => {
    const frames = (server) => {
      const args = ['-v', 'error', '-i', `${server.url}/avc.mp4/.m3u8${query}`, '-map', '0', '-fps_mode', 'passthrough', '-f', 'framemd5', '-'];
      return execFileSync('ffmpeg', args, { encoding: 'utf8' });
    };
    const [theirs, ours] = [frames(clear), frames(edge)];
    assert.ok(theirs.split('\n').length > 50, theirs);
    assert.equal(ours, theirs);
  });
}

// The HLS player of Chromium does not play encrypted CMAF, so the page does not offer it.
for (const [engine, variants] of [['hls', ['cmaf', 'ts']], ['shaka', ['cmaf', 'ts']], ['native', ['ts']]]) {
  for (const variant of variants) {
    test(`an encrypted film plays with ${engine} ${variant} to the end`, async (t) => {
      if (!browser) return skip(t, 'browsers: Chromium is not installed');
      const view = await open(browser, edge, 'ladder', `player=${engine}&variant=${variant}`);
      await view.until('the start', begun);
      await view.until('the end', ended);
      const last = await view.state();
      assert.deepEqual([last.engine, last.variant, last.errors, view.faults], [engine, variant, [], []]);
      assert.ok(Math.abs(last.currentTime - last.duration) < 0.3, `ended at ${last.currentTime} of ${last.duration}`);
      await view.page.close();
    });
  }
}

test('the page offers only players that support the title', async (t) => {
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  for (const wanted of ['mse', 'dash', 'consumer', 'nonsense']) {
    const view = await open(browser, edge, 'film', `player=${wanted}`);
    await view.until('the start', begun);
    const offered = await view.page.locator('.players label:visible').allInnerTexts();
    assert.deepEqual(offered.map((name) => name.trim()), ['hls.js', 'Shaka', 'Browser']);
    const now = await view.state();
    assert.deepEqual([now.engine, now.errors, view.faults], ['hls', [], []]);
    const links = await view.page.locator('.links a').allTextContents();
    assert.deepEqual(links, ['HLS', 'JSON']);
    if (wanted === 'mse') {
      fs.mkdirSync(path.join(root, 'target/screenshots'), { recursive: true });
      await view.page.screenshot({ path: path.join(root, 'target/screenshots/encrypted.png') });
    }
    await view.page.close();
  }
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('response', (r) => r.status() >= 400 && faults.push(`${r.status()} ${r.url()}`));
  await page.goto(`${edge.url}/`);
  await page.waitForSelector('.card canvas[data-missing]');
  assert.deepEqual(faults, []);
  await page.close();
});

test('no cache stores a key, and records name every key request', async () => {
  const kept = await fetch(`${edge.url}/film/.key`);
  assert.equal(kept.headers.get('cache-control'), 'no-store');
  assert.doesNotMatch(kept.headers.get('cache-status') ?? '', /hit/);
  await kept.arrayBuffer();
  await origin.drain();
  const lines = fs.readFileSync(records, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  assert.ok(lines.filter((record) => record.kind === 'key' && record.status === 200).length > 1);
  // A record must not contain the key itself.
  for (const title of ['film', 'ladder']) assert.ok(!fs.readFileSync(records, 'utf8').includes(keyOf(title).toString('hex')));
});
