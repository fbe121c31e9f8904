//! Segments taken apart by a demuxer that shares nothing with the muxer.

use super::*;
use crate::codec::tests::bytes;
use crate::codec::vectors::{AVC, HVC1_PQ};
use crate::codec::{Media, Nal};
use proptest::prelude::*;

/// One PES packet as found in a segment.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    pts: u64,
    dts: u64,
    random_access: bool,
    clock: u64,
    payload: Vec<u8>,
}

fn timestamp(bytes: &[u8]) -> u64 {
    let b: Vec<u64> = bytes.iter().map(|byte| u64::from(*byte)).collect();
    (b[0] & 14) << 29 | b[1] << 22 | (b[2] & 254) << 14 | b[3] << 7 | b[4] >> 1
}

fn clock_of(field: &[u8]) -> u64 {
    let b: Vec<u64> = field.iter().map(|byte| u64::from(*byte)).collect();
    b[0] << 25 | b[1] << 17 | b[2] << 9 | b[3] << 1 | b[4] >> 7
}

/// Takes the segment apart and checks packets, tables, counters and clocks on the way.
fn demux(segment: &[u8], stream_type: u8) -> Vec<Found> {
    assert_eq!(segment.len() % 188, 0);
    let mut found: Vec<Found> = Vec::new();
    let (mut counter, mut clocks) = (0u8, Vec::new());
    for (n, packet) in segment.chunks(188).enumerate() {
        assert_eq!(packet[0], 0x47);
        let pid = u16::from_be_bytes([packet[1] & 31, packet[2]]);
        match n {
            0 => assert_eq!((pid, &packet[15..17]), (0, &[0xf0, 0x00][..])),
            1 => assert_eq!((pid, packet[17]), (0x1000, stream_type)),
            _ => assert_eq!(pid, 0x100),
        }
        if n < 2 {
            continue;
        }
        let (has_field, has_payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        let field = if has_field {
            usize::from(packet[4]) + 1
        } else {
            0
        };
        if has_payload {
            assert_eq!(packet[3] & 15, counter & 15);
            counter = counter.wrapping_add(1);
        }
        let flags = if field > 1 { packet[5] } else { 0 };
        if flags & 0x10 != 0 {
            clocks.push(clock_of(&packet[6..12]));
        }
        let payload = &packet[4 + field..];
        assert_eq!(has_payload, !payload.is_empty());
        if packet[1] & 0x40 != 0 {
            found.push(open(payload, flags, *clocks.last().unwrap()));
        } else if has_payload {
            found.last_mut().unwrap().payload.extend_from_slice(payload);
        }
    }
    assert_eq!(counter % 16, 0, "the counter comes round in every segment");
    assert!(
        clocks
            .windows(2)
            .all(|pair| wrapped(pair[0], pair[1]) <= 9000)
    );
    for found in &mut found {
        finish(found);
    }
    found
}

/// A PES packet begins; its header is read when it is whole.
fn open(payload: &[u8], flags: u8, clock: u64) -> Found {
    Found {
        pts: 0,
        dts: 0,
        random_access: flags & 0x40 != 0,
        clock,
        payload: payload.to_vec(),
    }
}

/// Time from `early` to `late`, which may lie across the wrap.
fn wrapped(early: u64, late: u64) -> u64 {
    late.wrapping_sub(early) % (1 << 33)
}

fn finish(found: &mut Found) {
    let pes = std::mem::take(&mut found.payload);
    assert_eq!(pes[..6], [0, 0, 1, 0xe0, 0, 0]);
    let end = 9 + usize::from(pes[8]);
    found.pts = timestamp(&pes[9..14]);
    found.dts = if pes[7] & 0x40 == 0 {
        found.pts
    } else {
        timestamp(&pes[14..19])
    };
    assert_eq!(wrapped(found.clock, found.dts), 45_000);
    found.payload = pes[end..].to_vec();
}

fn codec(hex: &str, length_bytes: u8) -> Codec {
    let mut codec = Codec::parse(&bytes(hex)).unwrap();
    if let Media::Video(video) = &mut codec.media
        && let Some(nal) = &mut video.nal
    {
        nal.length_bytes = length_bytes;
    }
    codec
}

fn nal(codec: &Codec) -> &Nal {
    codec.video().unwrap().nal.as_ref().unwrap()
}

/// A sample of these NAL units.
fn sample(units: &[Vec<u8>], length_bytes: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in units {
        let len = (unit.len() as u32).to_be_bytes();
        out.extend_from_slice(&len[4 - usize::from(length_bytes)..]);
        out.extend_from_slice(unit);
    }
    out
}

/// What Annex B should make of AVC or HEVC units that have no delimiter or parameter sets.
fn expected(nal: &Nal, sync: bool, units: &[Vec<u8>]) -> Vec<u8> {
    let delimiter = if nal.hevc {
        vec![0x46, 1, 0x50]
    } else {
        vec![9, 0xf0]
    };
    let sets = if sync { &nal.parameter_sets[..] } else { &[] };
    let all = std::iter::once(&delimiter).chain(sets).chain(units);
    all.filter(|unit| !unit.is_empty())
        .flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat())
        .collect()
}

