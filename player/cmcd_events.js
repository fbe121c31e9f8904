// Events of a playback session (CMCD version 2, CTA-5004-B), for the collector of the server. A server
// without one reports that at -/collector.json, and then nothing is sent.

import { encodeEvent, kilobits, roundToHundreds } from './cmcd.js';

const INTERVAL_MS = 10_000;
/** Events are sent together if they occur within this time. */
const BATCH_MS = 500;
/** The server takes 128 lines at once. Older events are dropped while it does not respond. */
const QUEUE_MAX = 100;
const ERROR_CHARS_MAX = 64;

const base = () => new URL('.', location.href);
let discovery;

/** Resolves to the URL for events, or null. */
function findCollector() {
  discovery ??= fetch(new URL('-/collector.json', base()), { cache: 'no-store' })
    .then((response) => (response.ok ? response.json() : {}))
    .then(({ cmcd }) => (cmcd ? new URL(cmcd.replace(/^\//, ''), base()).href : null))
    .catch(() => null);
  return discovery;
}

/** Reports one playback session until `close`. */
export class SessionEvents {
  constructor(video, report, session) {
    Object.assign(this, { video, report, session, url: undefined, queue: [], number: 0, facts: {}, sent: {} });
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    report.addEventListener('step', () => this.update(), { signal });
    report.addEventListener('fail', ({ detail }) => this.add('e', { ec: [detail.what.slice(0, ERROR_CHARS_MAX)] }), { signal });
    document.addEventListener('visibilitychange', () => this.onVisibility(), { signal });
    window.addEventListener('pagehide', () => this.leave(true), { signal });
    window.addEventListener('pageshow', () => this.leave(false), { signal });
    this.interval = setInterval(() => this.add('t'), INTERVAL_MS);
    this.update();
    findCollector().then((url) => {
      this.url = url;
      if (url === null) this.stop();
      else this.flush();
    });
  }

  /** Takes the latest measurements, and adds events for what has changed. */
  update(facts = this.facts) {
    this.facts = facts;
    const state = this.state();
    if (state !== this.sent.state) {
      this.sent.state = state;
      this.add('ps');
    }
    const { bitrate } = facts;
    if (bitrate && bitrate !== this.sent.bitrate) {
      this.sent.bitrate = bitrate;
      this.add('bc');
    }
  }

  /** Returns the player's state as a token of `sta`. */
  state() {
    const { video, report } = this;
    if (report.hasFailed) return 'f';
    if (video.ended) return 'e';
    if (this.isClosing) return 'q';
    if (report.startup_ms === null) return report.idle ? 'd' : 's';
    if (report.stalledSince !== null) return 'r';
    if (video.seeking) return 'k';
    return video.paused ? 'a' : 'p';
  }

  onVisibility() {
    const isHidden = document.visibilityState === 'hidden';
    this.add('b', { bg: isHidden });
    // A hidden page may be discarded without another event.
    if (isHidden) this.flush();
  }

  add(event, more = {}) {
    if (this.url === null) return;
    const { report, video, facts } = this;
    const list = (value) => (Number.isFinite(value) ? [value] : undefined);
    this.queue.push(encodeEvent({
      e: event, ts: Date.now(), sn: this.number, sid: this.session.sid, cid: this.session.cid, st: 'v', v: 2,
      sta: this.state(),
      bl: list(roundToHundreds(report.buffered() * 1000)),
      br: facts.bitrate ? list(kilobits(facts.bitrate)) : undefined,
      tb: facts.topBitrate ? list(kilobits(facts.topBitrate)) : undefined,
      mtp: facts.throughput ? list(roundToHundreds(kilobits(facts.throughput))) : undefined,
      bsa: [report.stalls], bsda: [report.stalledMs()],
      dfa: report.droppedFrames(), msd: report.startup_ms ?? undefined,
      pt: Math.round(video.currentTime * 1000), pr: video.playbackRate === 1 ? undefined : video.playbackRate,
      ...more,
    }));
    this.number += 1;
    if (this.queue.length > QUEUE_MAX) this.queue.shift();
    this.timer ??= setTimeout(() => this.flush(), BATCH_MS);
  }

  /** Sends the waiting events. The browser completes the request after the page is closed. */
  flush() {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.url || this.queue.length === 0) return;
    const body = this.queue.splice(0).join('\n');
    const headers = { 'Content-Type': 'application/cmcd' };
    // Lost events are not worth a retry.
    fetch(this.url, { method: 'POST', body, headers, keepalive: true }).catch(() => {});
  }

  /** Reports that the viewer has left, or has come back to a page that the browser has stored. */
  leave(isClosing) {
    this.isClosing = isClosing;
    this.update();
    this.flush();
  }

  close() {
    this.leave(true);
    this.stop();
  }

  stop() {
    clearInterval(this.interval);
    clearTimeout(this.timer);
    this.listeners.abort();
    this.queue = [];
  }
}
