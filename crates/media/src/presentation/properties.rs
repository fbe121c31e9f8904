//! The rules an origin must keep, on any legal title.

use super::*;
use crate::fixtures::any_title;
use crate::time::gcd;
use proptest::prelude::*;

fn title(files: Vec<Arc<Index>>, segment_ms: u32) -> Option<Presentation> {
    match Presentation::new(files, &Rules { segment_ms }) {
        Ok(title) => Some(title),
        // Tracks may happen to differ in length too much, or to last no time.
        Err(error) => {
            let expected = ["differ too much", "lasts any time", "no sync samples"];
            assert!(
                expected.iter().any(|what| error.what.contains(what)),
                "{error}"
            );
            None
        }
    }
}

/// When a segment's first sample is shown, and half a mean frame, in nanoseconds.
fn shown(title: &Presentation, rendition: &Rendition, n: usize) -> i64 {
    let track = title.track(rendition);
    let sample = track.samples.get(rendition.cuts[n]);
    let cts = i64::from(sample.cts) + i64::from(rendition.cts_shift);
    Time::new(rendition.start + sample.dts as i64 + cts, track.timescale).nanos()
}

/// When the first sample is decoded: when it is shown, less what makes no offset negative.
fn decoded(title: &Presentation, rendition: &Rendition) -> Time {
    let track = title.track(rendition);
    let start = title.segment_start(rendition, 0) as i64;
    Time::new(start - i64::from(rendition.delay), track.timescale)
}

/// When the earliest sample is shown.
fn first_shown(title: &Presentation, rendition: &Rendition) -> Time {
    let track = title.track(rendition);
    let served = track.samples.range(rendition.cuts[0]..u32::MAX);
    let shown = served.map(|s| s.dts as i64 + i64::from(s.cts) + i64::from(rendition.cts_shift));
    let earliest = shown.min().unwrap_or(0) + rendition.start;
    Time::new(earliest, track.timescale)
}

fn half_frame(title: &Presentation, rendition: &Rendition) -> i64 {
    let samples = &title.track(rendition).samples;
    let ticks = samples.end() - samples.dts(rendition.cuts[0]);
    let frames = samples.len() - rendition.cuts[0];
    Time::new(ticks as i64, title.track(rendition).timescale).nanos() / i64::from(frames) / 2 + 1
}

