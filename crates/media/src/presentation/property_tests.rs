//! Tests of properties that every presentation has, with arbitrary legal titles.

use super::*;
use crate::fixtures::arbitrary_title;
use crate::time::gcd;
use proptest::prelude::*;

fn build_title(files: Vec<Arc<Index>>, segment_ms: u32) -> Option<Presentation> {
    match Presentation::new(
        files,
        &PackagingRules {
            segment_duration_ms: segment_ms,
        },
    ) {
        Ok(title) => Some(title),
        // Some generated titles are refused, because their tracks differ too much in length, or
        // have no duration or no sync samples.
        Err(error) => {
            let expected = ["differ too much", "has a duration", "no sync samples"];
            assert!(
                expected
                    .iter()
                    .any(|message| error.message.contains(message)),
                "{error}"
            );
            None
        }
    }
}

/// Returns the presentation time of a segment's first sample, in nanoseconds.
fn segment_first_sample_nanos(title: &Presentation, rendition: &Rendition, n: usize) -> i64 {
    let track = title.track(rendition);
    let sample = track.samples.get(rendition.segment_cuts[n]);
    let composition_offset =
        i64::from(sample.composition_offset) + i64::from(rendition.composition_shift);
    Time::new(
        rendition.start_ticks + sample.dts as i64 + composition_offset,
        track.timescale,
    )
    .as_nanos()
}

/// Returns the decode time of the first sample, which is the earliest presentation time minus the
/// decode delay.
fn first_decode_time(title: &Presentation, rendition: &Rendition) -> Time {
    let track = title.track(rendition);
    let start = title.segment_start(rendition, 0) as i64;
    Time::new(start - i64::from(rendition.decode_delay), track.timescale)
}

/// Returns the earliest presentation time of all served samples.
fn first_presentation_time(title: &Presentation, rendition: &Rendition) -> Time {
    let track = title.track(rendition);
    let served = track
        .samples
        .iter_range(rendition.segment_cuts[0]..u32::MAX);
    let shown = served.map(|s| {
        s.dts as i64 + i64::from(s.composition_offset) + i64::from(rendition.composition_shift)
    });
    let earliest = shown.min().unwrap_or(0) + rendition.start_ticks;
    Time::new(earliest, track.timescale)
}

/// Returns half the mean duration of a presented picture, rounded up, in nanoseconds.
fn half_frame_nanos(title: &Presentation, rendition: &Rendition) -> i64 {
    let track = title.track(rendition);
    let last = rendition.segment_count();
    let ticks = title.segment_start(rendition, last) - title.segment_start(rendition, 0);
    let frames = track.samples.len() - rendition.segment_cuts[0];
    Time::new(ticks as i64, track.timescale).as_nanos() / i64::from(frames) / 2 + 1
}

