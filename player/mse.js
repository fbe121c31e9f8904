// A minimal Media Source Extensions player that logs every step.
//
//   1. load T/.json            which renditions there are, and each segment's time and size
//   2. open a MediaSource      and attach it to the video element
//   3. add SourceBuffers       one for video, one for audio
//   4. append an init segment  codec and timescale; again whenever the rendition changes
//   5. fetch and append        the segment at the end of the buffer, while less than 15 s are
//                              buffered ahead of the playhead
//   6. end of stream           after the last segments
//
// A seek needs little code, because the next segment always follows from the playhead and the
// buffer. A change of quality chooses another rendition before step 5.

import { encodeHeaders, kilobits, roundToHundreds } from './cmcd.js';
import { get, seconds, titleUrl } from './format.js';
import { SLACK_S, endOfBuffer, isBufferFull, evict, sortRenditions, formatRanges, mimeOf, offsetOf, openSource, playable, settle, sleep, skipGap } from './source.js';

/** Buffered seconds that are kept behind the playhead. */
const BEHIND_S = 30;
/** Attempts per segment before the viewer sees an error. The wait doubles after each, up to a limit. */
const ATTEMPTS_MAX = 8;
const FIRST_WAIT_MS = 400;
const LAST_WAIT_MS = 5000;

export class MsePlayer {
  constructor(video, path, title, report, session) {
    Object.assign(this, { video, path, title, report, session, closed: false, tracks: [], stallsReported: 0 });
  }

  async open() {
    const { renditions } = this.title;
    this.source = await openSource(this.video);
    this.source.duration = this.title.duration_ms / 1000;
    this.report.step('open', `MediaSource, ${seconds(this.source.duration)}`);
    for (const kind of ['video', 'audio']) {
      const all = renditions.filter((r) => r.kind === kind);
      const choices = all.filter(playable);
      for (const r of all.filter((one) => !playable(one))) this.report.step('skip', `${r.name}: this browser cannot decode ${r.codecs}`);
      if (choices.length > 0) this.tracks.push(new Track(this, kind, choices));
      else if (all.length > 0) this.report.fail(`This browser cannot decode ${all[0].codecs}.`, 'Try another browser.');
    }
    if (this.tracks.length === 0) throw new Error('This browser cannot decode any track of this title.');
    this.video.addEventListener('seeking', () => this.tracks.forEach((track) => track.seek()));
    this.tracks.forEach((track) => track.run());
  }

  /** Ends the stream once every track has its last segment. */
  finish() {
    if (this.source.readyState !== 'open' || this.tracks.some((t) => !t.done || t.buffer.updating)) return;
    this.source.endOfStream();
    this.report.step('end', 'all segments are appended: endOfStream');
  }

  close() {
    this.closed = true;
    this.tracks.forEach((track) => track.abort.abort());
  }
}

class Track {
  constructor(player, kind, listed) {
    const choices = sortRenditions(listed);
    const current = choices.indexOf(listed[0]); // titles list a suitable start first
    Object.assign(this, { player, kind, choices, chosen: 'auto', current, inited: null, last: -1, failures: 0, done: false });
    this.appended = []; // { start, end, level } of each appended segment
    this.abort = new AbortController();
    this.mime = mimeOf(choices[current]);
    this.buffer = player.source.addSourceBuffer(this.mime);
    this.offset = offsetOf(player.title);
    this.buffer.timestampOffset = -this.offset;
    player.report.step('buffer', `SourceBuffer for ${this.mime}`);
  }

  start(n, rendition = this.choices[this.current]) {
    return rendition.segments[n].t / rendition.timescale - this.offset;
  }

  end(n, rendition = this.choices[this.current]) {
    return this.start(n, rendition) + rendition.segments[n].duration / rendition.timescale;
  }

  /** Returns the first segment that ends after a time, or -1. */
  at(time) {
    return this.choices[this.current].segments.findIndex((_, n) => this.end(n) > time + SLACK_S);
  }

  /** Handles a seek: aborts the current request, which may be useless now. */
  seek() {
    this.last = -1;
    this.done = false;
    this.failures = 0;
    this.abort.abort();
  }

  /** Applies a choice (an index, or 'auto'): the buffer ahead is replaced. */
  choose(index) {
    this.chosen = index;
    this.flush = index !== 'auto' && index !== this.current;
    if (this.flush) this.seek();
  }

  /** Fetches and appends until closed. Each track has one loop, so its steps never overlap. */
  async run() {
    while (!this.player.closed) {
      try {
        if (this.flush) await this.clearBufferAhead();
        const n = this.failures < ATTEMPTS_MAX ? this.next() : null;
        if (n === null) await sleep(100);
        else await this.load(n);
        if (n !== null) this.failures = 0;
      } catch (error) {
        if (!this.player.closed && error.name !== 'AbortError') await this.recover(error);
      }
    }
  }

  /** Handles a failure: evicts or waits, then retries. After the last attempt, reports it and waits for a seek. */
  async recover(error) {
    if (error.name === 'QuotaExceededError') await evict(this.buffer, this.player.video.currentTime - 5);
    this.failures = error.isTransient === false ? ATTEMPTS_MAX : this.failures + 1;
    if (this.failures >= ATTEMPTS_MAX) return this.player.report.fail(error.message, error.advice, error.detail);
    this.player.report.warn(`${error.detail ?? error.message}: attempt ${this.failures} of ${ATTEMPTS_MAX}`);
    return this.waitToRetry(Math.min(FIRST_WAIT_MS * 2 ** this.failures, LAST_WAIT_MS));
  }

