// Runs one player in headless Chromium on the project's page, and prints its quality of experience and
// its buffer over time as one JSON line.
//
//   node play.mjs http://HOST:PORT TITLE PLAYER SECONDS [RANGE_BYTES]
//
// PLAYER: append (the paper's consumer: ranges of one MP4), fetch (the same without appending), turns (both, four
// times each in one browser), mse, hls, dash, shaka or native.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from '../../tests/judge/browser.mjs';

const [server, title, player, seconds, range = '262144'] = process.argv.slice(2);
const TURNS = ['append', 'fetch', 'fetch', 'append', 'append', 'fetch', 'fetch', 'append'];
const optionsOf = (name) => ({
  append: `player=consumer&variant=ranges&range=${range}`,
  fetch: `player=consumer&variant=ranges&range=${range}&append=0`,
  hls: 'player=hls&variant=cmaf',
  shaka: 'player=shaka&variant=dash',
  native: 'player=native&variant=cmaf',
})[name] ?? `player=${name}`;
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
// Browsers keep 250 entries by default.
await page.evaluate(() => performance.setResourceTimingBufferSize(20000));
const before = processorTimeMs();
const series = [];
const turns = [];
for (const name of player === 'turns' ? TURNS : [player]) {
  const began = Date.now();
  await page.evaluate(() => performance.clearResourceTimings());
  await startPlayer(name);
  const turn_ms = seconds * 1000 / (player === 'turns' ? TURNS.length : 1);
  while (Date.now() - began < turn_ms) {
    await new Promise((resolve) => { setTimeout(resolve, SAMPLE_MS); });
    const { buffered, currentTime, stalled, bytes } = await page.evaluate(() => window.headwater.state());
    series.push({ s: (Date.now() - began) / 1000, buffered_s: buffered, at_s: currentTime, stalled, bytes });
  }
  turns.push({ name, ...await observeFetches() });
}
const state = await page.evaluate(() => window.headwater.state());
const fetches = turns.flatMap((turn) => turn.fetches);
const cpu_s = (processorTimeMs() - before) / 1000;
await browser.close();
if (state.errors.length > 0) throw new Error(`${player}: ${state.errors.join('; ')}`);

const meanCycle = (name) => mean(turns.filter((turn) => turn.name === name).map((turn) => turn.cycle_ms));
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
  // The time from one request to the next, with appending minus without.
  append_cost_ms: player === 'turns' ? meanCycle('append') - meanCycle('fetch') : null,
  fetch_mean_ms: fetches.reduce((sum, ms) => sum + ms, 0) / Math.max(fetches.length, 1),
  buffer_max_s: Math.max(...series.map((each) => each.buffered_s)),
  buffer_steady_s: steady.reduce((sum, held) => sum + held, 0) / steady.length,
  cpu_s,
  series,
}));

/** Opens the title with a player of this page. */
async function startPlayer(name) {
  const options = optionsOf(name);
  const [, engine] = /player=(\w+)/.exec(options);
  const query = Object.fromEntries(new URLSearchParams(options));
  await page.evaluate(([of, by, words]) => window.headwater.load(of, by, words), [title, engine, { ...query, muted: '1' }]);
}

/**
 * Returns the durations of the fetches of media, and the median time from one to the next. Most of them fill the
 * buffer without pause.
 */
async function observeFetches() {
  const entries = await page.evaluate((least) => performance.getEntriesByType('resource')
    .filter((each) => each.initiatorType === 'fetch' || each.initiatorType === 'xmlhttprequest')
    .filter((each) => each.encodedBodySize > least)
    .map((each) => [each.startTime, each.responseEnd]), Math.min(65536, range / 2));
  const cycles = entries.slice(1).map(([start], at) => start - entries[at][0]).sort((a, b) => a - b);
  return { fetches: entries.map(([start, end]) => end - start), cycle_ms: cycles[Math.floor(cycles.length / 2)] ?? 0 };
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
}

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
