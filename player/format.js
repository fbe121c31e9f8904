// URLs, formatted numbers, elements, and requests with readable errors.

import { RequestError, reasonOf } from './errors.js';

/** Encodes the path of a title as a URL relative to the page, and keeps its slashes. */
export function encodePath(path) {
  return path.split('/').map(encodeURIComponent).join('/');
}

/** Returns the URL of a resource of a title (`.json`, `.m3u8`, `<set>/…`). The root folder's path is ''. */
export function titleUrl(path, under = '') {
  const prefix = path === '' ? '' : encodePath(path) + (under === '' ? '' : '/');
  // Without the dot, a path that starts with two slashes would name another server.
  return new URL(`./${prefix}${under}`, new URL('.', location.href)).href;
}

/** Returns the hash that shows a title in the player. */
export function playHash(path, options = {}) {
  const query = new URLSearchParams(options).toString();
  return `#/play/${encodePath(path)}${query ? `?${query}` : ''}`;
}

/** Formats milliseconds as 1:02:03 or 2:03. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  const seconds = Math.round(ms / 1000);
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60].map((n) => String(n).padStart(2, '0'));
  const hours = Math.floor(seconds / 3600);
  return hours > 0 ? `${hours}:${parts.join(':')}` : `${Number(parts[0])}:${parts[1]}`;
}

/** Formats seconds to a tenth. */
export function seconds(value) {
  return Number.isFinite(value) ? `${value.toFixed(1)} s` : '–';
}

const scaled = (value, step, units) => {
  if (!Number.isFinite(value)) return '–';
  let unit = 0;
  while (value >= step && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toPrecision(3)} ${units[unit]}`;
};

/** Formats bytes in powers of 1024. */
export const bytes = (n) => scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);

/** Formats bits per second in powers of 1000. */
export const bitrate = (n) => scaled(n, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s']);

/** Names a language tag in the language of the browser: "eng" is "English". Empty if undetermined. */
export function language(tag) {
  if (!tag || tag === 'und') return '';
  try {
    return new Intl.DisplayNames(undefined, { type: 'language' }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** Names a codec: "avc1.64001F" is "AVC". */
export function codecName(codecs = '') {
  const names = {
    avc1: 'AVC', avc3: 'AVC', hvc1: 'HEVC', hev1: 'HEVC', dvh1: 'Dolby Vision', av01: 'AV1',
    vp08: 'VP8', vp09: 'VP9', vvc1: 'VVC', vvi1: 'VVC', mp4a: 'AAC', 'ac-3': 'AC-3',
    'ec-3': 'E-AC-3', Opus: 'Opus', opus: 'Opus', fLaC: 'FLAC', flac: 'FLAC', mp3: 'MP3',
  };
  if (codecs === 'mp4a.40.34' || codecs === 'mp4a.6B' || codecs === 'mp4a.69') return 'MP3';
  const code = codecs.split('.')[0];
  return names[code] ?? code;
}

/** Names a video size by its height, such as 540p. */
export const size = (level) => (level?.height ? `${level.height}p` : level?.label ?? '');

/** Creates an element from attributes, listeners (`onclick`) and children. Strings become text nodes. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Fetches a URL. A failed request throws a `RequestError`. */
export async function get(url, { signal, headers, method } = {}) {
  const response = await fetch(url, { signal, headers, method }).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new RequestError(0, { path: pathOf(url) });
  });
  if (response.ok) return response;
  throw new RequestError(response.status, { path: pathOf(url), reason: reasonOf(response.headers.get('Headwater-Error')) });
}

const pathOf = (url) => decodeURI(new URL(url).pathname);

/** Fetches and parses JSON. */
export const getJson = async (url) => (await get(url)).json();
