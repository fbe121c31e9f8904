//! Checks that a transport stream muxed in batches equals the stream muxed at once. The length must
//! not exceed the declared maximum, whatever bytes the samples contain.

use media::codec::{Codec, TrackFormat};
use media::plan::{PlannedAccessUnit, SegmentAccessUnits};
use media::ts::{BatchedMuxer, mux_ts_or_packed_audio};

/// A sample entry of AVC, with small parameter sets.
const ENTRY: &[u8] = &[
    0, 0, 0, 112, b'a', b'v', b'c', b'1', 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 1, 64, 0, 180, 0, 72, 0, 0, 0, 72, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 255, 255, 0,
    0, 0, 26, b'a', b'v', b'c', b'C', 1, 100, 0, 12, 255, 225, 0, 4, 103, 100, 0, 12, 1, 0, 3, 104,
    235, 227,
];

/// The first five bytes select the form of NAL units, the batch size, the number of samples and the
/// offset of the first sample. Four bytes per sample select its length, times and position. The
/// rest is the file.
pub fn run(data: &[u8]) {
    let Some((&[lengths, low, high, count, offset], rest)) = data.split_first_chunk() else {
        return;
    };
    let mut codec = Codec::from_sample_entry(ENTRY).unwrap();
    let TrackFormat::Video(video) = &mut codec.format else {
        return;
    };
    let nal = video.nal.as_mut().unwrap();
    (nal.length_field_bytes, nal.is_hevc) = (1 + lengths % 4, lengths & 4 != 0);
    let (rows, file) = rest.split_at(rest.len().min(4 * usize::from(count)));
    let segment = build_segment(rows, u64::from(offset));
    let of_file = |range: &std::ops::Range<u64>| {
        let [start, end] = [range.start, range.end].map(|at| file.len().min(at as usize));
        &file[start..end]
    };
    let parts: Vec<&[u8]> = segment.source_ranges.iter().map(of_file).collect();
    let whole = mux_ts_or_packed_audio(&codec, &segment, &parts);
    let mut batches = BatchedMuxer::new(&codec, &segment).unwrap();
    let mut out = vec![0x55; batches.segment_len_max()];
    let mut len = 0;
    while let Some(batch) = batches.plan_next_batch(u64::from(u16::from_le_bytes([low, high]))) {
        let parts: Vec<&[u8]> = batch.source_ranges.iter().map(of_file).collect();
        match batches.write_batch(&batch, &parts, &mut out[len..]) {
            Ok(more) => len += more,
            // If the samples have several errors, the two muxers may report different errors.
            Err(_) => {
                assert!(whole.is_err());
                return;
            }
        }
    }
    assert!(out[..len] == whole.unwrap(), "batches give other bytes");
}

/// Builds a segment from rows of four bytes, one for each sample.
fn build_segment(rows: &[u8], mut at: u64) -> SegmentAccessUnits {
    let (mut dts, mut units, mut ranges) = (-900_000, Vec::new(), Vec::new());
    for row in rows.chunks_exact(4) {
        let size = u32::from(u16::from_le_bytes([row[0], row[1]]) % 2048);
        dts += i64::from(row[2]) * 500;
        let (skip, delay) = (u64::from(row[3] & 3), i64::from(row[3] >> 3) * 1800);
        units.push(PlannedAccessUnit {
            pts: dts + delay,
            dts,
            size,
            is_sync: row[3] & 4 != 0,
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
    SegmentAccessUnits {
        file_index: 0,
        source_ranges: ranges,
        units,
    }
}
