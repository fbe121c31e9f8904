// Runs one player in headless Chromium on the project's page, and prints its quality of experience and
// its buffer over time as one JSON line.
//
//   node play.mjs http://HOST:PORT TITLE PLAYER SECONDS
//
// PLAYER: append (the paper's consumer: ranges of one MP4), fetch (the same without appending),
// mse, hls, dash, shaka or native.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from '../../tests/judge/browser.mjs';

const [server, title, player, seconds] = process.argv.slice(2);
const options = {
  append: 'player=consumer&variant=ranges&range=262144',
  fetch: 'player=consumer&variant=ranges&range=262144&append=0',
  hls: 'player=hls&variant=cmaf',
  shaka: 'player=shaka&variant=dash',
  native: 'player=native&variant=cmaf',
}[player] ?? `player=${player}`;
const SAMPLE_MS = 250;
const vendor = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../player/vendor');

const browser = await launch();
if (!browser) throw new Error('Chromium is not installed; run scripts/install.sh test');
const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
// Serves the third-party players from this machine, so that only the film crosses the link.
await page.route('**/vendor/*.js', (route) => route.fulfill({ path: path.join(vendor, path.basename(new URL(route.request().url()).pathname)) }));
// Loads the page first, so that its loading time does not count as start-up time of the player.
await page.goto(`${server}/`);
await page.evaluate(() => document.fonts.ready);
const [, engine] = /player=(\w+)/.exec(options);
const query = Object.fromEntries(new URLSearchParams(options));
const before = processorTimeMs();
const began = Date.now();
await page.evaluate(([name, by, words]) => window.headwater.load(name, by, words), [title, engine, { ...query, muted: '1' }]);
const series = [];
while (Date.now() - began < seconds * 1000) {
  await new Promise((resolve) => { setTimeout(resolve, SAMPLE_MS); });
  const { buffered, currentTime, stalled, bytes } = await page.evaluate(() => window.headwater.state());
  series.push({ s: (Date.now() - began) / 1000, buffered_s: buffered, at_s: currentTime, stalled, bytes });
}
const state = await page.evaluate(() => window.headwater.state());
const fetches = await page.evaluate(() => performance.getEntriesByType('resource')
  .filter((each) => each.initiatorType === 'fetch' || each.initiatorType === 'xmlhttprequest')
  .filter((each) => each.encodedBodySize > 65536)
  .map((each) => each.responseEnd - each.startTime));
const cpu_s = (processorTimeMs() - before) / 1000;
await browser.close();
if (state.errors.length > 0) throw new Error(`${player}: ${state.errors.join('; ')}`);

const steady = series.slice(Math.floor(series.length / 2)).map((each) => each.buffered_s);
fetches.sort((a, b) => a - b);
console.log(JSON.stringify({
  // A player that only fetches shows no video and has no start-up time.
  startup_ms: state.startup_ms ?? 0,
  stalls: state.stalls,
  stalled_ms: state.stalled_ms,
  dropped_frames: state.droppedFrames,
  bytes: state.bytes,
  fetches: fetches.length,
  // The page cannot observe the fetches of Chromium's native HLS player.
  fetch_p50_ms: fetches[Math.floor(fetches.length / 2)] ?? 0,
  fetch_mean_ms: fetches.reduce((sum, ms) => sum + ms, 0) / Math.max(fetches.length, 1),
  buffer_max_s: Math.max(...series.map((each) => each.buffered_s)),
  buffer_steady_s: steady.reduce((sum, held) => sum + held, 0) / steady.length,
  cpu_s,
  series,
}));

/** Returns the processor time of the browser so far: all descendants of this process. */
function processorTimeMs() {
  const timeOf = (pid) => {
    const read = (file) => { try { return fs.readFileSync(`/proc/${pid}/${file}`, 'utf8'); } catch { return ''; } };
    const own = read('stat').split(') ').pop().split(' ').slice(11, 13).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
    const threads = (() => { try { return fs.readdirSync(`/proc/${pid}/task`); } catch { return []; } })();
    const children = threads.flatMap((thread) => read(`task/${thread}/children`).split(' ').filter(Boolean));
    return own + children.reduce((sum, child) => sum + timeOf(child), 0);
  };
  return timeOf(process.pid);
}
