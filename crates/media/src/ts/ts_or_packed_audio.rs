//! Conversion of a segment's access units to TS or packed audio.

use super::{MuxFrame, TIMESTAMP_OFFSET_90KHZ, can_mux_ts, mux_video_segment, pack_audio_segment};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::plan::{PlannedAccessUnit, SegmentAccessUnits};

/// Muxes a segment with [`mux_video_segment`] if the codec supports TS, otherwise with
/// [`pack_audio_segment`].
///
/// `parts` are the bytes of [`SegmentAccessUnits::source_ranges`], in order.
/// [`TIMESTAMP_OFFSET_90KHZ`] is added to every time.
///
/// # Errors
/// The errors of both functions, and `Truncated` if the parts are shorter than the units.
pub fn mux_ts_or_packed_audio(
    codec: &Codec,
    segment: &SegmentAccessUnits,
    parts: &[&[u8]],
) -> Result<Vec<u8>> {
    if can_mux_ts(codec) {
        return mux_video_segment(codec, &slice_frames(&segment.units, parts)?);
    }
    let first = segment.units.first().map_or(0, |unit| unit.pts);
    pack_audio_segment(
        codec,
        offset_timestamp(first),
        &slice_sample_bytes(&segment.units, parts)?,
    )
}

/// Combines units with their bytes into frames.
///
/// # Errors
/// `Truncated` if the parts are shorter than the units.
pub(super) fn slice_frames<'a>(
    units: &[PlannedAccessUnit],
    parts: &[&'a [u8]],
) -> Result<Vec<MuxFrame<'a>>> {
    let frame = |(unit, data): (&PlannedAccessUnit, &'a [u8])| MuxFrame {
        pts: offset_timestamp(unit.pts),
        dts: offset_timestamp(unit.dts),
        is_sync: unit.is_sync,
        data,
    };
    Ok(units
        .iter()
        .zip(slice_sample_bytes(units, parts)?)
        .map(frame)
        .collect())
}

/// Returns the bytes of each unit. Parts contain whole samples, so each unit is in a single part.
fn slice_sample_bytes<'a>(
    units: &[PlannedAccessUnit],
    parts: &[&'a [u8]],
) -> Result<Vec<&'a [u8]>> {
    let mut samples = Vec::with_capacity(units.len());
    let mut parts = parts.iter();
    let mut rest: &[u8] = &[];
    for unit in units {
        let size = unit.size as usize;
        while rest.is_empty() && size > 0 {
            rest = parts.next().ok_or_else(missing_bytes_error)?;
        }
        let (sample, after) = rest
            .split_at_checked(size)
            .ok_or_else(missing_bytes_error)?;
        samples.push(sample);
        rest = after;
    }
    Ok(samples)
}

fn missing_bytes_error() -> Error {
    let message = "the file returned fewer bytes than its samples have";
    Error::new(crate::error::ErrorKind::Truncated, message)
}

/// Adds [`TIMESTAMP_OFFSET_90KHZ`] to a time. A negative sum becomes 0.
pub(super) fn offset_timestamp(time: i64) -> u64 {
    time.saturating_add(TIMESTAMP_OFFSET_90KHZ as i64).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::sample_entry_vectors::{AVC, MP3};
    use crate::codec::tests::decode_hex;

    fn build_segment(sizes: &[u32]) -> SegmentAccessUnits {
        let unit = |size: &u32| PlannedAccessUnit {
            pts: -900,
            dts: -1800,
            size: *size,
            is_sync: true,
        };
        SegmentAccessUnits {
            file_index: 0,
            source_ranges: Vec::new(),
            units: sizes.iter().map(unit).collect(),
        }
    }

    #[test]
    fn samples_are_found_in_the_parts() {
        let codec = Codec::from_sample_entry(&decode_hex(MP3)).unwrap();
        let wrapped = mux_ts_or_packed_audio(
            &codec,
            &build_segment(&[2, 0, 1, 3]),
            &[b"abc", b"", b"def"],
        )
        .unwrap();
        assert_eq!(wrapped[73..], *b"abcdef");
        assert_eq!(
            wrapped[65..73],
            (TIMESTAMP_OFFSET_90KHZ - 900).to_be_bytes()
        );
        for parts in [&[&b"abc"[..]][..], &[], &[b"a", b"bcdef"]] {
            assert!(mux_ts_or_packed_audio(&codec, &build_segment(&[2, 0, 1, 3]), parts).is_err());
        }
    }

    #[test]
    fn video_goes_into_packets() {
        let codec = Codec::from_sample_entry(&decode_hex(AVC)).unwrap();
        let wrapped =
            mux_ts_or_packed_audio(&codec, &build_segment(&[6]), &[b"\0\0\0\x02\x41\x07"]).unwrap();
        assert_eq!((wrapped[0], wrapped.len() % 188), (0x47, 0));
    }
}
