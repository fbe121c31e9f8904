//! Tests segments with a demuxer that shares no code with the muxer.

use super::*;
use crate::codec::sample_entry_vectors::{AVC, HVC1_PQ};
use crate::codec::tests::decode_hex;
use crate::codec::{NalFormat, TrackFormat};
use proptest::prelude::*;

/// One demuxed PES packet.
#[derive(Debug, PartialEq, Eq)]
struct DemuxedPes {
    pts: u64,
    dts: u64,
    random_access: bool,
    clock: u64,
    payload: Vec<u8>,
}

fn read_timestamp(bytes: &[u8]) -> u64 {
    let b: Vec<u64> = bytes.iter().map(|byte| u64::from(*byte)).collect();
    (b[0] & 14) << 29 | b[1] << 22 | (b[2] & 254) << 14 | b[3] << 7 | b[4] >> 1
}

fn read_clock(field: &[u8]) -> u64 {
    let b: Vec<u64> = field.iter().map(|byte| u64::from(*byte)).collect();
    b[0] << 25 | b[1] << 17 | b[2] << 9 | b[3] << 1 | b[4] >> 7
}

/// Demuxes a segment and checks packets, tables, counters and clocks.
fn demux(segment: &[u8], stream_type: u8) -> Vec<DemuxedPes> {
    assert_eq!(segment.len() % 188, 0);
    let mut found: Vec<DemuxedPes> = Vec::new();
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
            clocks.push(read_clock(&packet[6..12]));
        }
        let payload = &packet[4 + field..];
        assert_eq!(has_payload, !payload.is_empty());
        if packet[1] & 0x40 != 0 {
            found.push(start_pes(payload, flags, *clocks.last().unwrap()));
        } else if has_payload {
            found.last_mut().unwrap().payload.extend_from_slice(payload);
        }
    }
    assert_eq!(counter % 16, 0, "the counter returns to 0 in every segment");
    assert!(
        clocks
            .windows(2)
            .all(|pair| time_between(pair[0], pair[1]) <= 9000)
    );
    for found in &mut found {
        finish_pes(found);
    }
    found
}

/// Starts a PES packet. Its header is parsed when the packet is complete.
fn start_pes(payload: &[u8], flags: u8, clock: u64) -> DemuxedPes {
    DemuxedPes {
        pts: 0,
        dts: 0,
        random_access: flags & 0x40 != 0,
        clock,
        payload: payload.to_vec(),
    }
}

/// Returns the time from `early` to `late`. Times may wrap at 2^33 between `early` and `late`.
fn time_between(early: u64, late: u64) -> u64 {
    late.wrapping_sub(early) % (1 << 33)
}

fn finish_pes(found: &mut DemuxedPes) {
    let pes = std::mem::take(&mut found.payload);
    assert_eq!(pes[..6], [0, 0, 1, 0xe0, 0, 0]);
    let end = 9 + usize::from(pes[8]);
    found.pts = read_timestamp(&pes[9..14]);
    found.dts = if pes[7] & 0x40 == 0 {
        found.pts
    } else {
        read_timestamp(&pes[14..19])
    };
    assert_eq!(time_between(found.clock, found.dts), 45_000);
    found.payload = pes[end..].to_vec();
}

fn parse_codec(hex: &str, length_bytes: u8) -> Codec {
    let mut codec = Codec::from_sample_entry(&decode_hex(hex)).unwrap();
    if let TrackFormat::Video(video) = &mut codec.format
        && let Some(nal) = &mut video.nal
    {
        nal.length_field_bytes = length_bytes;
    }
    codec
}

fn nal_format(codec: &Codec) -> &NalFormat {
    codec.video().unwrap().nal.as_ref().unwrap()
}

/// Builds a sample from NAL units.
fn build_sample(units: &[Vec<u8>], length_bytes: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for unit in units {
        let len = (unit.len() as u32).to_be_bytes();
        out.extend_from_slice(&len[4 - usize::from(length_bytes)..]);
        out.extend_from_slice(unit);
    }
    out
}

