//! Tests that compare plans with a naive muxer and with our own indexer.

use super::*;
use crate::fixtures::{self, arbitrary_title, build_index_of_tracks};
use crate::index::{Sample, index_file_in_memory};
use crate::presentation::PackagingRules;
use crate::time::Time;
use proptest::prelude::*;

/// Returns made-up bytes of a source file. Each byte is derived from its offset in the file.
fn fake_source_bytes(ranges: &[Range<u64>]) -> Vec<u8> {
    let bytes = ranges.iter().cloned().flatten();
    bytes
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

fn sample_bytes(sample: &Sample) -> Vec<u8> {
    let end = sample.offset + u64::from(sample.size);
    fake_source_bytes(std::slice::from_ref(&(sample.offset..end)))
}

fn segment_bytes(plan: &Plan) -> Vec<u8> {
    [plan.head.clone(), fake_source_bytes(&plan.source_ranges)].concat()
}

fn build_box(name: &[u8; 4], body: Vec<u8>) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), &name[..], &body].concat()
}

fn build_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Returns the value of a column, if all rows have the same value.
fn same_value(column: &[u32]) -> Option<u32> {
    column
        .iter()
        .all(|value| *value == column[0])
        .then_some(column[0])
}

/// Decode time of a segment, and the shift of its composition offsets, in ticks.
#[derive(Clone, Copy)]
struct SegmentClock {
    tfdt: u64,
    shift: i32,
}

impl SegmentClock {
    fn for_sample(rendition: &Rendition, dts: u64) -> SegmentClock {
        let decoded = rendition.start_ticks + dts as i64 - i64::from(rendition.decode_delay);
        SegmentClock {
            tfdt: u64::try_from(decoded).expect("no time below zero"),
            shift: rendition.composition_shift + rendition.decode_delay as i32,
        }
    }

    /// Returns the served composition offset, which is never negative.
    fn served_offset(self, sample: &Sample) -> u32 {
        u32::try_from(sample.composition_offset + self.shift)
            .expect("shown no earlier than decoded")
    }
}

/// Writes a segment from a plain list of samples, without using sample tables and without computing
/// lengths in advance.
fn mux_naively(samples: &[Sample], clock: SegmentClock, number: u32, is_video: bool) -> Vec<u8> {
    let sync = |s: &Sample| s.is_sync || !is_video;
    let flags = |s: &Sample| if sync(s) { 0x0200_0000 } else { 0x0101_0000 };
    let columns: [(u32, u32, Vec<u32>); 3] = [
        (0x08, 0x100, samples.iter().map(|s| s.duration).collect()),
        (0x10, 0x200, samples.iter().map(|s| s.size).collect()),
        (0x20, 0x400, samples.iter().map(flags).collect()),
    ];
    let only_first = samples.len() > 1 && sync(&samples[0]) && !samples[1..].iter().any(sync);
    let (mut tfhd_flags, mut trun_flags) = (0x2_0000, 1);
    let (mut tfhd, mut first, mut per_sample) = (vec![1], Vec::new(), Vec::new());
    for (default, each, column) in &columns {
        if *default == 0x20 && only_first {
            tfhd_flags |= default;
            trun_flags |= 4;
            tfhd.push(0x0101_0000);
            first.push(0x0200_0000);
        } else if let Some(value) = same_value(column) {
            tfhd_flags |= default;
            tfhd.push(value);
        } else {
            trun_flags |= each;
            per_sample.push(column.clone());
        }
    }
    let composition_offset: Vec<u32> = samples.iter().map(|s| clock.served_offset(s)).collect();
    if composition_offset
        .iter()
        .any(|composition_offset| *composition_offset != 0)
    {
        trun_flags |= 0x800;
        per_sample.push(composition_offset);
    }
    let table: Vec<u32> = (0..samples.len())
        .flat_map(|n| per_sample.iter().map(move |c| c[n]))
        .collect();
    let moof = |data_offset: u32| {
        let tfhd = build_box(
            b"tfhd",
            [build_words(&[tfhd_flags]), build_words(&tfhd)].concat(),
        );
        let tfdt = build_box(
            b"tfdt",
            [build_words(&[1 << 24]), clock.tfdt.to_be_bytes().to_vec()].concat(),
        );
        let head = build_words(&[trun_flags, samples.len() as u32, data_offset]);
        let trun = build_box(
            b"trun",
            [head, build_words(&first), build_words(&table)].concat(),
        );
        let traf = build_box(b"traf", [tfhd, tfdt, trun].concat());
        build_box(
            b"moof",
            [build_box(b"mfhd", build_words(&[0, number])), traf].concat(),
        )
    };
    let styp = build_box(b"styp", b"msdh\0\0\0\0cmfs".to_vec());
    let payload = samples.iter().flat_map(sample_bytes);
    let moof = moof(moof(0).len() as u32 + 8);
    [styp, moof, build_box(b"mdat", payload.collect())].concat()
}

