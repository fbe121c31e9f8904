// What the viewer felt, counted from the video element's own events, so that every engine is
// judged alike; and the log of steps.

/** Waits within this time of the end are the end arriving, not a stall. */
const END_S = 0.3;
/** A wait within this time of a seek or another choice of the viewer's comes from that. */
const CAUSE_MS = 5000;
const LOG_MAX = 2000;
const SMALL_BYTES = 8192;

export class Report extends EventTarget {
  constructor(video) {
    super();
    this.video = video;
    this.off = new AbortController();
    this.log = [];
    this.errors = [];
    this.warnings = 0;
    this.started = performance.now();
    this.asked = this.started;
    this.held = null;
    this.idle = false;
    this.startup_ms = null;
    this.stalls = 0;
    this.stalled_ms = 0;
    this.waits = 0;
    this.bytes = 0;
    this.requests = 0;
    this.throughput = null;
    this.stalledSince = null;
    this.expectedUntil = 0;
    this.listen();
  }

  listen() {
    const on = (name, act) => this.video.addEventListener(name, act, { signal: this.off.signal });
    on('play', () => this.onPlay());
    on('playing', () => this.onPlaying());
    on('waiting', () => this.onWaiting());
    on('seeking', () => this.expect('seek'));
    on('ended', () => { this.onPlaying(); this.step('ended', 'the film has ended'); });
    on('pause', () => this.video.ended || this.step('pause', `at ${this.video.currentTime.toFixed(2)} s`));
    on('resize', () => this.step('picture', `${this.video.videoWidth} × ${this.video.videoHeight}`));
    on('error', () => this.fail(...mediaError(this.video.error)));
  }

  /** The next wait has a cause that the viewer chose, and is not a stall. */
  expect(cause) {
    this.expectedUntil = performance.now() + CAUSE_MS;
    if (this.stalledSince === null) this.step(cause, `to ${this.video.currentTime.toFixed(2)} s`);
  }

  /** Start-up counts from the viewer's press, where the film did not begin by itself. */
  onPlay() {
    if (this.idle) this.asked = performance.now();
    this.idle = false;
  }

  onPlaying() {
    if (this.startup_ms === null) {
      this.startup_ms = Math.round(performance.now() - this.asked);
      this.step('playing', `${this.startup_ms} ms after it was asked for`);
    }
    if (this.stalledSince !== null) {
      const ms = performance.now() - this.stalledSince;
      this.stalled_ms += ms;
      this.stalledSince = null;
      this.step('stall', `over after ${Math.round(ms)} ms`);
    }
    this.expectedUntil = 0;
  }

  onWaiting() {
    const { video } = this;
    const ending = video.ended || video.duration - video.currentTime < END_S;
    if (this.startup_ms === null || ending || this.stalledSince !== null) return;
    if (performance.now() < this.expectedUntil || video.seeking) {
      this.waits += 1;
      return;
    }
    this.stalls += 1;
    this.stalledSince = performance.now();
    this.step('stall', `at ${video.currentTime.toFixed(2)} s: the buffer is empty`);
  }

  /**
   * A body that an engine fetched. `throughput` (bit/s) is a smoothed harmonic mean: it falls at
   * once when the link does, and rises by and by. Small bodies measure delay, so they count not.
   */
  fetched(bytes, ms, what) {
    this.requests += 1;
    if (!Number.isFinite(bytes) || !Number.isFinite(ms)) return; // an engine that does not say
    this.bytes += bytes;
    const pace = Math.max(ms, 1) / (bytes * 8000); // seconds a bit
    if (bytes >= SMALL_BYTES) {
      const mean = this.throughput === null ? pace : 0.4 / this.throughput + 0.6 * pace;
      this.throughput = 1 / mean;
    }
    if (what) this.step('fetch', `${what}: ${bytes} bytes in ${Math.round(ms)} ms`);
  }

  /** One line of the log. */
  step(kind, text) {
    const line = { ms: Math.round(performance.now() - this.started), kind, text };
    this.log.push(line);
    if (this.log.length > LOG_MAX) this.log.shift();
    this.dispatchEvent(new CustomEvent('step', { detail: line }));
  }

  /** Something an engine recovered from by itself. */
  warn(text) {
    this.warnings += 1;
    this.step('warning', text);
  }

  /** An error that the viewer should see: what happened, and what to do. */
  fail(what, advice = '') {
    const error = { what, advice, ms: Math.round(performance.now() - this.started) };
    this.errors.push(error);
    this.step('error', advice ? `${what} ${advice}` : what);
    this.dispatchEvent(new CustomEvent('fail', { detail: error }));
  }

  /** Seconds held ahead of the playhead. */
  buffered() {
    if (this.held) return this.held();
    const { buffered, currentTime } = this.video;
    for (let i = 0; i < buffered.length; i += 1) {
      if (buffered.start(i) <= currentTime + 0.25 && currentTime <= buffered.end(i)) {
        return buffered.end(i) - currentTime;
      }
    }
    return 0;
  }

  droppedFrames() {
    return this.video.getVideoPlaybackQuality?.().droppedVideoFrames ?? 0;
  }

  close() {
    this.off.abort();
  }
}

/** A MediaError in words: what, and what to do. */
function mediaError(error) {
  const detail = error?.message ? ` (${error.message})` : '';
  switch (error?.code) {
    case MediaError.MEDIA_ERR_NETWORK:
      return [`The film stopped arriving${detail}.`, 'Check that the server still runs, then press play again.'];
    case MediaError.MEDIA_ERR_DECODE:
      return [`The browser could not decode the film${detail}.`, 'Run headwater check on the file, or try another quality.'];
    case MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED:
      return [`This browser cannot play what it was given${detail}.`, 'Choose another player, or a browser that has the codec.'];
    default:
      return [`Playback was cut short${detail}.`, 'Load the title again.'];
  }
}