  /** Waits before the next attempt. A seek, which resets the failures, ends the wait. */
  async waitToRetry(ms) {
    const until = performance.now() + ms;
    while (performance.now() < until && this.failures > 0 && !this.player.closed) await sleep(100);
  }

  /** Returns the segment to fetch now, or null to wait. */
  next() {
    const begin = this.start(0); // audio may start later than the film
    const time = Math.max(this.player.video.currentTime, begin);
    const end = endOfBuffer(this.buffer.buffered, time);
    let n = this.at(end);
    if (n === this.last && n >= 0) n += 1; // appended, but a gap remains: continue after it
    this.done = n < 0 || n >= this.choices[this.current].segments.length;
    if (this.done) {
      this.player.finish();
      return null;
    }
    skipGap(this.player.video, begin);
    return isBufferFull(end - time, this.end(n) - this.start(n)) ? null : n;
  }

  /** Returns the rendition for the next segment: the chosen one, or the best that fits 0.8 of the throughput. */
  pick() {
    if (this.chosen !== 'auto') return this.chosen;
    const { throughput } = this.player.report;
    if (this.kind === 'audio' || throughput === null) return this.current;
    const rates = this.choices.map((r) => r.bandwidth);
    const fits = rates.filter((rate) => rate <= throughput * 0.8);
    return rates.indexOf(fits.length > 0 ? Math.max(...fits) : Math.min(...rates));
  }

  async load(n) {
    const level = this.pick();
    const rendition = this.choices[level];
    if (level !== this.current) {
      this.player.report.step('switch', `${this.choices[this.current].name} → ${rendition.name}`);
      const time = this.start(n);
      this.current = level; // its grid may differ
      n = Math.max(0, this.at(time));
    }
    if (this.inited !== level) {
      const init = await this.fetch(rendition.init, `${rendition.name} init`, { ot: 'i' });
      const mime = mimeOf(rendition);
      if (mime !== this.mime) this.buffer.changeType(mime);
      this.mime = mime;
      await settle(this.buffer, () => this.buffer.appendBuffer(init));
      this.inited = level;
    }
    const url = rendition.media.replace('{t}', rendition.segments[n].t);
    const body = await this.fetch(url, `${rendition.name} ${n + 1}/${rendition.segments.length}`, this.describeSegment(rendition, n));
    await settle(this.buffer, () => this.buffer.appendBuffer(body));
    this.last = n;
    this.appended = this.appended.filter((h) => h.start !== this.start(n)).concat({ start: this.start(n), end: this.end(n), level });
    this.player.report.step('append', `${this.kind} buffered: ${formatRanges(this.buffer.buffered)}`);
    await evict(this.buffer, this.player.video.currentTime - BEHIND_S);
  }

  /** Returns the client data (CMCD) of a segment. The next segment is named so that a cache can fetch it. */
  describeSegment(rendition, n) {
    const next = rendition.segments[n + 1];
    const time = this.player.video.currentTime;
    return {
      ot: this.kind === 'video' ? 'v' : 'a',
      br: kilobits(rendition.average_bandwidth ?? rendition.bandwidth),
      d: Math.round((this.end(n, rendition) - this.start(n, rendition)) * 1000),
      bl: roundToHundreds((endOfBuffer(this.buffer.buffered, time) - time) * 1000),
      nor: next && encodeURIComponent(rendition.media.split('/').pop().replace('{t}', next.t)),
    };
  }

  /** Returns the client data that all requests contain. */
  describePlayer() {
    const { report, session } = this.player;
    const hasStalled = report.stalls > this.player.stallsReported;
    this.player.stallsReported = report.stalls;
    return {
      ...session, sf: 'o', st: 'v', bs: hasStalled, su: report.startup_ms === null || report.stalledSince !== null,
      tb: kilobits(Math.max(...this.choices.map((r) => r.average_bandwidth ?? r.bandwidth))),
      mtp: report.throughput === null ? undefined : roundToHundreds(report.throughput / 1000),
    };
  }

  async fetch(url, what, object) {
    this.abort = new AbortController();
    const startedAt = performance.now();
    const headers = encodeHeaders({ ...this.describePlayer(), ...object });
    const response = await get(titleUrl(this.player.path, url), { signal: this.abort.signal, headers });
    const body = await response.arrayBuffer();
    this.player.report.fetched(body.byteLength, performance.now() - startedAt, what);
    return body;
  }

  /** Clears the buffer: audio from the playhead, video from the next segment. */
  async clearBufferAhead() {
    this.flush = false;
    const time = this.player.video.currentTime;
    const n = this.at(time + (this.kind === 'video' ? 1 : 0));
    const from = n < 0 ? Infinity : this.start(n) <= time ? this.end(n) : this.start(n);
    if (from === Infinity) return;
    await settle(this.buffer, () => this.buffer.remove(from, Infinity));
    if (this.kind === 'audio') await this.load(n);
  }

  /** Returns the index of the rendition at the playhead. */
  level() {
    const time = this.player.video.currentTime;
    return this.appended.find((h) => h.start <= time + SLACK_S && time < h.end)?.level ?? this.current;
  }
}
