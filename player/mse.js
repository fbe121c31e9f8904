// The smallest Media Source Extensions player that shows every step.
//
//   1. load T/.json            which renditions there are, and each segment's time and size
//   2. open a MediaSource      and give the video element its address
//   3. add SourceBuffers       one for the picture, one for the sound
//   4. append an init segment  codec and timescale; again whenever the rendition changes
//   5. fetch and append        the segment that begins where the buffer ends, while that keeps
//                              less than 15 s ahead of the playhead
//   6. end of stream           when the last segments are in
//
// Seeking needs little code of its own: the next segment is always found from the playhead and
// the buffer. Changing quality is choosing another rendition before step 5.

import { get, seconds, titleUrl } from './format.js';
import { SLACK_S, endOfBuffer, enough, evict, inOrder, inWords, mimeOf, offsetOf, openSource, playable, settle, sleep, stepOver } from './source.js';

/** How far behind the playhead we keep. */
const BEHIND_S = 30;
/** How often a segment is asked for before the viewer hears of it; the waits between double. */
const TRIES = 4;
const FIRST_WAIT_MS = 400;

export class MsePlayer {
  constructor(video, path, title, report) {
    Object.assign(this, { video, path, title, report, closed: false, tracks: [] });
  }

  async open() {
    const { renditions } = this.title;
    this.source = await openSource(this.video);
    this.source.duration = this.title.duration_ms / 1000;
    this.report.step('open', `MediaSource, ${seconds(this.source.duration)}`);
    for (const kind of ['video', 'audio']) {
      const all = renditions.filter((r) => r.kind === kind);
      const choices = all.filter(playable);
      for (const r of all.filter((one) => !playable(one))) this.report.step('skip', `${r.name}: this browser has no ${r.codecs}`);
      if (choices.length > 0) this.tracks.push(new Track(this, kind, choices));
      else if (all.length > 0) this.report.fail(`This browser has no decoder for ${all[0].codecs}.`, 'Try another browser.');
    }
    if (this.tracks.length === 0) throw new Error('Nothing in this title can be played by this browser.');
    this.video.addEventListener('seeking', () => this.tracks.forEach((track) => track.seek()));
    this.tracks.forEach((track) => track.run());
  }

  /** Ends the stream once every track has its last segment. */
  finish() {
    if (this.source.readyState !== 'open' || this.tracks.some((t) => !t.done || t.buffer.updating)) return;
    this.source.endOfStream();
    this.report.step('end', 'all segments are in: endOfStream');
  }

  close() {
    this.closed = true;
    this.tracks.forEach((track) => track.abort.abort());
  }
}

class Track {
  constructor(player, kind, listed) {
    const choices = inOrder(listed);
    const current = choices.indexOf(listed[0]); // titles list a sensible start first
    Object.assign(this, { player, kind, choices, chosen: 'auto', current, inited: null, last: -1, failures: 0, done: false });
    this.held = []; // what was appended: { start, end, level }
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

  /** The first segment that ends after a time, or -1. */
  at(time) {
    return this.choices[this.current].segments.findIndex((_, n) => this.end(n) > time + SLACK_S);
  }

  /** The viewer moved: what is under way may be of no use. */
  seek() {
    this.last = -1;
    this.done = false;
    this.failures = 0;
    this.abort.abort();
  }

  /** The viewer chose (an index, or 'auto'): what is held ahead makes room. */
  choose(index) {
    this.chosen = index;
    this.flush = index !== 'auto' && index !== this.current;
    if (this.flush) this.seek();
  }

  /** Fetches and appends until closed. One such loop per track, so its steps never overlap. */
  async run() {
    while (!this.player.closed) {
      try {
        if (this.flush) await this.makeRoom();
        const n = this.failures < TRIES ? this.next() : null;
        if (n === null) await sleep(100);
        else await this.load(n);
        if (n !== null) this.failures = 0;
      } catch (error) {
        if (!this.player.closed && error.name !== 'AbortError') await this.recover(error);
      }
    }
  }

  /** After a failure: make room, or wait and try again; in the end tell, and wait for a seek. */
  async recover(error) {
    if (error.name === 'QuotaExceededError') await evict(this.buffer, this.player.video.currentTime - 5);
    this.failures += 1;
    if (this.failures >= TRIES) return this.player.report.fail(error.message, 'Seek to try again.');
    this.player.report.warn(`${error.message} Trying again.`);
    return sleep(FIRST_WAIT_MS * 2 ** this.failures);
  }

  /** Which segment to fetch now; null to wait. */
  next() {
    const begin = this.start(0); // sound may begin later than the film
    const time = Math.max(this.player.video.currentTime, begin);
    const end = endOfBuffer(this.buffer.buffered, time);
    let n = this.at(end);
    if (n === this.last && n >= 0) n += 1; // appended, and yet a hole: go on behind it
    this.done = n < 0 || n >= this.choices[this.current].segments.length;
    if (this.done) {
      this.player.finish();
      return null;
    }
    stepOver(this.player.video, begin);
    return enough(end - time, this.end(n) - this.start(n)) ? null : n;
  }

  /** The rendition for the next segment: as chosen, or the best that 0.8 of the throughput carries. */
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
      const init = await this.fetch(rendition.init, `${rendition.name} init`);
      const mime = mimeOf(rendition);
      if (mime !== this.mime) this.buffer.changeType(mime);
      this.mime = mime;
      await settle(this.buffer, () => this.buffer.appendBuffer(init));
      this.inited = level;
    }
    const url = rendition.media.replace('{t}', rendition.segments[n].t);
    const body = await this.fetch(url, `${rendition.name} ${n + 1}/${rendition.segments.length}`);
    await settle(this.buffer, () => this.buffer.appendBuffer(body));
    this.last = n;
    this.held = this.held.filter((h) => h.start !== this.start(n)).concat({ start: this.start(n), end: this.end(n), level });
    this.player.report.step('append', `${this.kind} holds ${inWords(this.buffer.buffered)}`);
    await evict(this.buffer, this.player.video.currentTime - BEHIND_S);
  }

  async fetch(url, what) {
    this.abort = new AbortController();
    const begun = performance.now();
    const answer = await get(titleUrl(this.player.path, url), { signal: this.abort.signal });
    const body = await answer.arrayBuffer();
    this.player.report.fetched(body.byteLength, performance.now() - begun, what);
    return body;
  }

  /** Sound is replaced from the playhead on, the picture from the next segment on. */
  async makeRoom() {
    this.flush = false;
    const time = this.player.video.currentTime;
    const n = this.at(time + (this.kind === 'video' ? 1 : 0));
    const from = n < 0 ? Infinity : this.start(n) <= time ? this.end(n) : this.start(n);
    if (from === Infinity) return;
    await settle(this.buffer, () => this.buffer.remove(from, Infinity));
    if (this.kind === 'audio') await this.load(n);
  }

  /** Index of the rendition under the playhead. */
  level() {
    const time = this.player.video.currentTime;
    return this.held.find((h) => h.start <= time + SLACK_S && time < h.end)?.level ?? this.current;
  }
}
