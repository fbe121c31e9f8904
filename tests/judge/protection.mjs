// Protected films as their players read them: playlists, joined segments, frames that ffmpeg decrypts, and boxes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { get, text } from './support.mjs';

/** Returns media playlists as { url, isVideo, playlist }. */
export async function playlists(server, title) {
  const master = `${server.url}/${title}/.m3u8`;
  const uris = new Set((await text(master)).match(/[^"\n]+\.m3u8/g));
  return Promise.all([...uris].map(async (uri) => {
    const url = new URL(uri, master).href;
    const body = await text(url);
    return { url, isVideo: /video/.test(uri), isKeyFrames: uri.includes('keyframes'), body, lines: body.split('\n') };
  }));
}

/** Joins the init segment and media segments of a playlist into one file. */
export async function download({ url, lines }, file) {
  const init = lines.find((line) => line.startsWith('#EXT-X-MAP')).match(/URI="([^"]+)"/)[1];
  const uris = [init, ...lines.filter((line) => line && !line.startsWith('#'))];
  const bytes = await Promise.all(uris.map((uri) => get(new URL(uri, url))));
  fs.writeFileSync(file, Buffer.concat(bytes));
  return file;
}

/** Returns the hashes of all frames that ffmpeg decodes, as { out, err }. */
export function frameHashes(file, key) {
  const args = ['-v', 'error', ...(key ? ['-decryption_key', key] : []), '-i', '-', '-map', '0', '-fps_mode', 'passthrough', '-f', 'framemd5', '-'];
  // FFmpeg 5 looks all fragments of a seekable file up in the last one's senc.
  const run = spawnSync('ffmpeg', args, { input: fs.readFileSync(file), maxBuffer: 1 << 26 });
  return { out: run.stdout.toString().replace(/^#software.*\n/m, ''), err: run.stderr.toString() };
}

/** Returns boxes with this name as { body }, wherever they are. Only for names that media does not contain by chance. */
export function boxes(bytes, name, found = [], start = 0, end = bytes.length) {
  const containers = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'moof', 'traf', 'schi', 'sinf'];
  for (let at = start; at + 8 <= end;) {
    const size = bytes.readUInt32BE(at);
    const kind = bytes.toString('latin1', at + 4, at + 8);
    if (kind === name) found.push(bytes.subarray(at, at + size));
    const skipped = { stsd: 16, encv: 86, enca: 36 }[kind] ?? (containers.includes(kind) ? 8 : undefined);
    if (skipped) boxes(bytes, name, found, at + skipped, at + size);
    at += Math.max(size, 8);
  }
  return found;
}

export const base64 = (hex) => Buffer.from(hex, 'hex').toString('base64');
export const uuid = (hex) => hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
/** Returns a key of a CPIX document. */
export const contentKey = (kid, value, iv) => `<ContentKey kid="${uuid(kid)}"${iv ? ` explicitIV="${base64(iv)}"` : ''}><Data><Secret><PlainValue>${base64(value)}</PlainValue></Secret></Data></ContentKey>`;

// Slice headers of every kind: several slices, weighted prediction, long reference lists, CAVLC, fields, tiles in rows.
export const ENCODINGS = {
  'slices.mp4': ['libx264', '-x264-params', 'slices=4:weightp=2:bframes=3:ref=4:b-pyramid=strict'],
  'cavlc.mp4': ['libx264', '-profile:v', 'baseline', '-x264-params', 'ref=3:slices=2'],
  'fields.mp4': ['libx264', '-x264-params', 'interlaced=1:bframes=2:weightb=1:ref=4'],
  'no-deblock.mp4': ['libx264', '-x264-params', 'no-deblock=1:open-gop=1:bframes=3:b-pyramid=normal'],
  'hevc-slices.mp4': ['libx265', '-tag:v', 'hvc1', '-x265-params', 'log-level=none:slices=3:weightp=1:weightb=1:bframes=4:ref=4:b-pyramid=1'],
  'hevc-wavefront.mp4': ['libx265', '-tag:v', 'hvc1', '-x265-params', 'log-level=none:wpp=1:no-sao=1:no-deblock=1:open-gop=1:repeat-headers=1'],
};

/** Writes all encodings into a new folder. */
export function encode(folder) {
  fs.mkdirSync(folder);
  for (const [name, [codec, ...options]] of Object.entries(ENCODINGS)) {
    const run = spawnSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=640x360:r=25:d=4', '-vf', 'fade=in:0:50', '-c:v', codec, ...options, '-g', '50', '-pix_fmt', 'yuv420p', '-threads', '1', path.join(folder, name)], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stderr);
  }
}
