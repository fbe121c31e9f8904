// Measurements of the player: counters, the live plot, segment sizes, the log, and URLs.

import { bitrate, bytes, codecName, el, language, seconds, titleUrl } from './format.js';
import { Plot, drawBars } from './plot.js';
import { offsetOf } from './source.js';

const TILES = [
  ['buffered', 'Buffer', (s) => seconds(s.buffered)],
  ['bitrate', 'Bitrate', (s) => bitrate(s.bitrate ?? NaN)],
  ['throughput', 'Throughput', (s) => bitrate(s.throughput ?? NaN)],
  ['stalls', 'Stalls', describeStalls],
  ['startup', 'Start-up', (s) => (s.startup_ms === null ? '–' : `${s.startup_ms} ms`)],
  ['picture', 'Resolution', (s) => (s.width > 0 ? `${s.width} × ${s.height}` : '–')],
  ['dropped', 'Dropped frames', (s) => String(s.droppedFrames)],
  ['fetched', 'Downloaded', (s) => bytes(s.bytes)],
  ['requests', 'Requests', (s) => String(s.requests)],
];
const LINES_SHOWN = 400;

function describeStalls({ stalls, stalled_ms: stalledMs, waiting, waiting_ms: waitingMs }) {
  if (waiting) return `waiting · ${seconds(waitingMs / 1000)}`;
  return stalls === 0 ? 'none' : `${stalls} · ${seconds(stalledMs / 1000)}`;
}

export class Details {
  constructor() {
    this.tiles = TILES.map(([id, name, value]) => ({ value, dd: el('dd', { 'data-tile': id }, '–'), name }));
    const canvas = el('canvas', { class: 'plot', role: 'img', 'aria-label': 'Buffer, bitrate, throughput and stalls over the last minute' });
    this.plot = new Plot(canvas);
    this.bars = el('canvas', { class: 'segments', role: 'img', 'aria-label': 'Segment sizes; buffered segments are highlighted' });
    this.lines = el('ol', { class: 'lines', tabindex: '0', 'aria-label': 'Log of the player' });
    this.served = el('div', {});
    const legend = ['Buffer', 'Bitrate', 'Throughput', 'Stall'].map((word) => el('span', { class: `key ${word.toLowerCase()}` }, word));
    this.figures = [
      el('figure', {}, canvas, el('figcaption', {}, ...legend)),
      el('figure', {}, this.bars, el('figcaption', {}, 'Segment sizes (buffered segments highlighted)')),
    ];
    this.element = el('div', { class: 'details' },
      el('dl', { class: 'tiles' }, ...this.tiles.map((t) => el('div', {}, el('dt', {}, t.name), t.dd))),
      el('details', { open: matchMedia('(min-width: 60rem)').matches }, el('summary', {}, 'Log'), this.lines),
      el('details', {}, el('summary', {}, 'Tracks and URLs'), this.served));
  }

  /** Shows the renditions and URLs of a title. */
  describe(path, title) {
    this.title = title;
    const rows = title.renditions.map((r) => el('tr', {}, el('td', {}, r.name),
      el('td', {}, [codecName(r.codecs), r.height && `${r.width} × ${r.height}`, language(r.language)].filter(Boolean).join(' · ')),
      el('td', {}, bitrate(r.average_bandwidth ?? r.bandwidth)), el('td', {}, bitrate(r.bandwidth)), el('td', {}, String(r.segments.length))));
    const head = ['Rendition', 'Format', 'Average', 'Peak', 'Segments'].map((word) => el('th', { scope: 'col' }, word));
    const links = [['HLS', title.hls], ['DASH', title.dash], ['JSON', '.json']].filter(([, under]) => under).map(([word, under]) => {
      const url = titleUrl(path, under);
      const copy = el('button', { type: 'button', onclick: () => copyUrl(copy, url) }, 'Copy');
      return el('li', {}, el('a', { href: url }, word), ' ', el('code', {}, decodeURI(new URL(url).pathname)), copy);
    });
    const encryption = title.encryption ? [describeEncryption(title)] : [];
    const leftOut = (title.left_out ?? []).map(({ name, reason }) => `Left out: ${name}, because ${reason}`);
    const notes = [...encryption, ...leftOut, ...(title.notes ?? [])].map((note) => el('li', {}, String(note)));
    this.served.replaceChildren(el('ul', { class: 'links' }, ...links),
      notes.length > 0 ? el('ul', { class: 'notes' }, ...notes) : '',
      el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows))));
  }

  /** Shows the log of a new report. */
  follow(report) {
    this.lines.replaceChildren();
    this.plot.samples = [];
    // An engine that was replaced while it started may still report steps.
    report.addEventListener('step', ({ detail }) => this.line(detail), { signal: report.listeners.signal });
  }

  line({ ms, kind, text }) {
    const { lines } = this;
    const below = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    lines.append(el('li', { class: `step ${kind}` }, el('time', {}, (ms / 1000).toFixed(2)), el('b', {}, kind), el('span', {}, text)));
    while (lines.childElementCount > LINES_SHOWN) lines.firstElementChild.remove();
    if (below) lines.scrollTop = lines.scrollHeight;
  }

  /** Updates all measurements; called four times per second. */
  sample(state, video, report) {
    for (const tile of this.tiles) {
      const text = tile.value(state);
      if (tile.dd.textContent !== text) tile.dd.textContent = text;
    }
    if (!video.ended) this.plot.add({ buffered: state.buffered, bitrate: state.bitrate, throughput: report?.throughput ?? state.throughput, stalled: state.stalled || state.waiting !== null });
    const videos = this.title.renditions.filter((r) => r.kind === 'video');
    const shown = videos.find((r) => r.height === state.height && r.bandwidth === state.bitrate)
      ?? videos.find((r) => r.height === state.height) ?? videos[0] ?? this.title.renditions[0];
    const buffered = Array.from({ length: video.buffered.length }, (_, i) => [video.buffered.start(i), video.buffered.end(i)]);
    if (shown) drawBars(this.bars, shown, { buffered, time: state.currentTime, offset: offsetOf(this.title) });
  }
}

/** Without TLS, browsers offer no clipboard. */
async function copyUrl(button, url) {
  const copied = navigator.clipboard?.writeText(url) ?? Promise.reject(new Error('no clipboard'));
  await copied.then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Copying is blocked'; });
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

const SYSTEM_NAMES = { widevine: 'Widevine', playready: 'PlayReady', fairplay: 'FairPlay', clearkey: 'ClearKey' };

/** Returns the note of an encrypted title. */
function describeEncryption({ encryption, license, systems = [] }) {
  if (encryption === 'aes-128') return 'Segments are encrypted (aes-128). They play as HLS only.';
  const keys = license ? 'This server provides the keys (ClearKey).' : 'The keys are on a license server, which this page does not use.';
  const names = systems.map((system) => SYSTEM_NAMES[system] ?? `the system ${system}`);
  const players = names.length > 0 ? ` for ${new Intl.ListFormat('en').format(names)}` : '';
  return `Segments are encrypted (${encryption})${players}. ${keys}`;
}
