//! Pictures that an edit list hides although the first visible picture depends on them.
//!
//! Media Source Extensions drop every picture before the start of a film, and then all pictures
//! until the next key frame. HLS cannot hide pictures at all. After a trim inside a GOP, viewers
//! would therefore miss seconds of the film, or see what the edit list hides. To avoid both
//! effects, hidden pictures are presented at the start of the film, one after the other, for one
//! instant each.

use super::{Sample, SampleTable, SampleTableBuilder};
use std::ops::Range;

/// Maximum number of hidden pictures that are moved. At 30 pictures per second, this is more than
/// two minutes.
const HIDDEN_MAX: usize = 1 << 12;

/// Instants per second. One instant is one tick of the 90 kHz clock of transport streams.
const INSTANTS_PER_SECOND: u32 = 90_000;

/// Samples whose times were changed so that the hidden pictures are presented at the start.
#[derive(Debug)]
pub(super) struct RetimedSamples {
    pub samples: SampleTable,
    /// Number of hidden pictures.
    pub count: usize,
    /// Ticks from the original presentation time of the key frame to the start of the edit. Zero or
    /// negative if only leading pictures of the key frame are hidden.
    pub lead: i64,
    /// Ticks by which the first sample is decoded later than in the source.
    pub decode_shift: i64,
}

/// Copies the samples of `range` and moves the hidden pictures to `start`, in presentation order.
/// `start` is in ticks, on the same timeline as the decode times of `samples`.
///
/// Returns `None` if no time needs to change, or if too many pictures are hidden. Also returns
/// `None` if the first visible picture could not be presented before the second visible picture.
pub(super) fn retime_hidden_pictures(
    samples: &SampleTable,
    range: Range<u32>,
    start: i64,
    timescale: u32,
) -> Option<RetimedSamples> {
    let step = i64::from(timescale.div_ceil(INSTANTS_PER_SECOND));
    let mut found = find_hidden_pictures(samples, range.clone(), start)?;
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
    for (n, mut sample) in range.clone().zip(samples.iter_range(range.clone())) {
        let dts = decode(n, sample.dts as i64);
        if let Some((_, time)) = times.next_if(|(moved, _)| *moved == n) {
            sample.composition_offset = i32::try_from(time - dts).ok()?;
        }
        if n < shown {
            sample.duration = u32::try_from(step).ok()?;
        }
        builder.push(sample);
    }
    Some(RetimedSamples {
        samples: builder.finish(),
        count,
        lead: start - sample_presentation_time(&samples.get(range.start)),
        decode_shift: decode(range.start, samples.dts(range.start) as i64)
            - samples.dts(range.start) as i64,
    })
}

/// The hidden pictures and the first two visible pictures. A picture is given as its presentation
/// time in ticks and its sample number; the second visible picture only as its presentation time.
struct HiddenPictures {
    hidden: Vec<(i64, u32)>,
    first: (i64, u32),
    second: i64,
    /// First visible sample in decode order.
    shown: u32,
}

fn find_hidden_pictures(
    samples: &SampleTable,
    range: Range<u32>,
    start: i64,
) -> Option<HiddenPictures> {
    let offset_min = i64::from(samples.composition_offset_min());
    let (mut hidden, mut first, mut second) = (Vec::new(), None, i64::MAX);
    let mut shown = None;
    for (n, sample) in range.clone().zip(samples.iter_range(range)) {
        // From here on, no sample is presented before the second visible picture.
        if sample.dts as i64 + offset_min > second {
            break;
        }
        let time = sample_presentation_time(&sample);
        let earliest = first.map_or(i64::MAX, |(time, _)| time);
        // A sample with duration 0 counts as one tick long.
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
    Some(HiddenPictures {
        hidden,
        first: first?,
        second,
        shown: shown?,
    })
}

fn sample_presentation_time(sample: &Sample) -> i64 {
    sample.dts as i64 + i64::from(sample.composition_offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_avc_test_codec, build_track, build_video_track};

    fn times(samples: &SampleTable, shift: i64) -> Vec<i64> {
        let all = samples.iter_range(0..samples.len());
        all.map(|s| sample_presentation_time(&s) + shift).collect()
    }

    #[test]
    fn hidden_pictures_are_presented_at_the_start_for_an_instant_each() {
        // The pictures are presented every 512 ticks, from tick 2 * 512 on. The edit starts at tick
        // 15 * 512.
        let samples = build_video_track(2, 50, 100).samples;
        let start = 15 * 512;
        let moved = retime_hidden_pictures(&samples, 0..samples.len(), start, 12_800).unwrap();
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
        // The hidden pictures are decoded shortly before the edit starts, not at their original
        // decode times.
        assert!(moved.decode_shift > 9 * 512, "{}", moved.decode_shift);
    }

    #[test]
    fn a_picture_that_is_partly_hidden_starts_with_the_film() {
        let samples = build_video_track(2, 50, 100).samples;
        let moved = retime_hidden_pictures(&samples, 0..samples.len(), 1024 + 100, 12_800).unwrap();
        assert_eq!((moved.count, moved.lead, moved.decode_shift), (0, 100, 0));
        assert_eq!(times(&moved.samples, 0)[0], 1024 + 100);
        assert_eq!(times(&moved.samples, 0)[1..], times(&samples, 0)[1..]);
    }

    #[test]
    fn hidden_leading_pictures_are_no_trim_inside_a_gop() {
        // In units of 512 ticks, the leading pictures are presented at 1 and 2, and the key frame
        // at 3. The edit starts at 3.
        let rows = [
            (512, 1536, 9, true),
            (512, 0, 9, false),
            (512, 0, 9, false),
            (512, 512, 9, false),
        ];
        let samples = build_track(build_avc_test_codec(640, 360), 12_800, 0, &rows).samples;
        let moved = retime_hidden_pictures(&samples, 0..4, 1536, 12_800).unwrap();
        assert_eq!((moved.count, moved.lead), (2, 0));
        assert_eq!(times(&moved.samples, 0), [1538, 1536, 1537, 2048]);
    }

    #[test]
    fn pictures_stay_where_no_instant_is_short_enough() {
        // Each picture lasts one tick, so the hidden picture and the first visible picture do not
        // both fit before the second visible picture.
        let rows = [(1, 0, 9, true), (1, 0, 9, false), (1, 0, 9, false)];
        let samples = build_track(build_avc_test_codec(640, 360), 25, 0, &rows).samples;
        assert!(retime_hidden_pictures(&samples, 0..3, 1, 25).is_none());
        assert!(
            retime_hidden_pictures(&samples, 0..3, 0, 25).is_none(),
            "nothing is hidden"
        );
    }
}