proptest! {
    #[test]
    fn segments_tile_every_rendition(files in arbitrary_title(), ms in 1u32..8000) {
        let Some(title) = build_title(files, ms) else { return Ok(()) };
        for rendition in &title.renditions {
            let track = title.track(rendition);
            let cuts = &rendition.segment_cuts;
            prop_assert!(cuts.len() >= 2);
            prop_assert!(cuts.windows(2).all(|cut| cut[0] < cut[1]));
            prop_assert_eq!(cuts[cuts.len() - 1], track.samples.len());
            let mut time = title.segment_start(rendition, 0);
            for n in 0..rendition.segment_count() {
                prop_assert!(track.codec.audio().is_some() || track.samples.is_sync(cuts[n]));
                prop_assert_eq!(title.segment_start(rendition, n), time);
                prop_assert_eq!(title.find_segment(rendition, time), Some(n));
                let shown = (cuts[n]..cuts[n + 1]).map(|s| title.presentation_time(rendition, s));
                prop_assert_eq!(shown.min(), Some(time));
                let ticks = title.segment_duration_ticks(rendition, n);
                prop_assert!(ticks > 0);
                time += ticks;
                prop_assert!(n + 1 == rendition.segment_count() || title.find_segment(rendition, time - 1) == (ticks == 1).then_some(n));
            }
            prop_assert_eq!(title.find_segment(rendition, time), None);
            let ends = (cuts[0]..track.samples.len())
                .map(|s| (title.presentation_time(rendition, s), track.samples.duration(s).max(1)));
            let end = ends.max().map(|(shown, ticks)| shown + u64::from(ticks));
            match track.presentation_end {
                None => prop_assert_eq!(end, Some(time)),
                Some(_) => prop_assert!(end >= Some(time)),
            }
        }
    }

    #[test]
    fn all_tracks_move_by_one_exact_time(files in arbitrary_title()) {
        let Some(title) = build_title(files, 2000) else { return Ok(()) };
        let shifts = title.renditions.iter().map(|rendition| {
            let track = title.track(rendition);
            let shift = i64::from(rendition.composition_shift);
            Time::new(rendition.start_ticks - track.presentation_offset + shift, track.timescale)
        });
        let shifts: Vec<Time> = shifts.collect();
        prop_assert!(shifts.windows(2).all(|pair| pair[0] == pair[1]));
        let per_second = title.renditions.iter().fold(0, |g, r| gcd(g, title.track(r).timescale));
        let least = 1_000_000_000 / i64::from(per_second);
        let decoded = title.renditions.iter().map(|r| first_decode_time(&title, r).as_nanos()).min();
        // The longest decode delay is added to all times only if the presentationTimeOffset would
        // otherwise be 0.
        let delay = title.renditions.iter().map(|r| Time::new(r.decode_delay.into(), title.track(r).timescale));
        let delay = delay.max().unwrap_or(Time::ZERO).ceil_to(per_second);
        let is_moved = delay > 0 && title.presentation_time_offset == Time::new(delay, per_second);
        let moved = if is_moved { Time::new(delay, per_second).as_nanos() } else { 0 };
        prop_assert!(decoded.is_some_and(|first| (0..=least + moved).contains(&first)), "{decoded:?}");
        // A film with a decode delay needs a presentationTimeOffset, because Shaka Player otherwise
        // shows the film's text too late.
        prop_assert!(delay == 0 || title.presentation_time_offset != Time::ZERO);
        // The time zero of a film that starts late is at its first presented sample.
        let shown = title.renditions.iter().map(|r| first_presentation_time(&title, r).as_nanos()).min();
        let (zero, shown) = (title.presentation_time_offset.as_nanos(), shown.unwrap_or(0));
        prop_assert!(shown <= zero + least, "{shown} {zero}");
        prop_assert!(title.presentation_time_offset == shifts[0] || (title.presentation_time_offset > shifts[0] && zero <= shown));
        for rendition in &title.renditions {
            let timescale = title.track(rendition).timescale;
            prop_assert_eq!(Time::new(title.presentation_time_offset.round_to(timescale), timescale), title.presentation_time_offset);
            let end = title.segment_start(rendition, rendition.segment_count());
            let end = Time::new(end as i64 - title.presentation_time_offset.round_to(timescale), timescale);
            prop_assert!(end <= title.duration);
        }
    }

    #[test]
    fn groups_are_cut_together(files in arbitrary_title(), ms in 100u32..4000) {
        let Some(title) = build_title(files, ms) else { return Ok(()) };
        let videos: Vec<&Rendition> = title.video_renditions().collect();
        for a in &videos {
            let ends = title.segment_start(a, a.segment_count());
            let ends = Time::new(ends as i64, title.track(a).timescale).as_nanos();
            for b in videos.iter().filter(|b| b.switching_group == a.switching_group) {
                // The cuts of `a` and of `b` may differ from those of a third rendition by half a
                // frame each, in opposite directions.
                let slack = half_frame_nanos(&title, a) + half_frame_nanos(&title, b);
                for n in 0..b.segment_count() {
                    let time = segment_first_sample_nanos(&title, b, n);
                    let met = (0..a.segment_count()).any(|m| (segment_first_sample_nanos(&title, a, m) - time).abs() <= slack);
                    // A shorter rendition has no cuts after its end, and no cuts shortly before its
                    // end.
                    let over = time > ends - i64::from(ms) * 1_000_000 / 10 - slack;
                    prop_assert!(met || over, "group {}: no segment starts at {time}", a.switching_group);
                }
            }
        }
    }

    #[test]
    fn key_frames_are_found_by_their_times(files in arbitrary_title(), ms in 100u32..4000) {
        let Some(title) = build_title(files, ms) else { return Ok(()) };
        for rendition in title.video_renditions() {
            let track = title.track(rendition);
            let keys: Vec<u32> = title.trick_play_key_frames(rendition).collect();
            let Some(first) = keys.first() else {
                // The edit list hides the key frame and all pictures after it.
                prop_assert!(track.presentation_end.is_some());
                continue;
            };
            prop_assert_eq!(*first, rendition.segment_cuts[0]);
            let nexts = keys.iter().skip(1).copied().chain([track.samples.len()]);
            for (key, next) in keys.iter().zip(nexts) {
                let time = title.presentation_time(rendition, *key);
                prop_assert!(track.samples.is_sync(*key));
                prop_assert!(title.presentation_time(rendition, next) > time);
                prop_assert_eq!(title.find_key_frame_by_time(rendition, time), Some(*key));
                prop_assert_eq!(title.find_next_trick_play_frame(rendition, *key).min(track.samples.len()), next);
            }
        }
    }

    #[test]
    fn names_are_unique_and_safe_in_urls(files in arbitrary_title()) {
        let Some(title) = build_title(files, 2000) else { return Ok(()) };
        for (n, rendition) in title.renditions.iter().enumerate() {
            prop_assert_eq!(title.find_rendition(&rendition.name).map(|found| found.0), Some(n));
            prop_assert!(rendition.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"=_-".contains(&b)));
        }
    }
}
