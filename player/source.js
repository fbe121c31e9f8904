// Media Source Extensions in a few promises; shared by our own player, the consumer and posters.

/** How far ahead of the playhead we hold. */
const AHEAD_S = 15;
/** With less than this ahead, more is asked for, even if a long segment then exceeds AHEAD_S. */
const LOW_S = 4;
/** Whether to wait before asking for `longer` more seconds when `held` are ahead. */
export const enough = (held, longer) => held > LOW_S && held + longer > AHEAD_S;
/** Segment times and buffered ranges may differ by rounding and by a frame of priming. */
export const SLACK_S = 0.06;

export const MediaSourceClass = globalThis.MediaSource ?? globalThis.ManagedMediaSource;

/** What MSE wants to know of a rendition. */
export const mimeOf = (rendition) => `${rendition.mime}; codecs="${rendition.codecs}"`;
/** Whether this browser decodes it. */
export const playable = (rendition) => MediaSourceClass.isTypeSupported(mimeOf(rendition));
export const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });
const once = (target, name) => new Promise((done) => { target.addEventListener(name, done, { once: true }); });

/**
 * Seconds to take from served time to get the film's: served time begins before the film's 0 when
 * tracks have priming, and MSE cuts what lies before 0. Sound may lose that; a picture may not.
 */
export function offsetOf(title) {
  const zero = (title.zero_ms ?? 0) / 1000;
  const first = title.renditions.filter((r) => r.kind === 'video').map((r) => r.segments[0].t / r.timescale);
  return Math.min(zero, ...first);
}

/** Renditions as menus list them: pictures from small to large, sounds as the title has them. */
export const inOrder = (renditions) => (renditions[0]?.kind === 'video'
  ? [...renditions].sort((a, b) => a.bandwidth - b.bandwidth) : renditions);

/** Opens a MediaSource on a video element. */
export async function openSource(video) {
  const source = new MediaSourceClass();
  video.disableRemotePlayback = true; // ManagedMediaSource asks for it
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

/** Where the buffered range around a time ends; the time itself when nothing is held there. */
export function endOfBuffer(ranges, time) {
  for (let i = 0; i < ranges.length; i += 1) {
    if (ranges.start(i) <= time + SLACK_S && time < ranges.end(i)) return ranges.end(i);
  }
  return time;
}

/** A hole that the playhead may step over, such as sound that begins a little later. */
const HOLE_S = 0.5;

/**
 * Moves a waiting playhead over a small hole, if all tracks have something behind it; and to
 * `begin`, where the last track begins, however far that is.
 */
export function stepOver(video, begin = 0) {
  const { buffered, currentTime, readyState, seeking } = video;
  if (seeking || readyState > 2) return;
  for (let i = 0; i < buffered.length; i += 1) {
    const hole = buffered.start(i) - currentTime;
    if (hole > 0 && hole < HOLE_S + Math.max(0, begin - currentTime)) video.currentTime = buffered.start(i);
  }
}

/** Removes what lies before a time, once that is more than a second. */
export async function evict(buffer, until) {
  if (until <= 1 || buffer.buffered.length === 0 || buffer.buffered.start(0) > until - 1) return;
  await settle(buffer, () => buffer.remove(0, until));
}

/** Ranges as "0.00–6.00, 8.00–9.50". */
export const inWords = (ranges) => Array.from({ length: ranges.length },
  (_, i) => `${ranges.start(i).toFixed(2)}–${ranges.end(i).toFixed(2)}`).join(', ') || 'nothing';
