//! From a segment's access units to its TS or packed audio form.

use super::{Frame, TS_OFFSET_90K, can_ts, packed_audio, video_segment};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::plan::{AccessUnit, AccessUnits};

/// Wraps a segment: [`video_segment`] for what goes into TS, else [`packed_audio`].
///
/// `parts` are the bytes of [`AccessUnits::ranges`], in their order. [`TS_OFFSET_90K`] is added
/// to every time.
///
/// # Errors
/// Those of the two; `Truncated` where the parts are shorter than the units.
pub fn wrap(codec: &Codec, segment: &AccessUnits, parts: &[&[u8]]) -> Result<Vec<u8>> {
    if can_ts(codec) {
        return video_segment(codec, &frames(&segment.units, parts)?);
    }
    let first = segment.units.first().map_or(0, |unit| unit.pts);
    packed_audio(codec, offset(first), &slice(&segment.units, parts)?)
}

/// The units with their bytes, to be muxed.
///
/// # Errors
/// `Truncated` where the parts are shorter than the units.
pub(super) fn frames<'a>(units: &[AccessUnit], parts: &[&'a [u8]]) -> Result<Vec<Frame<'a>>> {
    let frame = |(unit, data): (&AccessUnit, &'a [u8])| Frame {
        pts: offset(unit.pts),
        dts: offset(unit.dts),
        sync: unit.sync,
        data,
    };
    Ok(units.iter().zip(slice(units, parts)?).map(frame).collect())
}

/// The bytes of each unit. None lies across two parts: parts are runs of whole samples.
fn slice<'a>(units: &[AccessUnit], parts: &[&'a [u8]]) -> Result<Vec<&'a [u8]>> {
    let mut samples = Vec::with_capacity(units.len());
    let mut parts = parts.iter();
    let mut rest: &[u8] = &[];
    for unit in units {
        let size = unit.size as usize;
        while rest.is_empty() && size > 0 {
            rest = parts.next().ok_or_else(short)?;
        }
        let (sample, after) = rest.split_at_checked(size).ok_or_else(short)?;
        samples.push(sample);
        rest = after;
    }
    Ok(samples)
}

fn short() -> Error {
    let what = "the file gave fewer bytes than its samples have";
    Error::new(crate::error::Kind::Truncated, what)
}

/// With the offset added; what is still negative is cut off at 0.
pub(super) fn offset(time: i64) -> u64 {
    time.saturating_add(TS_OFFSET_90K as i64).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::bytes;
    use crate::codec::vectors::{AVC, MP3};

    fn segment(sizes: &[u32]) -> AccessUnits {
        let unit = |size: &u32| AccessUnit {
            pts: -900,
            dts: -1800,
            size: *size,
            sync: true,
        };
        AccessUnits {
            file: 0,
            ranges: Vec::new(),
            units: sizes.iter().map(unit).collect(),
        }
    }

    #[test]
    fn samples_are_found_in_the_parts() {
        let codec = Codec::parse(&bytes(MP3)).unwrap();
        let wrapped = wrap(&codec, &segment(&[2, 0, 1, 3]), &[b"abc", b"", b"def"]).unwrap();
        assert_eq!(wrapped[73..], *b"abcdef");
        assert_eq!(wrapped[65..73], (TS_OFFSET_90K - 900).to_be_bytes());
        for parts in [&[&b"abc"[..]][..], &[], &[b"a", b"bcdef"]] {
            assert!(wrap(&codec, &segment(&[2, 0, 1, 3]), parts).is_err());
        }
    }

    #[test]
    fn video_goes_into_packets() {
        let codec = Codec::parse(&bytes(AVC)).unwrap();
        let wrapped = wrap(&codec, &segment(&[6]), &[b"\0\0\0\x02\x41\x07"]).unwrap();
        assert_eq!((wrapped[0], wrapped.len() % 188), (0x47, 0));
    }
}
