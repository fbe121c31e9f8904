//! A transport stream made in batches is the one that is made at once, and never longer than was said
//! before, whatever the samples hold.

use media::codec::{Codec, Media};
use media::plan::{AccessUnit, AccessUnits};
use media::ts::{Batches, wrap};

/// A sample entry of AVC, with small parameter sets.
const ENTRY: &[u8] = &[
    0, 0, 0, 112, b'a', b'v', b'c', b'1', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 1, 64, 0, 180, 0, 72, 0, 0, 0, 72, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 255, 255, 0,
    0, 0, 26, b'a', b'v', b'c', b'C', 1, 100, 0, 12, 255, 225, 0, 4, 103, 100, 0, 12, 1, 0, 3, 104,
    235, 227,
];

/// Five bytes say what NAL units are like, how much is written at a time, and how many samples there
/// are; then four bytes a sample say its length, time, and where it lies; the rest is the file.
pub fn run(data: &[u8]) {
    let Some((&[lengths, low, high, count, offset], rest)) = data.split_first_chunk() else {
        return;
    };
    let mut codec = Codec::parse(ENTRY).unwrap();
    let Media::Video(video) = &mut codec.media else {
        return;
    };
    let nal = video.nal.as_mut().unwrap();
    (nal.length_bytes, nal.hevc) = (1 + lengths % 4, lengths & 4 != 0);
    let (rows, file) = rest.split_at(rest.len().min(4 * usize::from(count)));
    let segment = segment(rows, u64::from(offset));
    let of_file = |range: &std::ops::Range<u64>| {
        let [start, end] = [range.start, range.end].map(|at| file.len().min(at as usize));
        &file[start..end]
    };
    let parts: Vec<&[u8]> = segment.ranges.iter().map(of_file).collect();
    let whole = wrap(&codec, &segment, &parts);
    let mut batches = Batches::new(&codec, &segment).unwrap();
    let mut out = vec![0x55; batches.len_max()];
    let mut len = 0;
    while let Some(batch) = batches.next(u64::from(u16::from_le_bytes([low, high]))) {
        let parts: Vec<&[u8]> = batch.ranges.iter().map(of_file).collect();
        match batches.write(&batch, &parts, &mut out[len..]) {
            Ok(more) => len += more,
            // Which fault is found first is another matter.
            Err(_) => {
                assert!(whole.is_err());
                return;
            }
        }
    }
    assert!(out[..len] == whole.unwrap(), "batches make other bytes");
}

/// Samples as tables name them: runs of the file, each of whole samples.
fn segment(rows: &[u8], mut at: u64) -> AccessUnits {
    let (mut dts, mut units, mut ranges) = (-900_000, Vec::new(), Vec::new());
    for row in rows.chunks_exact(4) {
        let size = u32::from(u16::from_le_bytes([row[0], row[1]]) % 2048);
        dts += i64::from(row[2]) * 500;
        let (skip, delay) = (u64::from(row[3] & 3), i64::from(row[3] >> 3) * 1800);
        units.push(AccessUnit {
            pts: dts + delay,
            dts,
            size,
            sync: row[3] & 4 != 0,
        });
        at += skip;
        let end = at + u64::from(size);
        match ranges.last_mut() {
            _ if size == 0 => {}
            Some(std::ops::Range { end: before, .. }) if *before == at => *before = end,
            _ => ranges.push(at..end),
        }
        at = end;
    }
    AccessUnits {
        file: 0,
        ranges,
        units,
    }
}
