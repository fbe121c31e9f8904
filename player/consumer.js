// The consumer of "Optimizing single server streaming": it requests block after block of a film while
// less than 15 s are buffered, and appends the bytes or only counts them.
//
// Blocks are whole segments, or ranges of a fixed size. Ranges apply to the file of the title if it is
// a fragmented MP4 (one SourceBuffer for video and audio, as in the paper) or if nothing is appended.
// Otherwise they apply to CMAF segments, because MSE does not accept progressive MP4.

import { bytes, get, titleUrl } from './format.js';
import { endOfBuffer, isBufferFull, sortRenditions, formatRanges, mimeOf, offsetOf, openSource, playable, settle, sleep, skipGap } from './source.js';

/** The start of a file that shows whether it is fragmented. */
const HEAD_BYTES = 65536;

export class Consumer {
  /** `options`: { mode: 'segments' | 'ranges', append, rangeBytes }. */
  constructor(video, path, kind, title, report, options) {
    Object.assign(this, { video, path, kind, title, report, options, closed: false, lanes: [] });
    this.duration = title.duration_ms / 1000;
    this.began = performance.now();
  }

  async open() {
    const { append } = this.options;
    if (append) this.source = await openSource(this.video);
    if (append) this.source.duration = this.duration;
    this.lanes = (await this.fileLanes()) ?? this.segmentLanes();
    this.report.step('open', append ? 'fetching and appending' : 'fetching only: no video is shown');
    for (const lane of append ? this.lanes : []) {
      lane.buffer = this.source.addSourceBuffer(lane.mime);
      lane.buffer.timestampOffset = -lane.offset;
    }
    // Nothing may fail from here on: nobody would end the loops.
    this.lanes.forEach((lane) => this.run(lane));
  }

  /** Returns a lane per file of the title in range mode, or null if the files cannot be used. */
  async fileLanes() {
    if (this.options.mode !== 'ranges') return null;
    const chosen = ['video', 'audio'].map((kind) => this.title.renditions.find((r) => r.kind === kind)).filter(Boolean);
    const paths = chosen.map((r) => this.title.files?.[r.file]?.path ?? (this.kind === 'file' ? this.path : null));
    if (paths.includes(null)) return null;
    const lanes = await Promise.all([...new Set(paths)].map((path) => (
      this.fileLane(path, chosen.filter((_, i) => paths[i] === path)))));
    if (!this.options.append || lanes.every((lane) => lane.fragmented)) return lanes;
    this.report.step('open', 'MSE accepts fragmented MP4 only: requesting ranges of segments instead');
    return null;
  }

  /** Plans the ranges of one file, and detects whether it is fragmented. */
  async fileLane(path, renditions) {
    const url = titleUrl(path);
    const head = await get(url, { headers: { Range: `bytes=0-${HEAD_BYTES - 1}` } });
    if (head.status !== 206) throw new Error('The server ignored the range and sent the whole file.');
    const size = Number(head.headers.get('Content-Range').split('/')[1]);
    const fragmented = isFragmented(new DataView(await head.arrayBuffer()));
    this.report.step('open', `${path}: ${bytes(size)}, ${fragmented ? 'fragmented' : 'progressive'} MP4`);
    const mime = `${renditions[0].kind}/mp4; codecs="${renditions.map((r) => r.codecs).join(', ')}"`;
    const blocks = ranges(url, size, this.options.rangeBytes)
      .map((block) => ({ ...block, end: (block.last / size) * this.duration, segment: 0 }));
    return { kind: 'file', mime, blocks, offset: 0, fetched: 0, fragmented };
  }

  segmentLanes() {
    return ['video', 'audio'].flatMap((kind) => {
      const listed = this.title.renditions.filter((r) => r.kind === kind && (!this.options.append || playable(r)));
      if (listed.length === 0) return [];
      const choices = sortRenditions(listed);
      const [rendition] = listed;
      const offset = offsetOf(this.title);
      return [{ kind, mime: mimeOf(rendition), choices, rendition, offset, fetched: 0, segment: -1, blocks: this.blocks(rendition, offset, 0) }];
    });
  }

