// The player view: a video element, an engine that feeds it, and live measurements.
//
// An engine is a module of engines/ that exports `name`, `variants` and
// `start({ video, path, kind, title, report, variant, options, session })`, which resolves to
//   levels() [{ label, height, bitrate }], level(), quality(index | 'auto'),
//   audios() [{ label, language }], audio(), chooseAudio(index),
//   texts(), text(), chooseText(index | -1)   if it supports subtitles,
//   throughput() in bit/s                      if it measures it,
//   close().
// An engine may export `encrypted`: the variants that play titles encrypted with AES-128, and
// `protectedVariants`: those that play titles with Common Encryption, if the server provides keys.

import * as mse from './engines/mse.js';
import * as hls from './engines/hls.js';
import * as dash from './engines/dash.js';
import * as shaka from './engines/shaka.js';
import * as native from './engines/native.js';
import * as consumer from './engines/consumer.js';
import { Controls } from './controls.js';
import { Details } from './details.js';
import { el, getJson, playHash, titleUrl } from './format.js';
import { Report } from './report.js';
import { describeShortcuts, listenForShortcuts } from './shortcuts.js';
import { MediaSourceClass } from './source.js';
import { startSession } from './cmcd.js';
import { SessionEvents } from './cmcd_events.js';

export const ENGINES = { mse, hls, dash, shaka, native, consumer };
const SAMPLE_MS = 250;

export class PlayView {
  constructor(main, path, options) {
    Object.assign(this, { main, path, options, engine: null, startNumber: 0, openError: null });
    this.video = document.createElement('video');
    this.waiting = el('p', { class: 'waiting', role: 'status' });
    this.stage = el('div', { class: 'stage' }, this.video, this.waiting);
    this.alert = el('div', { role: 'alert' });
    this.controls = new Controls(ENGINES, (name, value) => this.choose(name, value));
    this.details = new Details();
    this.listeners = new AbortController();
  }

  /** Loads T/.json, shows the view, and starts the engine that the address names. */
  async open() {
    document.title = `${this.path.split('/').pop() || 'Headwater'} · Headwater`;
    this.title = await getJson(titleUrl(this.path, '.json'));
    this.kind = await this.kindOfTitle();
    if (this.closed) return;
    const name = this.title.name || this.path || 'All files';
    document.title = `${name} · Headwater`;
    this.main.replaceChildren(
      el('div', { class: 'row' }, el('a', { class: 'back', href: '#/', 'aria-label': 'Back to the library' }, '‹'), el('h1', {}, name)),
      el('div', { class: 'view' },
        el('div', { class: 'watch' }, this.stage, this.alert, this.controls.element, ...this.details.figures, describeShortcuts()),
        this.details.element),
    );
    this.details.describe(this.path, this.title);
    const { player } = this.options;
    const first = MediaSourceClass ? ['mse', 'hls'] : ['native'];
    const engine = [player, ...first, 'native'].find((name) => this.variants(name));
    if (!engine) throw Object.assign(new Error('This browser cannot play this film, because it is encrypted.'), { advice: 'Use a browser that supports Media Source Extensions.' });
    listenForShortcuts(this, this.listeners.signal);
    await this.start(engine, this.options.variant);
  }

  /** Returns the variants of an engine that play this title, or undefined if there are none. */
  variants(name) {
    const engine = ENGINES[name];
    if (!this.title.encryption) return engine?.variants;
    const playing = this.title.encryption === 'aes-128' ? engine?.encrypted : engine?.protectedVariants;
    return playing && engine.variants.filter(({ id }) => playing.includes(id));
  }

  /** Returns 'file' or 'folder' from T/.json. Older servers omit it: then only a file has a body. */
  async kindOfTitle() {
    if (this.title.kind) return this.title.kind;
    if (this.path === '') return 'folder';
    const response = await fetch(titleUrl(this.path), { method: 'HEAD' }).catch(() => null);
    return response?.ok ? 'file' : 'folder';
  }

  /** Starts an engine on a new video element, at a position in seconds. */
  async start(name, variant, at = Number(this.options.t) || 0) {
    this.stop();
    const thisStart = ++this.startNumber;
    const variants = this.variants(name);
    this.startAt = at;
    this.name = name;
    this.variant = variants.find((v) => v.id === variant)?.id ?? variants[0]?.id;
    this.replaceVideo();
    const report = new Report(this.video);
    this.report = report;
    this.details.follow(report);
    report.addEventListener('fail', ({ detail }) => thisStart === this.startNumber && this.showError(detail));
    this.video.addEventListener('playing', () => this.alert.replaceChildren());
    this.controls.show(this);
    report.step('start', `${ENGINES[name].name}${this.variant ? `, ${this.variant}` : ''}`);
    try {
      const { video, path, kind, title, options } = this;
      const session = startSession(path);
      this.events = new SessionEvents(video, report, session);
      this.tick();
      this.timer = setInterval(() => this.tick(), SAMPLE_MS);
      const engine = await ENGINES[name].start({ video, path, kind, title, report, variant: this.variant, options, session });
      if (thisStart !== this.startNumber) { engine.close(); return; }
      this.engine = engine;
      if (this.options.quality !== undefined) this.choose('quality', this.options.quality);
      if (at > 0 && Number.isFinite(at)) this.video.currentTime = at;
      if (this.options.autoplay === '0') report.idle = true;
      else if (!engine.silent) this.play();
    } catch (error) {
      if (thisStart === this.startNumber && !report.hasFailed) report.fail(error.message, error.advice, error.detail);
    }
    if (thisStart !== this.startNumber) return;
    this.stage.classList.toggle('silent', this.engine?.silent === true);
    this.tick();
  }

