//! Presentation times of tracks, computed from their samples in decode order.
//!
//! A presentation time is the decode time plus the composition offset, in ticks of the media. Times
//! on the served timeline differ from these times by one constant per track.

use crate::index::{Sample, SampleTable, Track};
use crate::time::Time;

/// Tolerance at the end of an edit, in milliseconds. A sample that starts at most this much before
/// the end is not presented. The reason is that durations of edits are rounded to ticks of the
/// movie, which are usually milliseconds.
const EDIT_SLACK_MS: i64 = 1;

/// Number of samples that one step of a backward search reads.
const STEP_SAMPLES: u32 = 64;

/// Returns, for each sample number in `starts`, the earliest presentation time of all samples from
/// this sample on. `starts` must be ascending. The returned times never decrease, but adjacent
/// times may be equal.
///
/// If a returned time is less than the next returned time, the sample with this time comes before
/// the next start in decode order.
pub(super) fn earliest_presentation_times(samples: &SampleTable, starts: &[u32]) -> Vec<i64> {
    let nexts = starts.iter().skip(1).copied().chain([samples.len()]);
    let offset_min = samples.composition_offset_min();
    let mut times: Vec<i64> = starts
        .iter()
        .zip(nexts)
        .map(|(start, next)| earliest_presentation_between(samples, *start, next, offset_min))
        .collect();
    for n in (1..times.len()).rev() {
        times[n - 1] = times[n - 1].min(times[n]);
    }
    times
}

/// Returns the earliest presentation time of the samples from `first` on.
pub(super) fn earliest_presentation_after(samples: &SampleTable, first: u32) -> i64 {
    earliest_presentation_between(
        samples,
        first,
        samples.len(),
        samples.composition_offset_min(),
    )
}

/// Returns the earliest presentation time of the samples from `start` to `end`. Stops when the
/// smallest composition offset rules out an earlier presentation time for all remaining samples.
fn earliest_presentation_between(
    samples: &SampleTable,
    start: u32,
    end: u32,
    offset_min: i32,
) -> i64 {
    let mut dts = samples.dts(start) as i64;
    let mut earliest = i64::MAX;
    for n in start..end {
        if dts + i64::from(offset_min) >= earliest {
            break;
        }
        earliest = earliest.min(dts + i64::from(samples.composition_offset(n)));
        dts += i64::from(samples.duration(n));
    }
    earliest
}

/// Returns the end of the sample that is presented last, among the samples from `first` on.
///
/// Samples that the edit list hides at the end are ignored. Players and ffprobe compute the end of
/// a track in this way. The sum of decode durations differs from this end if the frame rate varies,
/// or if the first key frame is not presented first.
pub(super) fn last_sample_end(track: &Track, first: u32) -> i64 {
    let samples = &track.samples;
    let hidden_from = track.presentation_end.map_or(i64::MAX, |end| {
        end.saturating_sub(track.presentation_offset)
    });
    let slack = Time::from_ms(EDIT_SLACK_MS).ceil_to(track.timescale);
    let is_shown = |sample: &Sample| {
        let slack = slack.min(i64::from(sample.duration) / 2);
        sample_presentation_time(sample) < hidden_from.saturating_sub(slack)
    };
    let offset_max = i64::from(samples.composition_offset_max());
    let (mut until, mut last) = (samples.len(), None);
    while until > first {
        let from = until.saturating_sub(STEP_SAMPLES).max(first);
        let shown = samples.iter_range(from..until).filter(is_shown);
        last = last.max(
            shown
                .map(|s| (sample_presentation_time(&s), s.duration))
                .max(),
        );
        if last.is_some_and(|(time, _)| samples.dts(from) as i64 + offset_max < time) {
            break;
        }
        until = from;
    }
    // An edit that is shorter than the tolerance shows no sample. The track then ends one tick
    // after its earliest presentation time, so that its only segment is not empty.
    let (time, duration) = last.unwrap_or_else(|| (earliest_presentation_after(samples, first), 1));
    // A sample without a duration is treated as one tick long.
    time + i64::from(duration.max(1))
}

fn sample_presentation_time(sample: &Sample) -> i64 {
    sample.dts as i64 + i64::from(sample.composition_offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{arbitrary_video_track, build_avc_test_codec, build_track};
    use proptest::prelude::*;

    #[test]
    fn an_edit_that_ends_within_the_reordering_hides_the_last_pictures() {
        // The pictures are decoded in the order I P B B. The P picture is presented last, after the
        // end of the edit.
        let rows = [
            (100, 100, 9, true),
            (100, 300, 9, false),
            (100, 0, 9, false),
            (100, 0, 9, false),
        ];
        let mut track = build_track(build_avc_test_codec(640, 360), 1000, -100, &rows);
        assert_eq!(last_sample_end(&track, 0), 500);
        track.presentation_end = Some(300);
        assert_eq!(last_sample_end(&track, 0), 400);
        // If the edit's duration is rounded up by one tick, the P picture is still hidden.
        track.presentation_end = Some(301);
        assert_eq!(last_sample_end(&track, 0), 400);
    }

    #[test]
    fn a_track_whose_edit_shows_no_sample_ends_after_its_earliest_presentation_time() {
        let rows = [(3000, 3000, 9, true), (3000, 3000, 9, false)];
        let mut track = build_track(build_avc_test_codec(640, 360), 90_000, -3000, &rows);
        track.presentation_end = Some(45);
        assert_eq!(last_sample_end(&track, 0), 3001);
    }

    proptest! {
        #[test]
        fn bounds_equal_those_of_a_full_search(track in arbitrary_video_track()) {
            let samples = &track.samples;
            let starts: Vec<u32> = samples.sync_samples().collect();
            for (start, time) in starts.iter().zip(earliest_presentation_times(samples, &starts)) {
                prop_assert_eq!(samples.iter_range(*start..samples.len()).map(|s| sample_presentation_time(&s)).min(), Some(time));
                let last = samples.iter_range(*start..samples.len()).map(|s| (sample_presentation_time(&s), s.duration.max(1))).max();
                prop_assert_eq!(last.map(|(time, duration)| time + i64::from(duration)), Some(last_sample_end(&track, *start)));
            }
        }
    }
}