  /** Plans init segment and segments from `first` on, whole or in ranges; `end` is in seconds. */
  blocks(rendition, offset, first) {
    const { mode, rangeBytes } = this.options;
    const url = (under) => titleUrl(this.path, under);
    const media = rendition.segments.slice(first).flatMap((segment, n) => {
      const address = url(rendition.media.replace('{t}', segment.t));
      const start = segment.t / rendition.timescale - offset;
      const length = segment.duration / rendition.timescale;
      const parts = mode === 'ranges' ? ranges(address, segment.bytes, rangeBytes) : [{ url: address }];
      return parts.map((part, i) => ({ ...part, segment: first + n, end: start + (length * (i + 1)) / parts.length }));
    });
    return [{ url: url(rendition.init), segment: first - 1, end: 0 }, ...media];
  }

  /** Switches to another quality at the next segment. */
  quality(level) {
    const lane = this.lanes.find((l) => l.kind === 'video');
    if (!lane?.choices[level] || lane.choices[level] === lane.rendition) return;
    lane.rendition = lane.choices[level];
    const rest = lane.blocks.filter((block) => block.segment === lane.segment);
    lane.blocks = [...rest, ...this.blocks(lane.rendition, lane.offset, lane.segment + 1)];
  }

  /** Returns the buffered seconds. Without appending, simulates playback since the start. */
  bufferedSeconds(lane) {
    if (!this.options.append) return Math.max(0, lane.fetched - (performance.now() - this.began) / 1000);
    const time = this.video.currentTime;
    return endOfBuffer(lane.buffer.buffered, time) - time;
  }

  async run(lane) {
    try {
      while (!this.closed && lane.blocks.length > 0) {
        const [block] = lane.blocks;
        const next = Math.max(0, block.end - lane.fetched);
        if (this.options.append) skipGap(this.video);
        const buffered = this.bufferedSeconds(lane);
        if (isBufferFull(buffered, next)) await sleep(100);
        else await this.consume(lane, lane.blocks.shift());
      }
      lane.done = true;
      if (this.closed || !this.lanes.every((l) => l.done)) return;
      this.report.step('end', `all ${this.report.requests} blocks fetched, ${bytes(this.report.bytes)}`);
      if (this.options.append && this.source.readyState === 'open') this.source.endOfStream();
    } catch (error) {
      if (!this.closed) this.report.fail(error.message, error.advice ?? 'Reload the title, or choose another mode.', error.detail);
    }
  }

  async consume(lane, block) {
    const range = block.last !== undefined ? { Range: `bytes=${block.first}-${block.last - 1}` } : {};
    const startedAt = performance.now();
    const response = await get(block.url, { headers: range });
    if (range.Range && response.status !== 206) throw new Error(`The server ignored the range of ${block.url}.`);
    const body = await response.arrayBuffer();
    this.report.fetched(body.byteLength, performance.now() - startedAt, `${lane.kind} ${range.Range ?? block.url.split('/').pop()}`);
    lane.segment = block.segment;
    lane.fetched = Math.max(lane.fetched, block.end);
    if (!this.options.append || this.closed) return;
    if (lane.rendition && mimeOf(lane.rendition) !== lane.mime && block.end === 0) {
      lane.mime = mimeOf(lane.rendition);
      lane.buffer.changeType(lane.mime);
    }
    await settle(lane.buffer, () => lane.buffer.appendBuffer(body));
    this.report.step('append', `${lane.kind} buffered: ${formatRanges(lane.buffer.buffered)}`);
  }

  close() {
    this.closed = true;
  }
}

/** Returns byte ranges that cover `size` bytes: { url, first, last } with `last` excluded. */
function ranges(url, size, step) {
  return Array.from({ length: Math.ceil(size / step) }, (_, i) => (
    { url, first: i * step, last: Math.min(size, (i + 1) * step) }));
}

/** Returns whether the start of a file contains a moof, a sidx, or a moov with mvex. */
function isFragmented(view) {
  const type = (at) => String.fromCharCode(...[4, 5, 6, 7].map((i) => view.getUint8(at + i)));
  const walk = (from, to, inside) => {
    for (let at = from; at + 8 <= to;) {
      const size = view.getUint32(at);
      if (['moof', 'sidx', 'mvex'].includes(type(at))) return true;
      if (type(at) === 'moov' && !inside && walk(at + 8, Math.min(to, at + size), true)) return true;
      if (size < 8) return false;
      at += size;
    }
    return false;
  };
  return walk(0, view.byteLength, false);
}