/// Builds the expected byte stream of a frame whose units contain no delimiter and no parameter
/// sets.
fn expected_byte_stream(nal: &NalFormat, sync: bool, units: &[Vec<u8>]) -> Vec<u8> {
    let delimiter = if nal.is_hevc {
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
    /// Slices of many sizes, some of which almost exactly fill one or two packets. The muxer gives
    /// no special treatment to their NAL unit type.
    fn any_units()(
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
    fn demuxed_frames_equal_the_muxed_ones(
        frames in proptest::collection::vec((any_units(), any::<bool>(), 1u64..40_000, 0u64..20_000), 0..24),
        hevc: bool,
        start in prop_oneof![Just(TIMESTAMP_OFFSET_90KHZ), Just((1u64 << 33) * 3)],
    ) {
        let codec = parse_codec(if hevc { HVC1_PQ } else { AVC }, 4);
        let samples: Vec<Vec<u8>> = frames.iter().map(|frame| build_sample(&frame.0, 4)).collect();
        let mut dts = start;
        let list: Vec<MuxFrame<'_>> = frames.iter().zip(&samples).map(|((_, sync, step, delay), data)| {
            dts += step;
            MuxFrame { pts: dts + delay, dts, is_sync: *sync, data }
        }).collect();
        let segment = mux_video_segment(&codec, &list).unwrap();
        let sizes = list.iter().map(|frame| FrameInfo {
            pts: frame.pts,
            dts: frame.dts,
            is_sync: frame.is_sync,
            size: frame.data.len() as u32,
        });
        let empty = frames.iter().any(|frame| frame.0.iter().any(Vec::is_empty));
        let none = frames.iter().any(|frame| frame.0.is_empty());
        prop_assert!(empty || none || estimate_video_segment_len(&codec, sizes) == segment.len() as u64);
        let found = demux(&segment, if hevc { 0x24 } else { 0x1b });
        prop_assert_eq!(found.len(), list.len());
        for ((found, frame), (units, ..)) in found.iter().zip(&list).zip(&frames) {
            prop_assert_eq!((found.pts, found.dts), (frame.pts % (1 << 33), frame.dts % (1 << 33)));
            prop_assert_eq!(found.random_access, frame.is_sync);
            prop_assert!(found.payload == expected_byte_stream(nal_format(&codec), frame.is_sync, units));
        }
    }

    #[test]
    fn broken_samples_are_errors(data in proptest::collection::vec(any::<u8>(), 0..64), length in 0usize..3) {
        let codec = parse_codec(AVC, [1, 2, 4][length]);
        let frame = MuxFrame { pts: 0, dts: 0, is_sync: true, data: &data };
        if let Ok(segment) = mux_video_segment(&codec, &[frame]) {
            prop_assert_eq!(segment.len() % 188, 0);
        }
    }
}

#[test]
fn in_band_parameter_sets_are_not_repeated() {
    let codec = parse_codec(AVC, 2);
    let units = [vec![9, 0x10], vec![7, 1, 2], vec![8, 3], vec![0x65, 9]];
    let data = build_sample(&units, 2);
    let frame = MuxFrame {
        pts: TIMESTAMP_OFFSET_90KHZ,
        dts: TIMESTAMP_OFFSET_90KHZ,
        is_sync: true,
        data: &data,
    };
    let found = demux(&mux_video_segment(&codec, &[frame]).unwrap(), 0x1b);
    let whole: Vec<u8> = units
        .iter()
        .flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat())
        .collect();
    assert_eq!(found[0].payload, whole);
    // An existing delimiter stays first, and the parameter sets follow the delimiter.
    let data = build_sample(&[vec![9, 0x10], vec![0x65, 9]], 2);
    let segment = mux_video_segment(
        &codec,
        &[MuxFrame {
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
fn an_overlong_nal_unit_is_reported() {
    let codec = parse_codec(AVC, 4);
    let frame = MuxFrame {
        pts: 0,
        dts: 0,
        is_sync: false,
        data: &[0, 0, 0, 9, 1, 2],
    };
    let error = mux_video_segment(&codec, &[frame]).unwrap_err();
    assert!(error.message.contains("longer than its sample"), "{error}");
}

/// Concatenates the payload of all video packets.
fn pes_bytes(segment: &[u8]) -> Vec<u8> {
    let payload = |packet: &[u8]| match packet[3] & 0x20 {
        0 => packet[4..].to_vec(),
        _ => packet[5 + usize::from(packet[4])..].to_vec(),
    };
    segment[376..].chunks(188).flat_map(payload).collect()
}

#[test]
fn a_late_decode_time_is_taken_for_the_presentation_time() {
    let frame = MuxFrame {
        pts: 900_000,
        dts: 903_600,
        is_sync: false,
        data: &[0, 0, 0, 2, 0x41, 7],
    };
    let segment = mux_video_segment(&parse_codec(AVC, 4), &[frame]).unwrap();
    let pes = pes_bytes(&segment);
    assert_eq!(pes[..9], [0, 0, 1, 0xe0, 0, 0, 0x84, 0x80, 5]);
    assert_eq!(read_timestamp(&pes[9..14]), 900_000);
}

#[test]
fn only_avc_and_hevc_go_into_ts() {
    use crate::codec::sample_entry_vectors::{AAC, AV1};
    assert!(can_mux_ts(&parse_codec(AVC, 4)) && can_mux_ts(&parse_codec(HVC1_PQ, 4)));
    for hex in [AV1, AAC] {
        let codec = parse_codec(hex, 4);
        assert!(!can_mux_ts(&codec));
        assert!(mux_video_segment(&codec, &[]).is_err());
        assert_eq!(estimate_video_segment_len(&codec, []), 0);
    }
}
