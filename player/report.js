// Measures the quality of experience from events of the video element, so that all engines are
// measured in the same way, and keeps a log.

import { describeMediaError } from './errors.js';
import { WaitMonitor } from './waiting.js';

/** A wait this close to the end is the end itself, not a stall. */
const END_S = 0.3;
/** A wait this soon after a seek or another choice of the viewer is caused by that choice. */
const CAUSE_MS = 5000;
const LOG_MAX = 2000;
const SMALL_BYTES = 8192;

export class Report extends EventTarget {
  constructor(video) {
    super();
    this.video = video;
    this.listeners = new AbortController();
    this.log = [];
    this.errors = [];
    this.warnings = 0;
    this.started = performance.now();
    this.requestedAt = this.started;
    this.bufferedOverride = null;
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
    this.hasFailed = false;
    this.waitMonitor = new WaitMonitor(this);
    this.listen();
  }

  listen() {
    const on = (name, act) => this.video.addEventListener(name, act, { signal: this.listeners.signal });
    on('play', () => this.onPlay());
    on('playing', () => this.onPlaying());
    on('waiting', () => this.onWaiting());
    on('seeking', () => { this.hasFailed = false; this.expect('seek'); });
    on('ended', () => { this.onPlaying(); this.step('ended', 'the film is over'); });
    on('pause', () => this.video.ended || this.step('pause', `at ${this.video.currentTime.toFixed(2)} s`));
    on('resize', () => this.step('resolution', `${this.video.videoWidth} × ${this.video.videoHeight}`));
    on('error', () => this.fail(...describeMediaError(this.video.error, this.startup_ms !== null), this.video.error?.message));
  }

  /** Marks the next wait as caused by the viewer, so that it does not count as a stall. */
  expect(cause) {
    this.expectedUntil = performance.now() + CAUSE_MS;
    if (this.stalledSince === null) this.step(cause, `to ${this.video.currentTime.toFixed(2)} s`);
  }

  /** Without autoplay, start-up time counts from the moment that the viewer presses play. */
  onPlay() {
    if (this.idle) this.requestedAt = performance.now();
    this.idle = false;
  }

  onPlaying() {
    if (this.startup_ms === null) {
      this.startup_ms = Math.round(performance.now() - this.requestedAt);
      this.step('playing', `${this.startup_ms} ms after the request`);
    }
    if (this.stalledSince !== null) {
      const ms = performance.now() - this.stalledSince;
      this.stalled_ms += ms;
      this.stalledSince = null;
      this.step('stall', `resolved after ${Math.round(ms)} ms`);
    }
    this.expectedUntil = 0;
    this.hasFailed = false;
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
   * Records a body that an engine fetched. `throughput` (bit/s) is a smoothed harmonic mean: it falls
   * at once with the link, and rises slowly. Small bodies are ignored, because they measure latency.
   */
  fetched(bytes, ms, what) {
    this.requests += 1;
    if (!Number.isFinite(bytes) || !Number.isFinite(ms)) return; // the engine does not report it
    this.bytes += bytes;
    const secondsPerBit = Math.max(ms, 1) / (bytes * 8000); // seconds per bit
    if (bytes >= SMALL_BYTES) {
      const mean = this.throughput === null ? secondsPerBit : 0.4 / this.throughput + 0.6 * secondsPerBit;
      this.throughput = 1 / mean;
    }
    if (what) this.step('fetch', `${what}: ${bytes} bytes in ${Math.round(ms)} ms`);
  }

  /** Adds a line to the log. */
  step(kind, text) {
    const line = { ms: Math.round(performance.now() - this.started), kind, text };
    this.log.push(line);
    if (this.log.length > LOG_MAX) this.log.shift();
    this.dispatchEvent(new CustomEvent('step', { detail: line }));
  }

  /** Records an error from which an engine recovered. */
  warn(text) {
    this.warnings += 1;
    this.step('warning', text);
  }

  /** Records an error that the viewer should see: what happened, and the remedy. The detail is logged. */
  fail(what, advice = '', detail = '') {
    const error = { what, advice, ms: Math.round(performance.now() - this.started) };
    this.hasFailed = true;
    this.errors.push(error);
    this.step('error', [what, advice, detail && `(${detail})`].filter(Boolean).join(' '));
    this.dispatchEvent(new CustomEvent('fail', { detail: error }));
  }

  /** Returns the seconds buffered ahead of the playhead. */
  buffered() {
    if (this.bufferedOverride) return this.bufferedOverride();
    const { buffered, currentTime } = this.video;
    for (let i = 0; i < buffered.length; i += 1) {
      if (buffered.start(i) <= currentTime + 0.25 && currentTime <= buffered.end(i)) {
        return buffered.end(i) - currentTime;
      }
    }
    return 0;
  }

  /** Returns the total time of stalls, including the current one. */
  stalledMs() {
    return Math.round(this.stalled_ms + (this.stalledSince === null ? 0 : performance.now() - this.stalledSince));
  }

  /** Returns the wait for data that the viewer should know about, or null: see `WaitMonitor`. */
  wait() {
    const isStarting = this.startup_ms === null && !this.idle;
    const wait = this.waitMonitor.check(isStarting);
    return this.hasFailed ? null : wait;
  }

  droppedFrames() {
    return this.video.getVideoPlaybackQuality?.().droppedVideoFrames ?? 0;
  }

  close() {
    this.listeners.abort();
    this.waitMonitor.close();
  }
}
