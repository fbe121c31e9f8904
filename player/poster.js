// Draws the poster of a title in the browser: one key frame of a segment on a canvas.

import { get, getJson, titleUrl } from './format.js';
import { MediaSourceClass, mimeOf, openSource, playable, settle } from './source.js';
import { drawBars } from './plot.js';

/** Many films start with black frames, so the poster shows the segment at this part of the film. */
const POSTER_POSITION = 0.15;
/** A chart of fewer segments is not informative. */
const BARS_MIN = 4;
const DECODE_TIMEOUT_MS = 8000;
/** Longest side of a poster in pixels. A page of cards with full frames of 4K would take gigabytes. */
const POSTER_SIDE_MAX = 640;
const CONCURRENT_MAX = 2;

let running = 0;
const waiting = [];

/** Queues the poster and the bars of a title, and passes on its description. At most two titles are drawn at once. */
export function queuePoster(path, posterCanvas, bars, describe) {
  waiting.push(async () => {
    // A search or another view has removed the card.
    if (!posterCanvas.isConnected) return;
    try {
      const title = await getJson(titleUrl(path, '.json'));
      describe(title);
      const bar = title.renditions.find((r) => r.kind === 'video') ?? title.renditions[0];
      if (bar?.segments.length >= BARS_MIN) drawBars(bars, bar);
      if (title.encryption) throw new Error('the video is encrypted');
      await drawKeyFrame(path, title, posterCanvas);
    } catch {
      posterCanvas.dataset.missing = 'yes'; // the card shows the initial of the title instead
    }
  });
  drawNext();
}

async function drawNext() {
  if (running >= CONCURRENT_MAX || waiting.length === 0) return;
  running += 1;
  await waiting.shift()();
  running -= 1;
  drawNext();
}

async function drawKeyFrame(path, title, canvas) {
  const choices = MediaSourceClass ? title.renditions.filter((r) => r.kind === 'video' && playable(r)) : [];
  if (choices.length === 0) throw new Error('nothing to decode');
  const distance = (r) => (r.height >= 360 ? r.height : 10000 - r.height);
  const rendition = choices.reduce((best, r) => (distance(r) < distance(best) ? r : best));
  const { segments } = rendition;
  const segment = segments[Math.min(segments.length - 1, Math.max(1, Math.floor(segments.length * POSTER_POSITION)))];
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
      setTimeout(() => failed(new Error('not decoded in time')), DECODE_TIMEOUT_MS);
    });
    drawable.catch(() => {}); // an append may fail first
    await settle(buffer, () => buffer.appendBuffer(frame));
    source.endOfStream();
    if (video.buffered.length > 0 && video.buffered.start(0) > 0) video.currentTime = video.buffered.start(0);
    await drawable;
    const scale = Math.min(1, POSTER_SIDE_MAX / Math.max(video.videoWidth, video.videoHeight));
    canvas.width = Math.ceil(video.videoWidth * scale);
    canvas.height = Math.ceil(video.videoHeight * scale);
    canvas.getContext('2d').drawImage(video, 0, 0, canvas.width, canvas.height);
    canvas.dataset.drawn = 'yes';
  } finally {
    video.removeAttribute('src');
    video.load();
  }
}