  replaceVideo() {
    const { muted, volume } = this.video;
    const video = el('video', { controls: true, playsinline: true, tabindex: '0' });
    video.muted = this.options.muted === '1' || muted;
    video.volume = volume;
    this.video.replaceWith(video);
    this.video = video;
  }

  /** Browsers may refuse to start audio before the viewer has interacted with the page. */
  async play() {
    await this.video.play().catch((error) => {
      this.report.idle = true;
      if (error.name === 'NotAllowedError') this.report.step('paused', 'press play: the browser does not start audio by itself');
      else if (error.name !== 'AbortError') this.report.step('play', error.message);
    });
  }

  /** Applies a choice of the viewer or of a script. */
  choose(name, value) {
    const at = this.position();
    const number = value === 'auto' ? value : Number(value);
    if (name === 'player') return this.restart(value, undefined, at);
    if (name === 'variant') return this.restart(this.name, value, at);
    if (name === 'append' || name === 'range') {
      this.options[name] = value;
      return this.restart(this.name, this.variant, 0);
    }
    if (!this.engine) return undefined;
    if (!this.hasOption(name, number)) {
      this.report.step(name, `there is no option ${value}`);
      return undefined;
    }
    this.report.step(name, value === 'auto' ? 'automatic' : `option ${value}`);
    if (name === 'quality') { this.quality = number; this.engine.quality(number); }
    if (name === 'audio') this.engine.chooseAudio(number);
    if (name === 'text') this.engine.chooseText?.(number);
    return undefined;
  }

  /** Returns whether the engine offers an option. Addresses and scripts may contain any. */
  hasOption(name, number) {
    const { levels, audios, texts } = this.state();
    if (name === 'quality' && (number === 'auto' || levels.length === 0)) return true;
    const count = { quality: levels, audio: audios, text: texts }[name].length;
    return Number.isInteger(number) && number >= (name === 'text' ? -1 : 0) && number < count;
  }

  /** Returns the position of the viewer. An engine that could not start has not reached it. */
  position() {
    if (!this.engine) return this.startAt;
    return this.video.ended ? 0 : this.video.currentTime;
  }

  restart(name, variant, at) {
    // The controls stay on the page until the next view has loaded.
    if (this.closed) return undefined;
    this.quality = 'auto';
    const { append, range } = this.options;
    const query = { player: name, ...(variant && { variant }), ...(append && { append }), ...(range && { range }) };
    history.replaceState(null, '', playHash(this.path, query));
    delete this.options.quality;
    return this.start(name, variant, at);
  }

  showError({ what, advice }) {
    const retry = el('button', { type: 'button', onclick: () => this.restart(this.name, this.variant, this.position()) }, 'Try again');
    this.alert.replaceChildren(el('p', { class: 'bad' }, what, advice && el('span', {}, ` ${advice}`), ' ', retry));
  }

  tick() {
    const state = this.state();
    const { waiting } = state;
    if (this.waiting.textContent !== (waiting ?? '')) this.waiting.textContent = waiting ?? '';
    this.controls.update(this.engine, this.quality ?? 'auto', state);
    this.details.sample(state, this.video, this.report);
    const { bitrate, throughput, levels } = state;
    this.events?.update({ bitrate, throughput, topBitrate: Math.max(...levels.map((level) => level.bitrate)) });
  }

  state() {
    const { video, engine, report } = this;
    const levels = engine?.levels() ?? [];
    const level = engine?.level() ?? -1;
    const wait = engine?.silent ? null : report?.wait() ?? null;
    return {
      title: this.path, engine: this.name ?? null, variant: this.variant ?? null,
      playing: !video.paused && !video.ended && video.readyState > 2,
      ended: video.ended, currentTime: video.currentTime,
      duration: Number.isFinite(video.duration) ? video.duration : 0,
      buffered: report?.buffered() ?? 0,
      stalls: report?.stalls ?? 0, stalled_ms: report?.stalledMs() ?? 0, stalled: report?.stalledSince != null,
      waiting: wait?.text ?? null, waiting_ms: Math.round(wait?.ms ?? 0),
      errors: report?.errors.map((e) => e.what) ?? [this.openError].filter(Boolean), warnings: report?.warnings ?? 0,
      bitrate: levels[level]?.bitrate ?? null,
      throughput: engine?.throughput?.() || report?.throughput || null,
      levels, level, audios: engine?.audios() ?? [], audio: engine?.audio() ?? -1,
      texts: engine?.texts?.() ?? [], text: engine?.text?.() ?? -1,
      width: video.videoWidth, height: video.videoHeight,
      droppedFrames: report?.droppedFrames() ?? 0, startup_ms: report?.startup_ms ?? null,
      requests: report?.requests ?? 0, bytes: report?.bytes ?? 0,
    };
  }

  stop() {
    clearInterval(this.timer);
    this.events?.close();
    this.events = null;
    this.alert.replaceChildren();
    this.engine?.close();
    this.engine = null;
    this.report?.close();
  }

  close() {
    this.closed = true;
    this.listeners.abort();
    this.startNumber += 1;
    this.stop();
    this.video.pause();
    this.video.removeAttribute('src');
    this.video.load();
  }
}