proptest! {
    #[test]
    fn plans_equal_a_naive_muxer(files in arbitrary_title(), segment_ms in 1u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            let track = title.track(rendition);
            let rows: Vec<Sample> = track.samples.iter_range(0..u32::MAX).collect();
            for n in 0..rendition.segment_count() {
                let plan = title.plan_segment(rendition, n);
                let samples = &rows[rendition.segment_cuts[n] as usize..rendition.segment_cuts[n + 1] as usize];
                let clock = SegmentClock::for_sample(rendition, samples[0].dts);
                let is_video = track.codec.video().is_some();
                let expected = mux_naively(samples, clock, n as u32 + 1, is_video);
                prop_assert_eq!(segment_bytes(&plan), expected);
                prop_assert_eq!(plan.len, segment_bytes(&plan).len() as u64);
                prop_assert_eq!(plan.len, title.segment_len(rendition, n));
                prop_assert!(plan.source_ranges.windows(2).all(|pair| pair[0].end != pair[1].start));
            }
        }
    }

    #[test]
    fn planned_segments_are_indexed_to_the_same_samples(files in arbitrary_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            let track = title.track(rendition);
            let segments = (0..rendition.segment_count()).map(|n| segment_bytes(&title.plan_segment(rendition, n)));
            let file: Vec<u8> = [title.init_segment(rendition)].into_iter().chain(segments).flatten().collect();
            let again = index_file_in_memory(&file).expect("the generated file can be indexed");
            let back = &again.tracks[0];
            prop_assert_eq!(back.timescale, track.timescale);
            let shown = back.samples.iter_range(0..u32::MAX).map(|s| back.presentation_offset + s.dts as i64 + i64::from(s.composition_offset));
            prop_assert_eq!(shown.min(), Some(title.segment_start(rendition, 0) as i64));
            let delay = rendition.decode_delay as i32;
            prop_assert_eq!(&back.codec.codec_string, &track.codec.codec_string);
            prop_assert_eq!(back.samples.total_duration(), track.samples.total_duration() - track.samples.dts(rendition.segment_cuts[0]));
            let served = track.samples.iter_range(rendition.segment_cuts[0]..u32::MAX);
            for (a, b) in served.zip(back.samples.iter_range(0..u32::MAX)) {
                let end = b.offset + u64::from(b.size);
                let expected = sample_bytes(&a);
                prop_assert_eq!(&file[b.offset as usize..end as usize], &expected[..]);
                prop_assert_eq!((a.duration, a.composition_offset + rendition.composition_shift + delay, a.is_sync), (b.duration, b.composition_offset, b.is_sync));
            }
        }
    }

    #[test]
    fn key_frame_fragments_last_until_the_next(files in arbitrary_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        for rendition in title.video_renditions() {
            let track = title.track(rendition);
            for key in title.trick_play_key_frames(rendition) {
                let plan = title.plan_key_frame(rendition, key);
                let next = title.find_next_trick_play_frame(rendition, key);
                let time = title.presentation_time(rendition, key);
                let duration = (title.presentation_time(rendition, next) - time) as u32;
                let sample = Sample { duration, ..track.samples.get(key) };
                let clock = SegmentClock::for_sample(rendition, sample.dts);
                prop_assert_eq!(clock.tfdt + u64::from(clock.served_offset(&sample)), time);
                let expected = mux_naively(&[sample], clock, key + 1, true);
                prop_assert_eq!(segment_bytes(&plan), expected);
                prop_assert_eq!(plan.len, title.key_frame_fragment_len(rendition, key));
            }
        }
    }

    #[test]
    fn units_are_decoded_before_they_are_shown(files in arbitrary_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            for n in 0..rendition.segment_count() {
                let units = title.plan_access_units(rendition, n);
                let plan = title.plan_segment(rendition, n);
                prop_assert_eq!(&units.source_ranges, &plan.source_ranges);
                let sizes: u64 = units.units.iter().map(|unit| u64::from(unit.size)).sum();
                prop_assert_eq!(sizes + plan.head.len() as u64, plan.len);
                prop_assert!(units.units.iter().all(|unit| 0 <= unit.dts && unit.dts <= unit.pts));
                let listed = Time::new(title.segment_start(rendition, n) as i64, title.track(rendition).timescale);
                prop_assert_eq!(units.units.iter().map(|unit| unit.pts).min(), Some(listed.round_to(90_000)));
                prop_assert!(units.units.windows(2).all(|pair| pair[0].dts <= pair[1].dts));
            }
        }
    }
}

#[test]
fn a_segment_of_four_gigabytes_has_a_long_mdat_header() {
    let row = (512, 0, u32::MAX / 2, false);
    let track = fixtures::build_track(
        fixtures::build_avc_test_codec(640, 360),
        12_800,
        0,
        &[(512, 0, 4, true), row, row, row],
    );
    let title = Presentation::new(
        vec![build_index_of_tracks(vec![track])],
        &PackagingRules {
            segment_duration_ms: 6000,
        },
    );
    let title = title.expect("a legal title");
    let plan = title.plan_segment(&title.renditions[0], 0);
    let payload = 4 + 3 * u64::from(u32::MAX / 2);
    assert_eq!(plan.source_ranges.first(), Some(&(48..48 + payload)));
    assert_eq!(plan.source_ranges.len(), 1);
    let mut header = b"\0\0\0\x01mdat".to_vec();
    header.extend((payload + 16).to_be_bytes());
    assert!(plan.head.ends_with(&header));
    assert_eq!(plan.len, plan.head.len() as u64 + payload);
}
