//! Plans against a muxer that takes no short cut, and against our own indexer.

use super::*;
use crate::fixtures::{self, any_title, index};
use crate::index::{Sample, index_bytes};
use crate::presentation::Rules;
use crate::time::Time;
use proptest::prelude::*;

/// Bytes of a source file, made up from their place.
fn source(ranges: &[Range<u64>]) -> Vec<u8> {
    let bytes = ranges.iter().cloned().flatten();
    bytes
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

fn media(sample: &Sample) -> Vec<u8> {
    let end = sample.offset + u64::from(sample.size);
    source(std::slice::from_ref(&(sample.offset..end)))
}

fn bytes(plan: &Plan) -> Vec<u8> {
    [plan.head.clone(), source(&plan.ranges)].concat()
}

fn boxed(name: &[u8; 4], body: Vec<u8>) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), &name[..], &body].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The value of a column, if all rows have the same.
fn same(column: &[u32]) -> Option<u32> {
    column
        .iter()
        .all(|value| *value == column[0])
        .then_some(column[0])
}

/// What a segment's times are made of: when it is listed, less the delay; offsets, and the delay.
#[derive(Clone, Copy)]
struct Clock {
    tfdt: u64,
    shift: i32,
}

impl Clock {
    fn of(rendition: &Rendition, time: u64) -> Clock {
        Clock {
            tfdt: time - u64::from(rendition.delay),
            shift: rendition.cts_shift + rendition.delay as i32,
        }
    }

    /// Never negative.
    fn cts(self, sample: &Sample) -> u32 {
        u32::try_from(sample.cts + self.shift).expect("shown no earlier than decoded")
    }
}

/// A segment written column by column from plain rows, knowing nothing of tables or arithmetic.
fn naive(samples: &[Sample], clock: Clock, number: u32, is_video: bool) -> Vec<u8> {
    let sync = |s: &Sample| s.sync || !is_video;
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
        } else if let Some(value) = same(column) {
            tfhd_flags |= default;
            tfhd.push(value);
        } else {
            trun_flags |= each;
            per_sample.push(column.clone());
        }
    }
    let cts: Vec<u32> = samples.iter().map(|s| clock.cts(s)).collect();
    if cts.iter().any(|cts| *cts != 0) {
        trun_flags |= 0x800;
        per_sample.push(cts);
    }
    let table: Vec<u32> = (0..samples.len())
        .flat_map(|n| per_sample.iter().map(move |c| c[n]))
        .collect();
    let moof = |data_offset: u32| {
        let tfhd = boxed(b"tfhd", [words(&[tfhd_flags]), words(&tfhd)].concat());
        let tfdt = boxed(
            b"tfdt",
            [words(&[1 << 24]), clock.tfdt.to_be_bytes().to_vec()].concat(),
        );
        let head = words(&[trun_flags, samples.len() as u32, data_offset]);
        let trun = boxed(b"trun", [head, words(&first), words(&table)].concat());
        let traf = boxed(b"traf", [tfhd, tfdt, trun].concat());
        boxed(
            b"moof",
            [boxed(b"mfhd", words(&[0, number])), traf].concat(),
        )
    };
    let styp = boxed(b"styp", b"msdh\0\0\0\0cmfs".to_vec());
    let payload = samples.iter().flat_map(media);
    let moof = moof(moof(0).len() as u32 + 8);
    [styp, moof, boxed(b"mdat", payload.collect())].concat()
}

