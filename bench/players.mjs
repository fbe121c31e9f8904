// Runs a real player (hls.js, dash.js or Shaka Player from player/vendor.sh) with its default settings on an
// empty page in headless Chromium, and prints measurements of its video element as one JSON line.
//
//   node bench/players.mjs hls.js|dash.js|shaka MANIFEST SECONDS BEGIN_UNIX_MS
//
// The script is injected into the page, so that only the film crosses the link.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from '../tests/judge/browser.mjs';

const [name, manifest, seconds, begin] = process.argv.slice(2);
const vendor = path.join(path.dirname(fileURLToPath(import.meta.url)), '../player/vendor');
const script = { 'hls.js': 'hls.min.js', 'dash.js': 'dash.all.min.js', shaka: 'shaka-player.compiled.js' }[name];

const browser = await launch();
if (!browser) throw new Error('Chromium is not installed; run scripts/install.sh bench');
const page = await browser.newPage();
await page.goto(new URL('/blank', manifest).href); // Any response gives the page the origin of the server.
await page.setContent('<!doctype html><video muted></video>');
await page.addScriptTag({ path: path.join(vendor, script) });
await new Promise((resolve) => { setTimeout(resolve, Number(begin) - Date.now()); });
const began_late_s = (Date.now() - Number(begin)) / 1000;
const seen = await page.evaluate(watch, { name, manifest, seconds: Number(seconds) });
console.log(JSON.stringify({ ...seen, began_late_s }));
await browser.close();

/** Runs in the page. Milliseconds are of performance.now. */
async function watch({ name, manifest, seconds }) {
  const video = document.querySelector('video');
  const [began, stalls, errors] = [performance.now(), [], []];
  let [first, dry, abandoned] = [undefined, undefined, 0];
  video.addEventListener('playing', () => {
    first ??= performance.now();
    if (dry) stalls.push(performance.now() - dry);
    dry = undefined;
  });
  video.addEventListener('waiting', () => { if (first && !video.ended) dry ??= performance.now(); });

  const starts = {
    'hls.js': () => {
      const hls = new globalThis.Hls();
      hls.on('hlsError', (_, { fatal, details }) => fatal && errors.push(details));
      hls.on('hlsFragLoadEmergencyAborted', () => { abandoned += 1; });
      hls.loadSource(manifest);
      hls.attachMedia(video);
    },
    'dash.js': () => {
      const dash = globalThis.dashjs.MediaPlayer().create();
      dash.on('error', ({ error }) => errors.push(error.message));
      dash.on('fragmentLoadingAbandoned', () => { abandoned += 1; });
      dash.initialize(video, manifest, true);
    },
    shaka: () => {
      const shaka = new globalThis.shaka.Player();
      shaka.addEventListener('error', ({ detail }) => errors.push(`error ${detail.code}`));
      shaka.attach(video).then(() => shaka.load(manifest)).catch((error) => errors.push(String(error)));
    },
  };
  starts[name]();
  video.autoplay = true;

  // Seconds of media shown at each height of the picture.
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
  const start_s = first && (first - began) / 1000;
  return { start_s, stalls: stalls.map((ms) => ms / 1000), played_s: at, switches, abandoned, shown, errors };
}
