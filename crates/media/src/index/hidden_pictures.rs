//! Pictures that an edit list hides, and that the first visible picture depends on.
//!
//! Media Source Extensions drop every picture before the start of a film, and then all pictures
//! until the next key frame. HLS cannot hide pictures at all. A trim inside a GOP would therefore
//! cost seconds of the film, or show what the edit list hides. So hidden pictures are presented at
//! the start of the film, one after the other, for an instant each.

use super::{Sample, SampleTable, SampleTableBuilder};
use std::ops::Range;

/// Maximum number of hidden pictures that are moved: more than two minutes at 30 per second.
const HIDDEN_MAX: usize = 1 << 12;

/// Number of instants per second; an instant is one tick of a transport stream.
const INSTANTS_PER_SECOND: u32 = 90_000;

/// Samples with changed times: the pictures that the edit list hides are presented at the start.
#[derive(Debug)]
pub(super) struct MovedPictures {
    pub samples: SampleTable,
    /// Number of hidden pictures.
    pub count: usize,
    /// Ticks from the original presentation time of the key frame to the start. Zero or negative if
    /// only leading pictures of the key frame are hidden.
    pub lead: i64,
    /// Ticks by which moving the pictures delays the decoding of the first sample.
    pub decode_shift: i64,
}

/// Copies `range` of `samples` and presents its hidden pictures from `start` on, in the order of
/// their presentation. `start` is on the same timeline as the decode times of `samples`.
///
/// Returns `None` if no picture is hidden, or if the first visible picture would no longer be
/// presented before the second one.
pub(super) fn move_hidden(
    samples: &SampleTable,
    range: Range<u32>,
    start: i64,
    timescale: u32,
) -> Option<MovedPictures> {
    let step = i64::from(timescale.div_ceil(INSTANTS_PER_SECOND));
    let mut found = find_first_pictures(samples, range.clone(), start)?;
    found.hidden.sort_unstable();
    let count = found.hidden.len();
    let visible = found.first.0.max(start + count as i64 * step);
    if visible >= found.second || (count == 0 && visible == found.first.0) {
        return None;
    }
    let slots = (0..).map(|n| start + n * step);
    let hidden = found.hidden.iter().map(|(_, n)| *n).zip(slots);
    let mut times: Vec<(u32, i64)> = hidden.chain([(found.first.1, visible)]).collect();
    times.sort_unstable();
    let shown = found.shown;
    let shown_dts = samples.dts(shown) as i64;
    let decode = |n: u32, dts: i64| match n < shown {
        true => shown_dts - i64::from(shown - n) * step,
        false => dts,
    };
    let mut builder = SampleTableBuilder::default();
    builder.reserve(range.len());
    let mut times = times.into_iter().peekable();
    for (n, mut sample) in range.clone().zip(samples.range(range.clone())) {
        let dts = decode(n, sample.dts as i64);
        if let Some((_, time)) = times.next_if(|(moved, _)| *moved == n) {
            sample.composition_offset = i32::try_from(time - dts).ok()?;
        }
        if n < shown {
            sample.duration = u32::try_from(step).ok()?;
        }
        builder.push(sample);
    }
    Some(MovedPictures {
        samples: builder.finish(),
        count,
        lead: start - presented_at(&samples.get(range.start)),
        decode_shift: decode(range.start, samples.dts(range.start) as i64)
            - samples.dts(range.start) as i64,
    })
}

/// Hidden pictures and the first two visible ones, as presentation times and sample numbers.
struct FirstPictures {
    hidden: Vec<(i64, u32)>,
    first: (i64, u32),
    second: i64,
    /// First visible sample in decode order.
    shown: u32,
}

