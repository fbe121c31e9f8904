// A title's poster, made by the browser: one key frame from our own segments, drawn on a canvas.

import { get, getJson, titleUrl } from './format.js';
import { MediaSourceClass, mimeOf, openSource, playable, settle } from './source.js';
import { drawBars } from './plot.js';

/** Films often begin black: the poster is of the segment at this part of the film. */
const WHERE = 0.15;
/** Fewer segments than these say nothing as bars. */
const BARS_MIN = 4;
const PATIENCE_MS = 8000;
const AT_ONCE = 2;

let running = 0;
const waiting = [];

/** Draws the poster and the bars of a title when their turn comes; at most two at once. */
export function poster(path, picture, bars) {
  waiting.push(async () => {
    try {
      const title = await getJson(titleUrl(path, '.json'));
      const bar = title.renditions.find((r) => r.kind === 'video') ?? title.renditions[0];
      if (bar?.segments.length >= BARS_MIN) drawBars(bars, bar);
      if (title.encryption) throw new Error('no picture is in the clear');
      await drawKeyFrame(path, title, picture);
    } catch {
      picture.dataset.missing = 'yes'; // the card shows the title's initial instead
    }
  });
  next();
}

async function next() {
  if (running >= AT_ONCE || waiting.length === 0) return;
  running += 1;
  await waiting.shift()();
  running -= 1;
  next();
}

async function drawKeyFrame(path, title, canvas) {
  const choices = MediaSourceClass ? title.renditions.filter((r) => r.kind === 'video' && playable(r)) : [];
  if (choices.length === 0) throw new Error('nothing to decode');
  const enough = (r) => (r.height >= 360 ? r.height : 10000 - r.height);
  const rendition = choices.reduce((best, r) => (enough(r) < enough(best) ? r : best));
  const { segments } = rendition;
  const segment = segments[Math.min(segments.length - 1, Math.max(1, Math.floor(segments.length * WHERE)))];
  const media = rendition.media.replace('{t}', segment.t);
  const bytes = async (under) => (await get(titleUrl(path, under))).arrayBuffer();
  const init = await bytes(rendition.init);
  const frame = await bytes(media.replace(/([^/]+)$/, 'key/$1')).catch(() => bytes(media));
  const video = document.createElement('video');
  video.muted = true;
  try {
    const source = await openSource(video);
    const buffer = source.addSourceBuffer(mimeOf(rendition));
    buffer.timestampOffset = -segment.t / rendition.timescale;
    await settle(buffer, () => buffer.appendBuffer(init));
    const drawable = new Promise((done, failed) => {
      video.addEventListener('loadeddata', done, { once: true });
      video.addEventListener('error', () => failed(new Error('not decoded')), { once: true });
      setTimeout(() => failed(new Error('not decoded in time')), PATIENCE_MS);
    });
    await settle(buffer, () => buffer.appendBuffer(frame));
    source.endOfStream();
    if (video.buffered.length > 0 && video.buffered.start(0) > 0) video.currentTime = video.buffered.start(0);
    await drawable;
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    canvas.getContext('2d').drawImage(video, 0, 0);
    canvas.dataset.drawn = 'yes';
  } finally {
    video.removeAttribute('src');
    video.load();
  }
}
