// The page with films on an S3 server that checks signatures. Playback works as from disk, with one storage
// request per segment.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertFlawless, begun, ended, launch, open } from './browser.mjs';
import { library, root, serve, skip, text } from './support.mjs';

const weed = path.join(root, 'target/storage/bin/weed');
const ACCESS = 'HEADWATERTEST';
const SECRET = 'not-a-secret-but-one-of-a-test';
let storage;
let server;
let browser;
let retriedAtFirst;

before(async () => {
  if (!fs.existsSync(weed)) return;
  storage = await start();
  for (const name of ['avc.mp4', ...fs.readdirSync(path.join(library, 'film')).map((file) => `film/${file}`)]) {
    await put(storage.filer, name);
  }
  await put(storage.filer, 'broken.mp4', 'no film');
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: ACCESS, AWS_SECRET_ACCESS_KEY: SECRET, AWS_REGION: 'us-east-1' });
  const endpoint = `aws_endpoint_url=http://127.0.0.1:${storage.port}`;
  server = await serve('s3://films', '--segment', '2s', '--storage-option', endpoint);
  // Objects become visible a moment after they were written.
  for (let n = 0; n < 100 && !(await fetch(`${server.url}/film/.mpd`)).ok; n += 1) await sleep(100);
  retriedAtFirst = await countRequests('retry');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.stop();
  storage?.stop();
});

/** Starts seaweedfs with one user on free ports. */
async function start() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-s3-'));
  const credentials = [{ accessKey: ACCESS, secretKey: SECRET }];
  const identities = [{ name: 'test', actions: ['Admin', 'Read', 'List', 'Write'], credentials }];
  fs.writeFileSync(path.join(folder, 's3.json'), JSON.stringify({ identities }));
  const names = ['s3.port', 'filer.port', 'master.port', 'volume.port',
    's3.port.grpc', 'filer.port.grpc', 'master.port.grpc', 'volume.port.grpc'];
  const ports = await free(names.length);
  const child = spawn(weed, ['-logtostderr=false', 'server', '-s3', '-ip=127.0.0.1', '-ip.bind=127.0.0.1',
    `-dir=${folder}`, `-s3.config=${folder}/s3.json`, '-volume.max=8', '-master.volumeSizeLimitMB=64',
    '-master.telemetry=false', '-s3.port.iceberg=0', '-s3.port.lance=0',
    ...names.map((name, n) => `-${name}=${ports[n]}`)], { stdio: 'ignore' });
  const stop = () => {
    child.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
    child.kill('SIGKILL');
  };
  return { port: ports[0], filer: ports[1], stop };
}

async function free(count) {
  const held = await Promise.all(Array.from({ length: count }, () => new Promise((resolve) => {
    const one = net.createServer().listen(0, '127.0.0.1', () => resolve(one));
  })));
  const ports = held.map((one) => one.address().port);
  await Promise.all(held.map((one) => new Promise((resolve) => { one.close(resolve); })));
  return ports;
}

async function put(filer, name, body = fs.readFileSync(path.join(library, name))) {
  const headers = { 'content-type': 'video/mp4' };
  for (let n = 0; n < 300; n += 1) {
    const response = await fetch(`http://127.0.0.1:${filer}/buckets/films/${name}`, { method: 'PUT', body, headers }).catch(() => undefined);
    if (response?.ok) return;
    await sleep(100);
  }
  assert.fail(`the S3 server refuses ${name}`);
}

/** Returns the number of storage requests so far, by reason. */
async function countRequests(reason) {
  const metrics = await text(`${server.url}/metrics`);
  return Number(metrics.match(new RegExp(`storage_requests_total\\{reason="${reason}"\\} (\\d+)`))[1]);
}

for (const [engine, title, seconds] of [['mse', 'film', 40], ['hls', 'film', 40], ['dash', 'film', 40], ['mse', 'avc.mp4']]) {
  test(`${title} from S3 with ${engine}: start, seek, end`, async (t) => {
    if (!storage) return skip(t, 'S3 in browsers: run scripts/storage.sh');
    if (!browser) return skip(t, 'browsers: Chromium is not installed');
    const view = await open(browser, server, title, `player=${engine}`);
    await view.until('the start', begun);
    const { duration } = await view.state();
    if (seconds) assert.ok(Math.abs(duration - seconds) < 0.3, `duration ${duration}`);
    const at = duration - 4;
    await view.page.evaluate((to) => window.headwater.seek(to), at);
    await view.until('the end', ended);
    const last = await view.state();
    assertFlawless(view, last);
    assert.ok(Math.abs(last.currentTime - duration) < 0.3, `ended at ${last.currentTime}`);
    await view.page.close();
  });
}

// The list of a remote library contains names and sizes only.
test('cards of films on S3 show poster, duration and format; what is no film keeps a placeholder', async (t) => {
  if (!storage) return skip(t, 'S3 in browsers: run scripts/storage.sh');
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  // A new server has not read any film.
  const fresh = await serve('s3://films', '--segment', '2s', '--storage-option', `aws_endpoint_url=http://127.0.0.1:${storage.port}`);
  const page = await browser.newPage();
  try {
    await page.goto(`${fresh.url}/`);
    const card = (name) => page.locator('.card', { has: page.locator(`[title="${name}"]`) });
    const { duration_ms: durationMs } = JSON.parse(await text(`${fresh.url}/avc.mp4/.json`));
    await card('avc.mp4').locator('.poster[data-drawn]').waitFor();
    assert.equal(await card('avc.mp4').locator('.badge').textContent(), `0:${String(Math.round(durationMs / 1000)).padStart(2, '0')}`);
    assert.match(await card('avc.mp4').locator('.words').textContent(), /\d+p · AVC, AAC .*iB/);
    const broken = card('broken.mp4');
    await broken.locator('.poster[data-missing]').waitFor({ state: 'attached' });
    assert.equal(await broken.locator('.badge').isVisible(), false);
    assert.equal(await broken.locator('.initial').textContent(), 'B');
  } finally {
    await page.close();
    fresh.stop();
  }
});

test('no storage request was retried', async (t) => {
  if (!storage) return skip(t, 'S3 in browsers: run scripts/storage.sh');
  assert.equal(await countRequests('retry'), retriedAtFirst);
  assert.ok(await countRequests('segment') > 0);
});

test('with a wrong secret, the page shows the error of the storage and its remedy', async (t) => {
  if (!storage) return skip(t, 'S3 in browsers: run scripts/storage.sh');
  if (!browser) return skip(t, 'browsers: Chromium is not installed');
  process.env.AWS_SECRET_ACCESS_KEY = 'wrong';
  const wrong = await serve('s3://films', '--storage-option', `aws_endpoint_url=http://127.0.0.1:${storage.port}`);
  process.env.AWS_SECRET_ACCESS_KEY = SECRET;
  const page = await browser.newPage();
  try {
    await page.goto(`${wrong.url}/`);
    const alert = page.locator('[role=alert]');
    await alert.waitFor();
    assert.equal(await alert.innerText(), 'The library cannot be listed: the storage denies access: '
      + 'status 403 SignatureDoesNotMatch; check the secret key (AWS_SECRET_ACCESS_KEY).');
    assert.doesNotMatch(await page.locator('body').innerText(), /Put MP4 files|Upload MP4 files/);
    assert.equal((await fetch(`${wrong.url}/readyz`)).status, 503);
  } finally {
    await page.close();
    wrong.stop();
  }
});
