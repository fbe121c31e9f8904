// Runs a real player (hls.js or dash.js from player/vendor.sh) on an empty page in headless Chromium, and
// prints measurements of its video element as one JSON line.
//
//   node bench/players.mjs hls|dash own|dynamic|throughput|bola MANIFEST SECONDS BUFFER_SECONDS BEGIN_UNIX_MS
//
// The script is injected into the page, so that only the film crosses the link. Players have default
// settings except for the buffer length and, for dash.js, the rule.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from '../tests/judge/browser.mjs';

const [kind, rule, manifest, seconds, buffer, begin] = process.argv.slice(2);
const vendor = path.join(path.dirname(fileURLToPath(import.meta.url)), '../player/vendor');
const script = { hls: 'hls.min.js', dash: 'dash.all.min.js' }[kind];

const browser = await launch();
if (!browser) throw new Error('Chromium is not installed; run scripts/install.sh bench');
const page = await browser.newPage();
await page.goto(new URL('/blank', manifest).href); // Any response gives the page the origin of the server.
await page.setContent('<!doctype html><video muted></video>');
await page.addScriptTag({ path: path.join(vendor, script) });
await new Promise((resolve) => { setTimeout(resolve, Number(begin) - Date.now()); });
const seen = await page.evaluate(watch, { kind, rule, manifest, seconds: Number(seconds), buffer: Number(buffer) });
console.log(JSON.stringify(seen));
await browser.close();

/** Runs in the page. Milliseconds are of performance.now. */
async function watch({ kind, rule, manifest, seconds, buffer }) {
  const video = document.querySelector('video');
  const [began, stalls, errors] = [performance.now(), [], []];
  let first;
  let dry;
  video.addEventListener('playing', () => {
    first ??= performance.now();
    if (dry) stalls.push(performance.now() - dry);
    dry = undefined;
  });
  video.addEventListener('waiting', () => { if (first) dry ??= performance.now(); });

  if (kind === 'hls') {
    const hls = new globalThis.Hls({ maxBufferLength: buffer, maxMaxBufferLength: buffer });
    hls.on('hlsError', (_, { fatal, details }) => fatal && errors.push(details));
    hls.loadSource(manifest);
    hls.attachMedia(video);
  } else {
    const dash = globalThis.dashjs.MediaPlayer().create();
    dash.on('error', ({ error }) => errors.push(error.message));
    dash.initialize();
    const rules = { throughputRule: { active: rule !== 'bola' }, bolaRule: { active: rule !== 'throughput' } };
    const held = { bufferTimeDefault: buffer, bufferTimeAtTopQuality: buffer, bufferTimeAtTopQualityLongForm: buffer };
    dash.updateSettings({ streaming: { buffer: held, abr: { rules } } });
    dash.attachView(video);
    dash.attachSource(manifest);
  }
  video.autoplay = true;

  // What was shown: seconds of media at each height of the picture.
  const shown = {};
  let [at, height, switches] = [0, 0, 0];
  while (performance.now() - began < seconds * 1000) {
    await new Promise((resolve) => { setTimeout(resolve, 50); });
    const [now, high] = [video.currentTime, video.videoHeight];
    if (now === at) continue;
    if (height && high !== height) switches += 1;
    shown[high] = (shown[high] ?? 0) + now - at;
    [at, height] = [now, high];
  }
  if (dry) stalls.push(performance.now() - dry);
  return { start_s: first && (first - began) / 1000, stalls: stalls.map((ms) => ms / 1000), played_s: at, switches, shown, errors };
}
