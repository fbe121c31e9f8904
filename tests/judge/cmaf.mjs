// Reads CMAF segments with mp4box.js, and checks what must hold for each of them.
import assert from 'node:assert/strict';
import { createFile } from 'mp4box';
import { get } from './support.mjs';

function open(bytes) {
  const file = createFile();
  let error = null;
  file.onError = (_, message) => { error = message; };
  const buffer = bytes.slice().buffer;
  buffer.fileStart = 0;
  file.appendBuffer(buffer, true);
  file.flush();
  assert.equal(error, null);
  return file;
}

/** Reads an init segment: one track, no samples, no edit list. */
export async function init(url) {
  const file = open(await get(url));
  const { moov } = file;
  assert.deepEqual(file.boxes.map((b) => b.type).filter((b) => b !== 'free'), ['ftyp', 'moov'], url);
  assert.equal(moov.traks.length, 1, `${url}: one track`);
  const [trak] = moov.traks;
  assert.equal(trak.edts, undefined, `${url}: an edit list`);
  assert.equal(trak.mdia.minf.stbl.stsz?.sample_count ?? 0, 0);
  assert.equal(moov.mvex.trexs[0].track_id, trak.tkhd.track_id);
  const brands = [file.ftyp.major_brand, ...file.ftyp.compatible_brands];
  assert.ok(brands.includes('cmfc'), `${url}: ${brands}`);
  return {
    timescale: trak.mdia.mdhd.timescale,
    trex: moov.mvex.trexs[0],
    track: trak.tkhd.track_id,
    codec: file.getInfo().tracks[0].codec,
  };
}

/** Reads a media segment: decode time, duration, presentation times of its first and earliest frame, and of the
 *  frame presented last, with its end. Checks that the samples fill its mdat exactly. */
export async function segment(url, head) {
  const bytes = await get(url);
  const file = open(bytes);
  const media = file.boxes.filter((b) => b.type === 'moof' || b.type === 'mdat');
  let at = null;
  let duration = 0;
  let earliest = Infinity;
  let shown = null;
  let last = { shown: -Infinity, end: -Infinity };
  let samples = 0;
  for (const moof of file.moofs) {
    assert.equal(moof.trafs.length, 1);
    const [traf] = moof.trafs;
    assert.equal(traf.tfhd.track_id, head.track);
    assert.ok(traf.tfhd.flags & 0x020000, `${url}: default-base-is-moof`);
    assert.ok(traf.tfdt, `${url}: tfdt`);
    const start = Number(traf.tfdt.baseMediaDecodeTime);
    if (at === null) at = start;
    assert.equal(start, at + duration, `${url}: fragments follow one another`);
    let filled = 0;
    for (const run of traf.truns) {
      for (let n = 0; n < run.sample_count; n += 1) {
        const cts = run.sample_composition_time_offset[n] ?? 0;
        assert.ok(cts >= 0, `${url}: a negative composition offset`);
        shown ??= at + cts;
        earliest = Math.min(earliest, at + duration + cts);
        const ticks = run.sample_duration[n] ?? (traf.tfhd.flags & 8 ? traf.tfhd.default_sample_duration : head.trex.default_sample_duration);
        const time = at + duration + cts;
        if (time > last.shown) last = { shown: time, end: time + ticks };
        duration += ticks;
        filled += run.sample_size[n] ?? (traf.tfhd.flags & 16 ? traf.tfhd.default_sample_size : head.trex.default_sample_size);
        samples += 1;
      }
    }
    const mdat = media[media.indexOf(moof) + 1];
    assert.equal(mdat.type, 'mdat');
    assert.equal(mdat.size - (mdat.hdr_size ?? 8), filled, `${url}: mdat is filled exactly`);
    assert.equal(traf.truns[0].data_offset, mdat.start + (mdat.hdr_size ?? 8) - moof.start, `${url}: data_offset`);
  }
  assert.ok(samples > 0, `${url}: no samples`);
  return { at, duration, shown, earliest, last, samples, bytes: bytes.length };
}
