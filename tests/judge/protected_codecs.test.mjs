// Protected films with Opus and FLAC, with separate keys for video and audio (ClearKey): each player of the page plays
// them to the end. So it does with AC-3 and E-AC-3 in a browser that decodes them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { begun, ended, launch, open } from './browser.mjs';
import { serve, skip } from './support.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-protected-codecs-'));
const films = path.join(folder, 'films');
const SCHEMES = ['cbcs', 'cenc'];
const AUDIO = { opus: ['-c:a', 'libopus', '-b:a', '96k'], flac: ['-c:a', 'flac', '-sample_fmt', 's16'], ac3: ['-c:a', 'ac3'], eac3: ['-c:a', 'eac3'] };
const servers = {};
let browser;

before(async () => {
  fs.mkdirSync(films);
  for (const [name, options] of Object.entries(AUDIO)) {
    const run = spawnSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25:d=6', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000:duration=6', '-c:v', 'libx264', '-g', '50', '-pix_fmt', 'yuv420p', ...options, '-ac', '2', '-strict', '-2', path.join(films, `${name}.mp4`)], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
  }
  const secret = path.join(folder, 'secret');
  fs.writeFileSync(secret, `${crypto.randomBytes(32).toString('hex')}\n`);
  for (const scheme of SCHEMES) {
    servers[scheme] = await serve(films, '--segment', '2s', '--drm-keys', `secret:${secret}`, '--drm-scheme', scheme, '--drm-key-per', 'type');
  }
  browser = await launch();
});
after(async () => {
  await browser?.close();
  for (const server of Object.values(servers)) server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Whether playback reached the end, or failed. Now and then, dash.js pauses there. */
const over = () => {
  const { ended: isEnded, errors, currentTime, duration } = window.headwater.state();
  return isEnded || errors.length > 0 || currentTime >= duration - 0.05;
};

/** Plays a film to its end. Returns the last state, the types of the added source buffers, and faults. */
async function play(server, title, engine, variant) {
  const view = await open(browser, server, title, `player=${engine}&variant=${variant}`, (page) => page.addInitScript(() => {
    // The codecs that reach Media Source Extensions: a player may drop what it does not support.
    window.added = [];
    const add = MediaSource.prototype.addSourceBuffer;
    MediaSource.prototype.addSourceBuffer = function addSourceBuffer(type) { window.added.push(type); return add.call(this, type); };
  }));
  await view.until('the start', begun);
  await view.until('the end', engine === 'dash' ? over : ended);
  const last = await view.state();
  const added = await view.page.evaluate(() => window.added.join());
  await view.page.close();
  return { last, added, faults: view.faults };
}

/** Returns whether the browser decodes unencrypted audio. */
async function decodes(codec) {
  const page = await browser.newPage();
  const isSupported = await page.evaluate((type) => MediaSource.isTypeSupported(type), `audio/mp4; codecs="${codec}"`);
  await page.close();
  return isSupported;
}

const CODECS = { opus: 'opus', flac: 'flac', ac3: 'ac-3', eac3: 'ec-3' };
const PLAYERS = [['hls', 'cmaf'], ['shaka', 'dash'], ['shaka', 'cmaf'], ['dash', 'time']];

async function assertPlays(name, scheme, [engine, variant]) {
  const { last, added, faults } = await play(servers[scheme], `${name}.mp4`, engine, variant);
  assert.deepEqual([last.engine, last.variant, last.errors, faults], [engine, variant, [], []]);
  assert.ok(Math.abs(last.currentTime - last.duration) < 0.3, `ended at ${last.currentTime} of ${last.duration}`);
  assert.match(added, /avc1/, 'video');
  assert.ok(added.toLowerCase().includes(CODECS[name]), `no ${CODECS[name]} in ${added}`);
}

for (const name of ['opus', 'flac']) {
  for (const player of PLAYERS) {
    for (const scheme of SCHEMES) {
      test(`AVC and ${name}, ${scheme}, play with ${player.join(' ')} to the end`, async (t) => {
        if (!browser) return skip(t, 'browsers: Chromium is not installed');
        await assertPlays(name, scheme, player);
      });
    }
  }
}

for (const name of ['ac3', 'eac3']) {
  test(`AVC and ${name} play in each player, if the browser decodes ${name}`, async (t) => {
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    if (!await decodes(CODECS[name])) return skip(t, `${CODECS[name]}: this Chromium does not decode it, encrypted or not`);
    for (const player of PLAYERS) await assertPlays(name, 'cbcs', player);
  });
}
