// Common Encryption, box by box, against the reference packager (Shaka Packager) with the same key, key id and IVs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ENCODINGS, contentKey, download, encode, playlists } from './protection.mjs';
import { library, root, serve, skip } from './support.mjs';

const packager = process.env.PACKAGER ?? path.join(root, 'target/packager/packager');
const missing = fs.existsSync(packager) ? undefined : 'reference packager: it is not installed; run scripts/packager.sh';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'headwater-protected-packager-'));
const encodings = path.join(folder, 'encodings');
const KID = '00112233445566778899aabbccddeeff';
const KEY = '000102030405060708090a0b0c0d0e0f';
const IV = '0f0e0d0c0b0a09080706050403020100';

before(() => {
  if (!missing) encode(encodings);
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

/** Boxes of which only one side has any, with the reason. */
const ONLY_THEIRS = {
  'moov/meta': 'the name and version of the packager',
  'moov/mvex/mehd': 'the duration of a file that is not segmented; manifests contain it',
  'moov/trak/edts': 'edit lists are in our timestamps (docs/decisions/0003-edit-lists-become-one-shift.md)',
  'moov/trak/mdia/minf/stbl/sgpd': 'pre-roll of audio, a hint that is not about encryption',
  'moof/traf/sbgp': 'the same',
  sidx: 'one reference to the fragment that follows; playlists and MPDs have the same',
};
const ONLY_OURS = {
  'moov/trak/mdia/minf/stbl/stsd/encv/pasp': 'a sample entry keeps all of its boxes',
  'moov/trak/mdia/minf/stbl/stsd/encv/btrt': 'the same',
  'moov/trak/mdia/minf/stbl/stsd/encv/fiel': 'the same',
  'moov/trak/mdia/minf/stbl/stsd/enca/btrt': 'the same',
};
/** Boxes without protection whose bytes differ: other brands, names of handlers, flags that default to 0, and times
 *  of audio, whose segments are cut elsewhere. packager.test.mjs and boxes.test.mjs are about them. */
const OTHER_BYTES = ['ftyp', 'styp', 'mvhd', 'tkhd', 'mdhd', 'hdlr', 'trex', 'mfhd', 'tfhd', 'tfdt', 'trun', 'esds'];

/** Bytes before the children of a box. */
const HEADS = { moov: 8, trak: 8, mdia: 8, minf: 8, dinf: 8, stbl: 8, mvex: 8, moof: 8, traf: 8, schi: 8, sinf: 8, stsd: 16, encv: 86, enca: 36 };

/** Returns the boxes as { kind, at, bytes, children }. */
function parse(bytes, start = 0, end = bytes.length) {
  const found = [];
  for (let at = start; at + 8 <= end;) {
    const [size, kind] = [bytes.readUInt32BE(at), bytes.toString('latin1', at + 4, at + 8)];
    assert.ok(size >= 8 && at + size <= end, `${kind} of ${size} bytes`);
    const children = HEADS[kind] ? parse(bytes, at + HEADS[kind], at + size) : [];
    found.push({ kind, at, bytes: bytes.subarray(at, at + size), children });
    at += size;
  }
  return found;
}

/** Returns the paths of all boxes. */
const paths = (list, above = '') => new Set(list.flatMap(({ kind, children }) => [above + kind, ...paths(children, `${above}${kind}/`)]));
const find = (list, ...kinds) => kinds.reduce((from, kind) => from.flatMap((box) => box.children).filter((box) => box.kind === kind), [{ children: list }]);
const hex = (list) => list.map((box) => box.bytes.toString('hex'));

/** Checks that all paths of one side are known to the other, or explained. */
function assertExplained(own, others, explained, side) {
  const unknown = [...own].filter((name) => !others.has(name)).filter((name) => {
    const known = Object.keys(explained).find((outer) => name === outer || name.startsWith(`${outer}/`));
    used.add(known);
    return !known;
  });
  assert.deepEqual(unknown, [], `boxes of ${side} only`);
}
const used = new Set();

/** Returns the boxes of a fragment and each sample's part of senc, and checks that saiz, saio and trun describe it. */
function readFragment(moof, mdat) {
  const [[traf], [trun]] = [find([moof], 'moof', 'traf'), find([moof], 'moof', 'traf', 'trun')];
  const [saiz, saio, senc] = ['saiz', 'saio', 'senc'].map((kind) => find([moof], 'moof', 'traf', kind)[0]);
  assert.ok(senc, 'no senc');
  assert.equal(Boolean(saio), Boolean(saiz), 'saiz and saio are a pair');
  // The media follows moof immediately.
  assert.equal(trun.bytes.readInt32BE(16), moof.bytes.length + 8, 'data offset of trun');
  const count = senc.bytes.readUInt32BE(12);
  assert.equal(trun.bytes.readUInt32BE(12), count, 'samples of trun and senc');
  const auxiliary = [];
  if (!saiz) {
    assert.equal(senc.bytes.length, 16, 'entries that nothing describes');
  } else {
    // Version 0 without flags: no auxiliary type, and an offset of 32 bits.
    assert.deepEqual([saiz.bytes.readUInt32BE(8), saio.bytes.readUInt32BE(8), saio.bytes.readUInt32BE(12), saiz.bytes.readUInt32BE(13)], [0, 0, 1, count]);
    assert.equal(saio.bytes.readUInt32BE(16), senc.at - moof.at + 16, 'saio is the place of the first entry');
    const [size, sizes] = [saiz.bytes[12], [...saiz.bytes.subarray(17)]];
    assert.equal(sizes.length, size ? 0 : count, 'sizes of saiz');
    for (let n = 0, at = 16; n < count; n += 1) {
      const length = size || sizes[n];
      auxiliary.push(senc.bytes.toString('hex', at, at + length));
      at += length;
      if (n === count - 1) assert.equal(at, senc.bytes.length, 'the sizes of saiz are those of senc');
    }
  }
  // What follows trun, in order, except for the sample groups.
  const order = traf.children.map(({ kind }) => kind).filter((kind) => kind !== 'sbgp');
  return { order, auxiliary, count, media: mdat.bytes.subarray(8), boxes: hex([saiz, saio, senc].filter(Boolean)), flags: senc.bytes.readUInt32BE(8) };
}

/** Returns all fragments. */
function readFragments(list) {
  const at = list.flatMap(({ kind }, n) => (kind === 'moof' ? [n] : []));
  return at.map((n) => readFragment(list[n], list[n + 1]));
}

function runPackager(out, file, kind, scheme, iv) {
  const stream = `in=${file},stream=${kind},init_segment=${out}/${kind}.mp4,segment_template=${out}/${kind}-$Number$.m4s`;
  const run = spawnSync(packager, [stream, '--enable_raw_key_encryption', '--protection_scheme', scheme, '--keys', `label=:key_id=${KID}:key=${KEY}`, '--iv', iv, '--clear_lead', '0', '--segment_duration', '2', '--protection_systems', 'Widevine,PlayReady', '--generate_static_live_mpd', '--mpd_output', `${out}/x.mpd`, '--quiet'], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  const number = (name) => Number(name.match(/-(\d+)/)[1]);
  const names = fs.readdirSync(out).filter((name) => name.startsWith(`${kind}-`)).sort((a, b) => number(a) - number(b));
  return Buffer.concat([`${kind}.mp4`, ...names].map((name) => fs.readFileSync(path.join(out, name))));
}

function compareInit(ours, theirs, kind, title) {
  const entry = kind === 'video' ? 'encv' : 'enca';
  const [[a], [b]] = [ours, theirs].map((list) => find(list, 'moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', entry));
  // sinf with frma, schm and tenc is the last box of the sample entry.
  assert.deepEqual([a, b].map((own) => own.children.at(-1).kind), ['sinf', 'sinf']);
  assert.deepEqual(hex(find([a], entry, 'sinf')), hex(find([b], entry, 'sinf')), 'sinf');
  // The packager sorts systems by their names, and Headwater as the settings do.
  const pssh = [ours, theirs].map((list) => hex(find(list, 'moov', 'pssh')).sort());
  assert.equal(pssh[0].length, 2);
  assert.deepEqual(pssh[0], pssh[1], 'pssh');
  assertExplained(paths(ours), paths(theirs), ONLY_OURS, `Headwater, ${title}`);
  assertExplained(paths(theirs), paths(ours), ONLY_THEIRS, `the packager, ${title}`);
  const all = (list) => list.flatMap((box) => [box, ...(box.children.length ? all(box.children) : [])]);
  const leaves = (list) => new Map(all(list).filter((box) => !(box.kind in HEADS) && !OTHER_BYTES.includes(box.kind)).map((box) => [box.kind, box.bytes.toString('hex')]));
  const [own, others] = [ours, theirs].map((list) => leaves(find(list, 'moov')));
  for (const [name, bytes] of own) {
    if (others.has(name) && name !== 'pssh') assert.equal(bytes, others.get(name), `${name} of the init segment`);
  }
}

function compareFragments(ours, theirs, kind, scheme) {
  const join = (list) => ({
    auxiliary: list.flatMap(({ auxiliary }) => auxiliary),
    media: Buffer.concat(list.map(({ media }) => media)),
    count: list.reduce((sum, { count }) => sum + count, 0),
  });
  const [a, b] = [join(ours), join(theirs)];
  assert.equal(a.count, b.count, 'samples');
  // IVs, subsamples, and the ciphertext of every sample.
  assert.deepEqual(a.auxiliary, b.auxiliary, 'entries of senc');
  assert.equal(a.auxiliary.length, kind === 'audio' && scheme === 'cbcs' ? 0 : a.count);
  assert.ok(a.media.equals(b.media), 'ciphertext');
  const shapes = (list) => new Set(list.map(({ order, flags }) => `${order} ${flags}`));
  assert.deepEqual(shapes(ours), shapes(theirs), 'boxes of traf, and flags of senc');
  if (kind === 'audio') return;
  // Only the segments of video are cut at the same places.
  assert.equal(ours.length, theirs.length);
  for (const [n, { boxes }] of ours.entries()) {
    const withoutPlace = ([saiz, , senc]) => [saiz, senc];
    // saio differs, because their trun and tfhd have other lengths. readFragment checks its place.
    assert.deepEqual(withoutPlace(boxes), withoutPlace(theirs[n].boxes), `saiz and senc of fragment ${n}`);
  }
}

const FILMS = [
  ...['avc.mp4', 'hevc.mp4', 'avc_open_gop.mp4', 'aac_51.mp4', 'ac3.mp4', 'eac3.mp4', 'opus.mp4', 'flac.mp4'].map((title) => [library, title]),
  // With wavefronts, version 3.8 of the packager ends slice headers before their entry points.
  ...Object.keys(ENCODINGS).filter((name) => name !== 'hevc-wavefront.mp4').map((title) => [encodings, title]),
];

for (const scheme of ['cbcs', 'cenc']) {
  for (const [place, title] of FILMS) {
    test(`${title}, ${scheme}: boxes and ciphertext equal those of the reference packager`, async (t) => {
      if (missing) return skip(t, missing);
      if (place === library && !fs.existsSync(path.join(place, title))) return skip(t, `fixture ${title}`);
      const document = path.join(folder, 'one.cpix');
      fs.writeFileSync(document, `<CPIX><ContentKeyList>${contentKey(KID, KEY, IV)}</ContentKeyList></CPIX>`);
      const server = await serve(place, '--segment', '2s', '--drm-keys', `cpix:${document}`, '--drm-scheme', scheme, '--drm-systems', 'widevine', '--drm-systems', 'playready');
      const all = (await playlists(server, title)).filter((playlist) => !playlist.isKeyFrames);
      for (const playlist of all) {
        const kind = playlist.isVideo ? 'video' : 'audio';
        const name = `${scheme}-${title}-${kind}`;
        const ours = parse(fs.readFileSync(await download(playlist, path.join(folder, `${name}.mp4`))));
        const fragments = readFragments(ours);
        // The first IV of cenc depends on the film and its key. From there, both count.
        const iv = scheme === 'cbcs' ? IV : fragments[0].auxiliary[0].slice(0, 16);
        const out = fs.mkdtempSync(path.join(folder, 'packager-'));
        const theirs = parse(runPackager(out, path.join(place, title), kind, scheme, iv));
        compareInit(ours, theirs, kind, title);
        compareFragments(fragments, readFragments(theirs), kind, scheme);
      }
      server.stop();
    });
  }
}

test('each explanation of a difference is needed', (t) => {
  if (missing) return skip(t, missing);
  const all = Object.keys({ ...ONLY_THEIRS, ...ONLY_OURS });
  assert.deepEqual(all.filter((name) => !used.has(name)), []);
});