prop_compose! {
    /// Slices of any size, mostly around the edges of packets; their type is none we look for.
    fn units()(
        sizes in proptest::collection::vec(prop_oneof![
            0usize..4, 100usize..400, Just(183), Just(184), Just(185), Just(368), Just(65_536)
        ], 0..4),
        fill in 2u8..255,
    ) -> Vec<Vec<u8>> {
        let slice = |size: usize| {
            let mut unit = vec![fill; size];
            unit.iter_mut().take(1).for_each(|head| *head = 0x02);
            unit
        };
        sizes.into_iter().map(slice).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn frames_come_out_as_they_went_in(
        frames in proptest::collection::vec((units(), any::<bool>(), 1u64..40_000, 0u64..20_000), 0..24),
        hevc: bool,
        start in prop_oneof![Just(TS_OFFSET_90K), Just((1u64 << 33) * 3)],
    ) {
        let codec = codec(if hevc { HVC1_PQ } else { AVC }, 4);
        let samples: Vec<Vec<u8>> = frames.iter().map(|frame| sample(&frame.0, 4)).collect();
        let mut dts = start;
        let list: Vec<Frame<'_>> = frames.iter().zip(&samples).map(|((_, sync, step, delay), data)| {
            dts += step;
            Frame { pts: dts + delay, dts, sync: *sync, data }
        }).collect();
        let segment = video_segment(&codec, &list).unwrap();
        let sizes = list.iter().map(|frame| FrameSize {
            pts: frame.pts,
            dts: frame.dts,
            sync: frame.sync,
            size: frame.data.len() as u32,
        });
        let empty = frames.iter().any(|frame| frame.0.iter().any(Vec::is_empty));
        let none = frames.iter().any(|frame| frame.0.is_empty());
        prop_assert!(empty || none || video_segment_len_estimate(&codec, sizes) == segment.len() as u64);
        let found = demux(&segment, if hevc { 0x24 } else { 0x1b });
        prop_assert_eq!(found.len(), list.len());
        for ((found, frame), (units, ..)) in found.iter().zip(&list).zip(&frames) {
            prop_assert_eq!((found.pts, found.dts), (frame.pts % (1 << 33), frame.dts % (1 << 33)));
            prop_assert_eq!(found.random_access, frame.sync);
            prop_assert!(found.payload == expected(nal(&codec), frame.sync, units));
        }
    }

    #[test]
    fn broken_samples_are_errors(data in proptest::collection::vec(any::<u8>(), 0..64), length in 0usize..3) {
        let codec = codec(AVC, [1, 2, 4][length]);
        let frame = Frame { pts: 0, dts: 0, sync: true, data: &data };
        if let Ok(segment) = video_segment(&codec, &[frame]) {
            prop_assert_eq!(segment.len() % 188, 0);
        }
    }
}

#[test]
fn what_is_in_band_is_not_added_again() {
    let codec = codec(AVC, 2);
    let units = [vec![9, 0x10], vec![7, 1, 2], vec![8, 3], vec![0x65, 9]];
    let data = sample(&units, 2);
    let frame = Frame {
        pts: TS_OFFSET_90K,
        dts: TS_OFFSET_90K,
        sync: true,
        data: &data,
    };
    let found = demux(&video_segment(&codec, &[frame]).unwrap(), 0x1b);
    let whole: Vec<u8> = units
        .iter()
        .flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat())
        .collect();
    assert_eq!(found[0].payload, whole);
    // A delimiter of its own stays first; the sets come after it.
    let data = sample(&[vec![9, 0x10], vec![0x65, 9]], 2);
    let segment = video_segment(
        &codec,
        &[Frame {
            data: &data,
            ..frame
        }],
    )
    .unwrap();
    let payload = &demux(&segment, 0x1b)[0].payload;
    assert_eq!(payload[..9], [0, 0, 0, 1, 9, 0x10, 0, 0, 0]);
    assert_eq!(payload[9..11], [1, 0x67]);
    assert_eq!(payload[payload.len() - 6..], [0, 0, 0, 1, 0x65, 9]);
}

#[test]
fn a_length_past_the_end_is_named() {
    let codec = codec(AVC, 4);
    let frame = Frame {
        pts: 0,
        dts: 0,
        sync: false,
        data: &[0, 0, 0, 9, 1, 2],
    };
    let error = video_segment(&codec, &[frame]).unwrap_err();
    assert!(error.what.contains("longer than its sample"), "{error}");
}

/// All payload of the video.
fn pes_bytes(segment: &[u8]) -> Vec<u8> {
    let payload = |packet: &[u8]| match packet[3] & 0x20 {
        0 => packet[4..].to_vec(),
        _ => packet[5 + usize::from(packet[4])..].to_vec(),
    };
    segment[376..].chunks(188).flat_map(payload).collect()
}

#[test]
fn a_late_decode_time_is_taken_for_the_presentation_time() {
    let frame = Frame {
        pts: 900_000,
        dts: 903_600,
        sync: false,
        data: &[0, 0, 0, 2, 0x41, 7],
    };
    let segment = video_segment(&codec(AVC, 4), &[frame]).unwrap();
    let pes = pes_bytes(&segment);
    assert_eq!(pes[..9], [0, 0, 1, 0xe0, 0, 0, 0x84, 0x80, 5]);
    assert_eq!(timestamp(&pes[9..14]), 900_000);
}

#[test]
fn only_avc_and_hevc_go_into_ts() {
    use crate::codec::vectors::{AAC, AV1};
    assert!(can_ts(&codec(AVC, 4)) && can_ts(&codec(HVC1_PQ, 4)));
    for hex in [AV1, AAC] {
        let codec = codec(hex, 4);
        assert!(!can_ts(&codec));
        assert!(video_segment(&codec, &[]).is_err());
        assert_eq!(video_segment_len_estimate(&codec, []), 0);
    }
}
