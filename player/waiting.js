// Explains a wait for data. Observes the browser's record of requests, so that all engines are treated
// alike, including the browser's own.

/** A wait is shown after this time without data. */
const SHOWN_AFTER_MS = 2000;
/** Engines abort requests around a seek; the browser records these like refused connections. */
const ABORT_MS = 300;
/** One request without a response may have been aborted by its engine. The same one twice failed. */
const UNANSWERED_MIN = 2;
const FAILURES_MAX = 100;

export class WaitMonitor {
  constructor(report) {
    Object.assign(this, { report, video: report.video, failures: new Map(), end: 0, time: 0, seekedAt: -Infinity });
    this.dataAt = performance.now();
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    this.video.addEventListener('seeking', () => this.restart(), { signal });
    this.video.addEventListener('play', () => { this.dataAt = performance.now(); }, { signal });
    this.observer = new PerformanceObserver((list) => list.getEntries().forEach((entry) => this.observe(entry)));
    this.observer.observe({ type: 'resource' });
  }

  /** Starts a new wait: failures at the old position say nothing about the new one. */
  restart() {
    const now = performance.now();
    this.failures.clear();
    this.dataAt = now;
    this.seekedAt = now;
    this.end = this.bufferEnd();
  }

  observe({ name, responseStatus: status, responseEnd }) {
    if (status === undefined) return; // not reported by this browser
    if (status > 0 && status < 400) this.failures.delete(name);
    else if (status > 0 || Math.abs(responseEnd - this.seekedAt) > ABORT_MS) this.count(name, status);
  }

  count(url, status) {
    const attempts = (this.failures.get(url)?.attempts ?? 0) + 1;
    if (this.failures.size < FAILURES_MAX || attempts > 1) this.failures.set(url, { status, attempts });
  }

  bufferEnd() {
    return this.video.currentTime + this.report.buffered();
  }

  /** Checks for new data. Returns { ms, text } while the viewer waits for data, otherwise null. */
  check(isStarting) {
    const now = performance.now();
    const { video } = this;
    const end = this.bufferEnd();
    if (end > this.end + 0.01) this.failures.clear();
    const isPlaying = video.currentTime !== this.time && !video.seeking;
    if (end > this.end + 0.01 || isPlaying || (video.paused && !isStarting) || video.ended) this.dataAt = now;
    Object.assign(this, { end, time: video.currentTime });
    const ms = now - this.dataAt;
    const isWaiting = ms >= SHOWN_AFTER_MS && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
    return isWaiting ? { ms, text: `Waiting for data: ${this.explain()}` } : null;
  }

  explain() {
    const failures = [...this.failures.values()].filter(({ status, attempts }) => status > 0 || attempts >= UNANSWERED_MIN);
    if (failures.length === 0) return 'the network or the server is slow';
    const { status, attempts } = failures.reduce((most, one) => (one.attempts >= most.attempts ? one : most));
    const cause = status > 0 ? `the server responds with ${status}` : 'the server cannot be reached';
    return `${cause} (${attempts} ${attempts === 1 ? 'attempt' : 'attempts'})`;
  }

  close() {
    this.listeners.abort();
    this.observer.disconnect();
  }
}
