// Common Media Client Data (CTA-5004, version 1): players describe their buffer and bitrates, so that a
// server can pace them. Sent as headers, because a query would give each request its own cache key.

const HEADERS = {
  'CMCD-Object': ['br', 'd', 'ot', 'tb'],
  'CMCD-Request': ['bl', 'mtp', 'nor', 'su'],
  'CMCD-Session': ['cid', 'sf', 'sid', 'st'],
  'CMCD-Status': ['bs'],
};
const TOKENS = ['ot', 'sf', 'st', 'e', 'sta'];
const CONTENT_ID_CHARS_MAX = 64;

/** Returns the identifiers of a new playback session: { sid, cid }. */
export function startSession(path) {
  return { sid: randomUuid(), cid: encodeURIComponent(path || '/').slice(0, CONTENT_ID_CHARS_MAX) };
}

/** `crypto.randomUUID` is missing on pages without TLS. */
function randomUuid() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  random[6] = (random[6] & 0x0f) | 0x40;
  random[8] = (random[8] & 0x3f) | 0x80;
  const hex = [...random].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Encodes values by key as request headers. Leaves out missing and false values. */
export function encodeHeaders(values) {
  const headers = Object.entries(HEADERS).map(([name, keys]) => [name, encodeKeys(values, keys)]);
  return Object.fromEntries(headers.filter(([, text]) => text));
}

/** Encodes values by key as a query parameter, for media that the browser requests itself. */
export const encodeQuery = (values) => `CMCD=${encodeURIComponent(encodeKeys(values, Object.keys(values).sort()))}`;

function encodeKeys(values, keys) {
  return keys.filter((key) => values[key] !== undefined && values[key] !== false && !Number.isNaN(values[key]))
    .map((key) => encodePair(key, values[key])).join(',');
}

/** Encodes values by key as a line of an event report (version 2). Arrays become lists. */
export function encodeEvent(values) {
  const { bg, ...others } = values;
  return encodeKeys({ ...others, bg: bg === false ? NO : bg }, Object.keys(values).sort());
}

/** The Boolean false of structured fields. Other false values are left out. */
const NO = Symbol('?0');

/** Strings of structured fields are printable ASCII. */
const quote = (text) => `"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`;

function encodePair(key, value) {
  if (value === true) return key;
  if (value === NO) return `${key}=?0`;
  if (Array.isArray(value)) return `${key}=(${value.map((item) => (typeof item === 'string' ? quote(item) : item)).join(' ')})`;
  return typeof value === 'string' && !TOKENS.includes(key) ? `${key}=${quote(value)}` : `${key}=${value}`;
}

/** Rounds bit/s to kbit/s, and to hundreds where the standard demands it. */
export const kilobits = (rate) => Math.round(rate / 1000);
export const roundToHundreds = (value) => Math.round(value / 100) * 100;
