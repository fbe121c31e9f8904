// Two canvas drawings: the live plot of the last minute, and the segment sizes of a title as bars.

import { bitrate } from './format.js';

const WINDOW_S = 60;
const SAMPLE_MS = 250;
/** Space above the highest rate, so that its line stays below the frame. */
const HEADROOM = 1.3;

/** Scales a canvas to the screen. Returns its context, and its size in CSS pixels. */
function prepareCanvas(canvas) {
  const ratio = globalThis.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Returns the colours of the page, in light or dark mode. */
function colours(canvas) {
  const style = getComputedStyle(canvas);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

/** Returns the decades [low, high] (powers of ten) around some rates in bit/s, at least two. */
function decadesAround(rates) {
  const positive = rates.filter((rate) => rate > 0);
  const low = Math.floor(Math.log10(Math.max(1e3, Math.min(1e6, ...positive))));
  return [low, Math.max(low + 2, Math.ceil(Math.log10(Math.max(1, ...positive) * HEADROOM)))];
}

/** Plots buffer, bitrate, throughput and stalls over the last minute. */
export class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.samples = [];
  }

  /** Adds a sample { buffered, bitrate, throughput, stalled } and redraws. */
  add(sample) {
    this.samples.push({ at: performance.now(), ...sample });
    if (this.samples.length > (WINDOW_S * 1000) / SAMPLE_MS + 8) this.samples.shift();
    this.draw();
  }

  draw() {
    const { context, width, height } = prepareCanvas(this.canvas);
    const colour = colours(this.canvas);
    const now = performance.now();
    const box = { left: 34, right: width - 66, top: 10, bottom: height - 18 };
    const x = (at) => box.right - ((now - at) / 1000 / WINDOW_S) * (box.right - box.left);
    const scale = (top) => (value) => box.bottom - (Math.min(value, top) / top) * (box.bottom - box.top);
    const maximum = (name, least) => Math.max(least, ...this.samples.map((s) => s[name] ?? 0));
    const bufferTop = Math.max(20, Math.ceil(maximum('buffered', 0) / 10) * 10);
    // The throughput can be a thousand times the bitrate, so the axis of rates is logarithmic.
    const [low, high] = decadesAround(this.samples.flatMap((s) => [s.bitrate, s.throughput]));
    const rateScale = (rate) => box.bottom - ((Math.log10(Math.max(rate, 10 ** low)) - low) / (high - low)) * (box.bottom - box.top);
    this.axes(context, colour, box, bufferTop);
    this.rateAxis(context, box, low, high, rateScale);
    context.save();
    context.beginPath();
    context.rect(box.left, 0, box.right - box.left, height);
    context.clip();
    const line = (name, y) => {
      context.beginPath();
      this.samples.filter((s) => s[name] !== null && s[name] !== undefined)
        .forEach((s, i) => context[i === 0 ? 'moveTo' : 'lineTo'](x(s.at), y(s[name])));
    };
    context.fillStyle = colour('stall');
    for (const s of this.samples.filter((one) => one.stalled)) context.fillRect(x(s.at) - 1, box.top, 4, box.bottom - box.top);
    if (this.samples.length > 1) {
      line('buffered', scale(bufferTop));
      context.lineTo(x(this.samples.at(-1).at), box.bottom);
      context.lineTo(x(this.samples[0].at), box.bottom);
      context.globalAlpha = 0.25;
      context.fillStyle = colour('buffer');
      context.fill();
      context.globalAlpha = 1;
    }
    context.lineWidth = 2;
    context.lineJoin = 'round';
    for (const [name, y, shade] of [['buffered', scale(bufferTop), 'buffer'], ['throughput', rateScale, 'throughput'], ['bitrate', rateScale, 'bitrate']]) {
      line(name, y);
      context.strokeStyle = colour(shade);
      context.stroke();
    }
    context.restore();
  }

  axes(context, colour, box, bufferTop) {
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = colour('quiet');
    context.strokeStyle = colour('line');
    context.lineWidth = 1;
    for (const part of [0, 0.5, 1]) {
      const y = Math.round(box.bottom - part * (box.bottom - box.top)) + 0.5;
      context.beginPath();
      context.moveTo(box.left, y);
      context.lineTo(box.right, y);
      context.stroke();
      context.textAlign = 'right';
      context.fillText(`${bufferTop * part} s`, box.left - 6, y + 4);
    }
    context.textAlign = 'left';
    context.fillText('1 minute ago', box.left, box.bottom + 14);
    context.textAlign = 'right';
    context.fillText('now', box.right, box.bottom + 14);
  }

  /** Labels powers of ten of the rates, at most four. */
  rateAxis(context, box, low, high, y) {
    const step = Math.ceil((high - low) / 3);
    context.textAlign = 'left';
    for (let power = low; power <= high; power += step) context.fillText(bitrate(10 ** power).replace(/\.0+ /, ' '), box.right + 6, y(10 ** power) + 4);
  }
}

/** Draws a bar per segment: width is duration, height is bitrate. `buffered` ranges are highlighted. */
export function drawBars(canvas, rendition, { offset = 0, buffered = [], time = null } = {}) {
  const { context, width, height } = prepareCanvas(canvas);
  const colour = colours(canvas);
  const { segments, timescale } = rendition;
  if (segments.length === 0) return;
  const first = segments[0].t;
  const total = segments.at(-1).t + segments.at(-1).duration - first;
  const rate = (s) => s.bytes / Math.max(s.duration, 1);
  const top = segments.reduce((most, s) => Math.max(most, rate(s)), 0);
  for (const s of segments) {
    const left = ((s.t - first) / total) * width;
    const wide = (s.duration / total) * width;
    const tall = Math.max(2, (rate(s) / top) * height);
    const middle = (s.t + s.duration / 2) / timescale - offset;
    context.fillStyle = buffered.some(([from, to]) => from <= middle && middle <= to) ? colour('buffer') : colour('bar');
    context.fillRect(left, height - tall, wide > 3 ? wide - 1 : wide, tall);
  }
  if (time === null) return;
  context.fillStyle = colour('accent');
  context.fillRect((((time + offset) * timescale - first) / total) * width - 1, 0, 2, height);
}
