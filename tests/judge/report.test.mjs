// Reports of small real runs in Chromium: every kind of plot is drawn in light and dark mode, and the page
// makes no request. Screenshots: target/screenshots.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { launch } from './browser.mjs';
import { binary, root, serve, skip } from './support.mjs';

const shots = path.join(root, 'target/screenshots');
const DOCUMENT = `
name = "A report with every plot"
question = "Does everything draw?"
rounds = 6
sweep.rate = [20, 40]
sweep.segment = ["2s", "4s"]
[bounds]
link-late = "1h"
steal = "100%"
[function.origin]
run = "exec headwater serve --segment {segment} --listen 127.0.0.1:{port}"
port = 8080
health = "/readyz"
[sink.load]
run = "headwater load rate http://{origin}/Headwater/.m3u8 --rate {rate} --duration 2s --json load.json --hdr load.hdr > load.txt; cat load.json"
measure = { errors = "/summary/errors", requests = "/summary/requests", p50-ms = "/summary/from_due_ms/p50" }
series.ended = { from = "load.json#/seconds", t = "/second", value = "/ended" }
series.due = { from = "load.json#/seconds", t = "/second", value = "/due" }
histogram.latency = { from = "load.hdr", tag = "*/due", times = 1e-6 }
[quantity.latency]
unit = "ms"
[[expect]]
that = "twice the rate is twice the requests"
quantity = "requests"
of.rate = 40
to.rate = 20
at-least = 1.9
at-most = 2.1
[[plot]]
kind = "time"
quantity = ["due", "ended"]
by = "rate"
[[plot]]
kind = "bars"
quantity = ["requests", "p50-ms"]
by = "rate"
[[plot]]
kind = "box"
quantity = "p50-ms"
log = true
[[plot]]
kind = "ecdf"
quantity = "p50-ms"
by = "rate"
[[plot]]
kind = "percentiles"
quantity = "latency"
by = "rate"
log = true
[[plot]]
kind = "map"
quantity = "requests"
x = "segment"
y = "rate"
of.rate = 40
to.rate = 20
[[plot]]
kind = "fit"
quantity = "requests"
x = "rate"
by = "segment"
`;

let browser;
const out = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-report-'));

before(async () => {
  fs.mkdirSync(shots, { recursive: true });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  fs.rmSync(out, { recursive: true });
});

test('every plot of a report is drawn', async (t) => {
  if (!browser) return skip(t, 'reports in a browser: Chromium is not installed');
  fs.writeFileSync(path.join(out, 'all.toml'), DOCUMENT);
  const dir = path.join(out, 'run');
  const run = spawnSync(binary, ['lab', 'run', path.join(out, 'all.toml'), '--out', dir], { encoding: 'utf8', timeout: 240_000 });
  if (run.status === 3) return skip(t, `reports in a browser: ${run.stderr}`);
  assert.equal(run.status, 0, run.stderr + run.stdout);
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, colorScheme, offline: true });
    const faults = [];
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('request', (request) => /^https?:/.test(request.url()) && faults.push(request.url()));
    await page.goto(pathToFileURL(path.join(dir, 'report.html')).href);
    // One chart is visible; the sections contain the others.
    const visible = () => page.evaluate(() => [...document.querySelectorAll('.canvas')].filter((one) => one.checkVisibility()).length);
    assert.equal(await visible(), 1);
    for (const section of await page.locator('details.section > summary').all()) await section.click();
    await page.waitForFunction(() => [...document.querySelectorAll('.canvas')].every((one) => one.querySelector('canvas')));
    const panels = await page.evaluate(() => [...document.querySelectorAll('.canvas')].map((element) => {
      const canvas = element.querySelector('canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      // Counts saturated pixels: curves and bars, not axes and text.
      let coloured = 0;
      for (let at = 0; at < data.length; at += 4) {
        const [r, g, b, a] = data.subarray(at, at + 4);
        if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) coloured += 1;
      }
      return { name: element.getAttribute('aria-label'), coloured };
    }));
    assert.deepEqual(faults, []);
    // Plots by kind: time 2 × 2, bars 2, box 1, ecdf 2, percentiles 2, fit 2.
    assert.equal(panels.length, 13, JSON.stringify(panels));
    for (const { name, coloured } of panels) assert.ok(coloured > 20, `${name}: ${coloured} coloured points`);
    assert.equal(await page.locator('table.map tbody td').count(), 2);
    assert.match(await page.locator('.finding').innerText(), /^As expected: 2 of 2\./);
    assert.ok(await page.locator('details').count() >= panels.length - 2);
    await page.screenshot({ path: path.join(shots, `report-${colorScheme}.png`), fullPage: true });
    if (colorScheme === 'dark') {
      await page.emulateMedia({ media: 'print' });
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(ground, 'rgb(255, 255, 255)');
    }
    await page.close();
  }
});

/** Records the texts that are drawn on canvases and in SVG images, which contain the titles of axes. */
function recordDrawnTexts() {
  window.drawnTexts = new Set();
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function record(text, ...more) {
    window.drawnTexts.add(String(text));
    return fillText.call(this, text, ...more);
  };
}

test('a load report is one sentence, one chart and closed details, with axis titles in words and units', async (t) => {
  if (!browser) return skip(t, 'reports in a browser: Chromium is not installed');
  const file = path.join(out, 'load.html');
  const server = await serve();
  const url = `${server.url}/avc.mp4/.m3u8`;
  const run = spawnSync(binary, ['load', 'rate', url, '--rate', 'steps:40+40/1s..120', '--html', file], { encoding: 'utf8', timeout: 60_000 });
  server.stop();
  assert.equal(run.status, 0, run.stderr + run.stdout);
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, offline: true });
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => /^https?:/.test(request.url()) && faults.push(request.url()));
  await page.addInitScript(recordDrawnTexts);
  await page.goto(pathToFileURL(file).href);
  const lead = await page.locator('header p').allInnerTexts();
  assert.equal(lead.length, 1, JSON.stringify(lead));
  // Numbers have points in them, so only a point before a space ends a sentence.
  assert.match(lead[0], /^[A-Z0-9].*\.$/);
  assert.equal(lead[0].match(/\.( |$)/g).length, 1, lead[0]);
  const plots = () => page.evaluate(() => [...document.querySelectorAll('.plot')]
    .filter((plot) => plot.checkVisibility()).map((plot) => plot.querySelector('h2').textContent));
  assert.deepEqual(await plots(), ['Latency by percentile']);
  const details = page.locator('details');
  assert.ok(await details.count() >= 4);
  assert.equal(await page.locator('details[open]').count(), 0);
  const readTexts = () => page.evaluate(() => [...window.drawnTexts, ...[...document.querySelectorAll('svg text')].map((text) => text.textContent)]);
  const assertDrawn = async (titles) => {
    const texts = await readTexts();
    for (const title of titles) assert.ok(texts.includes(title), `${title}: ${texts}`);
  };
  await page.waitForFunction(() => window.drawnTexts.size > 0 || document.querySelector('svg text'));
  await assertDrawn(['Share of requests (%)', 'Latency (ms)']);
  for (const summary of await page.locator('details > summary').all()) await summary.click();
  await page.waitForFunction(() => document.querySelectorAll('.plot').length >= 6);
  await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  await assertDrawn(['Time since the start (s)', 'Requests per second', 'Received (Mb/s)', 'Open connections',
    'Offered load (requests per second)', 'Successful requests per second']);
  const shown = await plots();
  assert.equal(new Set(shown).size, shown.length, 'each chart once');
  assert.deepEqual(faults, []);
  await page.close();
});
