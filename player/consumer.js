// The consumer of "Optimizing single server streaming": it asks again and again for the next
// piece of a film, as long as less than 15 s are held, and appends what comes, or only counts it.
//
// Pieces are whole segments, or ranges of a fixed size. Ranges are of the title's own file where
// that is a fragmented MP4 (one SourceBuffer for picture and sound, as in the paper) or where
// nothing is appended; otherwise of our CMAF segments, since browsers take no progressive MP4.

import { bytes, get, titleUrl } from './format.js';
import { endOfBuffer, enough, inOrder, inWords, mimeOf, offsetOf, openSource, playable, settle, sleep, stepOver } from './source.js';

/** How much of a file tells whether it is fragmented; a progressive film's moov is larger. */
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
    this.report.step('open', append ? 'fetching and appending' : 'fetching only: nothing will be shown');
    for (const lane of this.lanes) {
      if (append) lane.buffer = this.source.addSourceBuffer(lane.mime);
      if (append) lane.buffer.timestampOffset = -lane.offset;
      this.run(lane);
    }
  }

  /** A lane for each of the title's own files, if that is wanted and can work; otherwise null. */
  async fileLanes() {
    if (this.options.mode !== 'ranges') return null;
    const chosen = ['video', 'audio'].map((kind) => this.title.renditions.find((r) => r.kind === kind)).filter(Boolean);
    const paths = chosen.map((r) => this.title.files?.[r.file]?.path ?? (this.kind === 'file' ? this.path : null));
    if (paths.includes(null)) return null;
    const lanes = await Promise.all([...new Set(paths)].map((path) => (
      this.fileLane(path, chosen.filter((_, i) => paths[i] === path)))));
    if (!this.options.append || lanes.every((lane) => lane.fragmented)) return lanes;
    this.report.step('open', 'MSE takes fragmented MP4 only: asking for ranges of the segments instead');
    return null;
  }

  /** What is asked of one file, and whether it is fragmented. */
  async fileLane(path, renditions) {
    const url = titleUrl(path);
    const head = await get(url, { headers: { Range: `bytes=0-${HEAD_BYTES - 1}` } });
    if (head.status !== 206) throw new Error('The server gave the whole file where a range was asked for.');
    const size = Number(head.headers.get('Content-Range').split('/')[1]);
    const fragmented = isFragmented(new DataView(await head.arrayBuffer()));
    this.report.step('open', `${path}: ${bytes(size)}, ${fragmented ? 'fragmented' : 'progressive'} MP4`);
    const mime = `${renditions[0].kind}/mp4; codecs="${renditions.map((r) => r.codecs).join(', ')}"`;
    const pieces = ranges(url, size, this.options.rangeBytes)
      .map((piece) => ({ ...piece, end: (piece.last / size) * this.duration, segment: 0 }));
    return { kind: 'file', mime, pieces, offset: 0, fetched: 0, fragmented };
  }

  segmentLanes() {
    return ['video', 'audio'].flatMap((kind) => {
      const listed = this.title.renditions.filter((r) => r.kind === kind && (!this.options.append || playable(r)));
      if (listed.length === 0) return [];
      const choices = inOrder(listed);
      const [rendition] = listed;
      const offset = offsetOf(this.title);
      return [{ kind, mime: mimeOf(rendition), choices, rendition, offset, fetched: 0, segment: -1, pieces: this.pieces(rendition, offset, 0) }];
    });
  }

  /** Init and segments from `first` on, each whole or in ranges; `end` in seconds of film. */
  pieces(rendition, offset, first) {
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

  /** From the next segment on, another quality. */
  quality(level) {
    const lane = this.lanes.find((l) => l.kind === 'video');
    if (!lane?.choices[level] || lane.choices[level] === lane.rendition) return;
    lane.rendition = lane.choices[level];
    const rest = lane.pieces.filter((piece) => piece.segment === lane.segment);
    lane.pieces = [...rest, ...this.pieces(lane.rendition, lane.offset, lane.segment + 1)];
  }

  /** Seconds held: what the browser has, or what would be left had it played since the start. */
  held(lane) {
    if (!this.options.append) return Math.max(0, lane.fetched - (performance.now() - this.began) / 1000);
    const time = this.video.currentTime;
    return endOfBuffer(lane.buffer.buffered, time) - time;
  }

  async run(lane) {
    try {
      while (!this.closed && lane.pieces.length > 0) {
        const [piece] = lane.pieces;
        const longer = Math.max(0, piece.end - lane.fetched);
        if (this.options.append) stepOver(this.video);
        const held = this.held(lane);
        if (enough(held, longer)) await sleep(100);
        else await this.consume(lane, lane.pieces.shift());
      }
      lane.done = true;
      if (this.closed || !this.lanes.every((l) => l.done)) return;
      this.report.step('end', `all ${this.report.requests} pieces fetched, ${bytes(this.report.bytes)}`);
      if (this.options.append && this.source.readyState === 'open') this.source.endOfStream();
    } catch (error) {
      if (!this.closed) this.report.fail(error.message, 'Load the title again, or choose another mode.');
    }
  }

  async consume(lane, piece) {
    const wanted = piece.last !== undefined ? { Range: `bytes=${piece.first}-${piece.last - 1}` } : {};
    const begun = performance.now();
    const answer = await get(piece.url, { headers: wanted });
    if (wanted.Range && answer.status !== 206) throw new Error(`The server ignored the range of ${piece.url}.`);
    const body = await answer.arrayBuffer();
    this.report.fetched(body.byteLength, performance.now() - begun, `${lane.kind} ${wanted.Range ?? piece.url.split('/').pop()}`);
    lane.segment = piece.segment;
    lane.fetched = Math.max(lane.fetched, piece.end);
    if (!this.options.append || this.closed) return;
    if (lane.rendition && mimeOf(lane.rendition) !== lane.mime && piece.end === 0) {
      lane.mime = mimeOf(lane.rendition);
      lane.buffer.changeType(lane.mime);
    }
    await settle(lane.buffer, () => lane.buffer.appendBuffer(body));
    this.report.step('append', `${lane.kind} holds ${inWords(lane.buffer.buffered)}`);
  }

  close() {
    this.closed = true;
  }
}

/** Byte ranges that cover `size` bytes: { url, first, last } with `last` excluded. */
function ranges(url, size, step) {
  return Array.from({ length: Math.ceil(size / step) }, (_, i) => (
    { url, first: i * step, last: Math.min(size, (i + 1) * step) }));
}

/** Whether a file's head shows fragments: a moof, a sidx, or a moov with mvex inside. */
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