proptest! {
    #[test]
    fn equal_a_naive_muxer(files in any_title(), segment_ms in 1u32..4000) {
        let Ok(title) = Presentation::new(files, &Rules { segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            let track = title.track(rendition);
            let rows: Vec<Sample> = track.samples.range(0..u32::MAX).collect();
            for n in 0..rendition.segments() {
                let plan = title.segment(rendition, n);
                let of = &rows[rendition.cuts[n] as usize..rendition.cuts[n + 1] as usize];
                let clock = Clock::of(rendition, title.segment_start(rendition, n));
                let is_video = track.codec.video().is_some();
                let expected = naive(of, clock, n as u32 + 1, is_video);
                prop_assert_eq!(bytes(&plan), expected);
                prop_assert_eq!(plan.len, bytes(&plan).len() as u64);
                prop_assert_eq!(plan.len, title.segment_len(rendition, n));
                prop_assert!(plan.ranges.windows(2).all(|pair| pair[0].end != pair[1].start));
            }
        }
    }

    #[test]
    fn index_again_to_what_was_planned(files in any_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &Rules { segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            let track = title.track(rendition);
            let segments = (0..rendition.segments()).map(|n| bytes(&title.segment(rendition, n)));
            let file: Vec<u8> = [title.init(rendition)].into_iter().chain(segments).flatten().collect();
            let again = index_bytes(&file).expect("what we write can be read");
            let back = &again.tracks[0];
            prop_assert_eq!(back.timescale, track.timescale);
            prop_assert_eq!(back.origin as u64 + u64::from(rendition.delay), title.segment_start(rendition, 0));
            let delay = rendition.delay as i32;
            prop_assert_eq!(&back.codec.string, &track.codec.string);
            prop_assert_eq!(back.samples.end(), track.samples.end() - track.samples.dts(rendition.cuts[0]));
            let served = track.samples.range(rendition.cuts[0]..u32::MAX);
            for (a, b) in served.zip(back.samples.range(0..u32::MAX)) {
                let end = b.offset + u64::from(b.size);
                let expected = media(&a);
                prop_assert_eq!(&file[b.offset as usize..end as usize], &expected[..]);
                prop_assert_eq!((a.duration, a.cts + rendition.cts_shift + delay, a.sync), (b.duration, b.cts, b.sync));
            }
        }
    }

    #[test]
    fn key_fragments_last_until_the_next(files in any_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &Rules { segment_ms }) else { return Ok(()) };
        for rendition in title.videos() {
            let track = title.track(rendition);
            for key in title.keys(rendition) {
                let plan = title.key_segment(rendition, key);
                let next = title.key_after(rendition, key);
                let time = title.served_time(rendition, key);
                let duration = (title.served_time(rendition, next) - time) as u32;
                let sample = Sample { duration, ..track.samples.get(key) };
                let expected = naive(&[sample], Clock::of(rendition, time), key + 1, true);
                prop_assert_eq!(bytes(&plan), expected);
                prop_assert_eq!(plan.len, title.key_segment_len(rendition, key));
            }
        }
    }

    #[test]
    fn units_are_decoded_before_they_are_shown(files in any_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &Rules { segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            for n in 0..rendition.segments() {
                let units = title.units(rendition, n);
                let plan = title.segment(rendition, n);
                prop_assert_eq!(&units.ranges, &plan.ranges);
                let sizes: u64 = units.units.iter().map(|unit| u64::from(unit.size)).sum();
                prop_assert_eq!(sizes + plan.head.len() as u64, plan.len);
                prop_assert!(units.units.iter().all(|unit| 0 <= unit.dts && unit.dts <= unit.pts));
                let listed = Time::new(title.segment_start(rendition, n) as i64, title.track(rendition).timescale);
                if n == 0 {
                    prop_assert_eq!(units.units[0].pts, listed.round_to(90_000));
                }
                prop_assert!(units.units.windows(2).all(|pair| pair[0].dts <= pair[1].dts));
            }
        }
    }
}

#[test]
fn a_segment_of_four_gigabytes_has_a_long_mdat_header() {
    let row = (512, 0, u32::MAX / 2, false);
    let track = fixtures::track(
        fixtures::avc(640, 360),
        12_800,
        0,
        &[(512, 0, 4, true), row, row, row],
    );
    let title = Presentation::new(vec![index(vec![track])], &Rules { segment_ms: 6000 });
    let title = title.expect("a legal title");
    let plan = title.segment(&title.renditions[0], 0);
    let payload = 4 + 3 * u64::from(u32::MAX / 2);
    assert_eq!(plan.ranges.first(), Some(&(48..48 + payload)));
    assert_eq!(plan.ranges.len(), 1);
    let mut header = b"\0\0\0\x01mdat".to_vec();
    header.extend((payload + 16).to_be_bytes());
    assert!(plan.head.ends_with(&header));
    assert_eq!(plan.len, plan.head.len() as u64 + payload);
}
