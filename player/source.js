// Promises around Media Source Extensions, shared by our player, the consumer and the posters.

/** Buffer target ahead of the playhead. */
const AHEAD_S = 15;
/** Below this, the next segment is requested even if it is so long that it exceeds AHEAD_S. */
const LOW_S = 4;
/** Returns whether to wait before a request for `next` seconds when `buffered` seconds are ahead. */
export const isBufferFull = (buffered, next) => buffered > LOW_S && buffered + next > AHEAD_S;
/** Segment times and buffered ranges may differ by rounding and by a frame of priming. */
export const SLACK_S = 0.06;

export const MediaSourceClass = globalThis.MediaSource ?? globalThis.ManagedMediaSource;

/** Returns the MIME type of a rendition for MSE. */
export const mimeOf = (rendition) => `${rendition.mime}; codecs="${rendition.codecs}"`;
/** Returns whether this browser decodes a rendition. */
export const playable = (rendition) => MediaSourceClass.isTypeSupported(mimeOf(rendition));
export const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });
const once = (target, name) => new Promise((done) => { target.addEventListener(name, done, { once: true }); });

/**
 * Returns the seconds to subtract from the times in segments. MSE drops everything before 0. Audio may
 * lose its priming, which starts before the film does, but video must stay complete.
 */
export function offsetOf(title) {
  const zero = (title.zero_ms ?? 0) / 1000;
  const first = title.renditions.filter((r) => r.kind === 'video').map((r) => r.segments[0].t / r.timescale);
  return Math.min(zero, ...first);
}

/** Sorts renditions for menus: video by bitrate, audio in the order of the title. */
export const sortRenditions = (renditions) => (renditions[0]?.kind === 'video'
  ? [...renditions].sort((a, b) => a.bandwidth - b.bandwidth) : renditions);

/** Opens a MediaSource on a video element. */
export async function openSource(video) {
  const source = new MediaSourceClass();
  video.disableRemotePlayback = true; // required by ManagedMediaSource
  video.src = URL.createObjectURL(source);
  await once(source, 'sourceopen');
  URL.revokeObjectURL(video.src);
  return source;
}

/** Appends bytes (or removes a range) and waits until the browser has parsed them. */
export function settle(buffer, act) {
  return new Promise((done, failed) => {
    const off = new AbortController();
    const on = (name, then) => buffer.addEventListener(name, () => { off.abort(); then(); }, { signal: off.signal });
    on('error', () => failed(new Error('The browser refused a segment.')));
    on('updateend', done);
    try { act(); } catch (error) { off.abort(); failed(error); }
  });
}

/** Returns the end of the buffered range around a time, or the time itself if nothing is buffered. */
export function endOfBuffer(ranges, time) {
  for (let i = 0; i < ranges.length; i += 1) {
    if (ranges.start(i) <= time + SLACK_S && time < ranges.end(i)) return ranges.end(i);
  }
  return time;
}

/** The longest gap that the playhead may skip, such as audio that starts a little later. */
const GAP_SECONDS_MAX = 0.5;

/**
 * Moves a waiting playhead over a small gap after which all tracks are buffered, or to `begin`, where
 * the last track starts.
 */
export function skipGap(video, begin = 0) {
  const { buffered, currentTime, readyState, seeking } = video;
  if (seeking || readyState > 2) return;
  for (let i = 0; i < buffered.length; i += 1) {
    const gap = buffered.start(i) - currentTime;
    if (gap > 0 && gap < GAP_SECONDS_MAX + Math.max(0, begin - currentTime)) video.currentTime = buffered.start(i);
  }
}

/** Removes media before a time, if it is longer than a second. */
export async function evict(buffer, until) {
  if (until <= 1 || buffer.buffered.length === 0 || buffer.buffered.start(0) > until - 1) return;
  await settle(buffer, () => buffer.remove(0, until));
}

/** Formats ranges as "0.00–6.00, 8.00–9.50". */
export const formatRanges = (ranges) => Array.from({ length: ranges.length },
  (_, i) => `${ranges.start(i).toFixed(2)}–${ranges.end(i).toFixed(2)}`).join(', ') || 'nothing';