proptest! {
    #[test]
    fn segments_tile_every_rendition(files in any_title(), ms in 1u32..8000) {
        let Some(title) = title(files, ms) else { return Ok(()) };
        for rendition in &title.renditions {
            let track = title.track(rendition);
            let cuts = &rendition.cuts;
            prop_assert!(cuts.len() >= 2);
            prop_assert!(cuts.windows(2).all(|cut| cut[0] < cut[1]));
            prop_assert_eq!(cuts[cuts.len() - 1], track.samples.len());
            let mut time = title.segment_start(rendition, 0);
            for n in 0..rendition.segments() {
                prop_assert!(track.codec.audio().is_some() || track.samples.is_sync(cuts[n]));
                prop_assert_eq!(title.segment_start(rendition, n), time);
                prop_assert_eq!(title.segment_at(rendition, time), Some(n));
                let ticks: u64 =
                    track.samples.range(cuts[n]..cuts[n + 1]).map(|s| u64::from(s.duration)).sum();
                prop_assert!(ticks > 0);
                prop_assert_eq!(title.segment_ticks(rendition, n), ticks);
                time += ticks;
                prop_assert!(n + 1 == rendition.segments() || title.segment_at(rendition, time - 1) == (ticks == 1).then_some(n));
            }
            prop_assert_eq!(title.segment_at(rendition, time), None);
            let first = track.samples.dts(cuts[0]);
            prop_assert_eq!(time - title.segment_start(rendition, 0), track.samples.end() - first);
        }
    }

    #[test]
    fn all_tracks_move_by_one_exact_time(files in any_title()) {
        let Some(title) = title(files, 2000) else { return Ok(()) };
        let shifts = title.renditions.iter().map(|rendition| {
            let track = title.track(rendition);
            let cts = i64::from(track.samples.cts(rendition.cuts[0]));
            prop_assert_eq!(i64::from(rendition.cts_shift), -cts);
            Ok(Time::new(rendition.start - track.origin - cts, track.timescale))
        });
        let shifts: Vec<Time> = shifts.collect::<std::result::Result<_, _>>()?;
        prop_assert!(shifts.windows(2).all(|pair| pair[0] == pair[1]));
        let per_second = title.renditions.iter().fold(0, |g, r| gcd(g, title.track(r).timescale));
        let least = 1_000_000_000 / i64::from(per_second);
        let decoded = title.renditions.iter().map(|r| decoded(&title, r).nanos()).min();
        prop_assert!(decoded.is_some_and(|first| (0..=least).contains(&first)), "{decoded:?}");
        // Films that begin late begin where they are first seen or heard.
        let shown = title.renditions.iter().map(|r| first_shown(&title, r).nanos()).min();
        let (zero, shown) = (title.zero.nanos(), shown.unwrap_or(0));
        prop_assert!(shown <= zero + least, "{shown} {zero}");
        prop_assert!(title.zero == shifts[0] || (title.zero > shifts[0] && zero <= shown));
        for rendition in &title.renditions {
            let timescale = title.track(rendition).timescale;
            prop_assert_eq!(Time::new(title.zero.round_to(timescale), timescale), title.zero);
            let end = title.segment_start(rendition, rendition.segments());
            let end = Time::new(end as i64 - title.zero.round_to(timescale), timescale);
            prop_assert!(end <= title.duration);
        }
    }

    #[test]
    fn groups_are_cut_together(files in any_title(), ms in 100u32..4000) {
        let Some(title) = title(files, ms) else { return Ok(()) };
        let videos: Vec<&Rendition> = title.videos().collect();
        for a in &videos {
            let ends = title.segment_start(a, a.segments());
            let ends = Time::new(ends as i64, title.track(a).timescale).nanos();
            for b in videos.iter().filter(|b| b.group == a.group) {
                let half = half_frame(&title, a).min(half_frame(&title, b));
                for n in 0..b.segments() {
                    let time = shown(&title, b, n);
                    let met = (0..a.segments()).any(|m| (shown(&title, a, m) - time).abs() <= half + 1);
                    // A rendition that ends earlier is not cut after its end, or just before.
                    let over = time > ends - i64::from(ms) * 1_000_000 / 10 - half;
                    prop_assert!(met || over, "group {}: {time} is not met", a.group);
                }
            }
        }
    }

    #[test]
    fn key_frames_are_found_by_their_names(files in any_title(), ms in 100u32..4000) {
        let Some(title) = title(files, ms) else { return Ok(()) };
        for rendition in title.videos() {
            let track = title.track(rendition);
            let keys: Vec<u32> = title.keys(rendition).collect();
            prop_assert_eq!(keys[0], rendition.cuts[0]);
            let nexts = keys.iter().skip(1).copied().chain([track.samples.len()]);
            for (key, next) in keys.iter().zip(nexts) {
                let time = title.served_time(rendition, *key);
                prop_assert!(track.samples.is_sync(*key));
                prop_assert!(title.served_time(rendition, next) > time);
                prop_assert_eq!(title.key_at(rendition, time), Some(*key));
                prop_assert_eq!(title.key_after(rendition, *key).min(track.samples.len()), next);
            }
        }
    }

    #[test]
    fn names_are_unique_and_safe_in_urls(files in any_title()) {
        let Some(title) = title(files, 2000) else { return Ok(()) };
        for (n, rendition) in title.renditions.iter().enumerate() {
            prop_assert_eq!(title.rendition(&rendition.name).map(|found| found.0), Some(n));
            prop_assert!(rendition.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"=_-".contains(&b)));
        }
    }
}