fn find_first_pictures(
    samples: &SampleTable,
    range: Range<u32>,
    start: i64,
) -> Option<FirstPictures> {
    let offset_min = i64::from(samples.composition_offset_min());
    let (mut hidden, mut first, mut second) = (Vec::new(), None, i64::MAX);
    let mut shown = None;
    for (n, sample) in range.clone().zip(samples.range(range)) {
        // No later sample is presented before the second visible picture.
        if sample.dts as i64 + offset_min > second {
            break;
        }
        let time = presented_at(&sample);
        let earliest = first.map_or(i64::MAX, |(time, _)| time);
        // A sample without a duration counts as one tick.
        if time + i64::from(sample.duration.max(1)) <= start {
            hidden.push((time, n));
            if hidden.len() > HIDDEN_MAX {
                return None;
            }
            continue;
        }
        shown = shown.or(Some(n));
        if time < earliest {
            (first, second) = (Some((time, n)), earliest);
        } else {
            second = second.min(time);
        }
    }
    Some(FirstPictures {
        hidden,
        first: first?,
        second,
        shown: shown?,
    })
}

fn presented_at(sample: &Sample) -> i64 {
    sample.dts as i64 + i64::from(sample.composition_offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{avc_codec, build_track, build_video_track};

    fn times(samples: &SampleTable, shift: i64) -> Vec<i64> {
        let all = samples.range(0..samples.len());
        all.map(|s| presented_at(&s) + shift).collect()
    }

    #[test]
    fn hidden_pictures_are_presented_at_the_start_for_an_instant_each() {
        // Presented at 2, 3, 4 … frames of 512 ticks; the edit starts with frame 15.
        let samples = build_video_track(2, 50, 100).samples;
        let start = 15 * 512;
        let moved = move_hidden(&samples, 0..samples.len(), start, 12_800).unwrap();
        assert_eq!((moved.count, moved.lead), (13, 13 * 512));
        let mut after = times(&moved.samples, moved.decode_shift);
        let before = times(&samples, 0);
        for (old, new) in before.iter().zip(&after) {
            let expected = match *old {
                old if old < start => start + (old - 1024) / 512,
                old if old == start => start + 13,
                old => old,
            };
            assert_eq!(*new, expected, "presented at {old} before");
        }
        after.sort_unstable();
        assert!(after.windows(2).all(|pair| pair[0] < pair[1]));
        // Decoding does not start earlier than the reordering needs.
        assert!(moved.decode_shift > 9 * 512, "{}", moved.decode_shift);
    }

    #[test]
    fn a_picture_that_is_partly_hidden_starts_with_the_film() {
        let samples = build_video_track(2, 50, 100).samples;
        let moved = move_hidden(&samples, 0..samples.len(), 1024 + 100, 12_800).unwrap();
        assert_eq!((moved.count, moved.lead, moved.decode_shift), (0, 100, 0));
        assert_eq!(times(&moved.samples, 0)[0], 1024 + 100);
        assert_eq!(times(&moved.samples, 0)[1..], times(&samples, 0)[1..]);
    }

    #[test]
    fn hidden_leading_pictures_are_no_trim_inside_a_gop() {
        // The key frame is presented at 3, its leading pictures at 1 and 2; the edit starts at 3.
        let rows = [
            (512, 1536, 9, true),
            (512, 0, 9, false),
            (512, 0, 9, false),
            (512, 512, 9, false),
        ];
        let samples = build_track(avc_codec(640, 360), 12_800, 0, &rows).samples;
        let moved = move_hidden(&samples, 0..4, 1536, 12_800).unwrap();
        assert_eq!((moved.count, moved.lead), (2, 0));
        assert_eq!(times(&moved.samples, 0), [1538, 1536, 1537, 2048]);
    }

    #[test]
    fn pictures_stay_where_no_instant_is_short_enough() {
        // One tick per picture: there is no room for a hidden one before the second visible one.
        let rows = [(1, 0, 9, true), (1, 0, 9, false), (1, 0, 9, false)];
        let samples = build_track(avc_codec(640, 360), 25, 0, &rows).samples;
        assert!(move_hidden(&samples, 0..3, 1, 25).is_none());
        assert!(
            move_hidden(&samples, 0..3, 0, 25).is_none(),
            "nothing is hidden"
        );
    }
}
