//! Tests of the codec parsers with sample entries of real files.

mod aac;
mod quicktime;

use super::sample_entry_vectors::*;
use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;

/// Decodes hexadecimal digits.
pub fn decode_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn parse_hex(hex: &str) -> Codec {
    Codec::from_sample_entry(&decode_hex(hex)).unwrap()
}

/// Codec string, width, height, pixel aspect ratio and colour of a video entry.
type VideoFacts<'a> = (&'a str, u32, u32, (u32, u32), Option<(u8, u8, u8, bool)>);

#[rustfmt::skip]
const VIDEO: [(&str, VideoFacts<'_>); 11] = [
    (AVC, ("avc1.64000C", 320, 180, (1, 1), None)),
    (AVC_QUICKTIME, ("avc1.64000C", 320, 180, (1, 1), None)),
    (AVC_PQ_SAR, ("avc1.64000C", 320, 182, (4, 3), Some((9, 16, 9, false)))),
    (AVC_INTERLACED, ("avc1.7A001F", 722, 574, (1, 1), None)),
    (AVC_444, ("avc1.F4001F", 722, 574, (1, 1), None)),
    (HVC1_PQ, ("hvc1.2.4.L60.90", 320, 180, (1, 1), Some((9, 16, 9, false)))),
    (HEV1_422, ("hev1.4.10.L60.9D.8", 320, 180, (12, 11), None)),
    (AV1, ("av01.0.00M.08", 320, 180, (1, 1), None)),
    (AV1_HLG, ("av01.0.00M.10.0.110.09.18.09.0", 320, 180, (1, 1), Some((9, 18, 9, false)))),
    (VP9, ("vp09.00.11.08", 320, 180, (1, 1), None)),
    (VP9_PQ, ("vp09.02.11.10.01.09.16.09.00", 320, 180, (1, 1), Some((9, 16, 9, false)))),
];

#[test]
fn video_entries_give_their_facts() {
    for (hex, seen) in VIDEO {
        let codec = parse_hex(hex);
        assert_eq!(
            (video_facts_of(&codec), codec.supplemental_codecs.as_deref()),
            (seen, None)
        );
    }
}

#[test]
fn parameter_sets_replace_missing_boxes() {
    for hex in [AVC_PQ_SAR, HVC1_PQ, HEV1_422, AV1_HLG] {
        let whole = parse_hex(hex);
        let mut entry = decode_hex(hex);
        for name in [b"pasp", b"colr"] {
            if let Some(at) = entry.windows(4).position(|four| four == name) {
                entry[at..at + 4].copy_from_slice(b"free");
            }
        }
        let codec = Codec::from_sample_entry(&entry).unwrap();
        assert_eq!(video_facts_of(&codec), video_facts_of(&whole));
    }
}

fn video_facts_of(codec: &Codec) -> VideoFacts<'_> {
    let video = codec.video().unwrap();
    let color = video.color;
    let color = color.map(|c| (c.primaries, c.transfer, c.matrix, c.full_range));
    (
        &codec.codec_string,
        video.width,
        video.height,
        video.sar,
        color,
    )
}

const CICP: &str = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
const DOLBY: &str = "tag:dolby.com,2014:dash:audio_channel_configuration:2011";

/// Entry, coding, codec string, HLS channels, and scheme and value of the DASH channel
/// configuration. The sampling rate is always 48 kHz.
type AudioFacts = (
    &'static str,
    AudioCoding,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const AUDIO: [AudioFacts; 13] = [
    (AAC, AudioCoding::Aac, "mp4a.40.2", "1", CICP, "1"),
    (AAC_QUICKTIME, AudioCoding::Aac, "mp4a.40.2", "1", CICP, "1"),
    (AAC_51, AudioCoding::Aac, "mp4a.40.2", "6", CICP, "6"),
    (AAC_71, AudioCoding::Aac, "mp4a.40.2", "8", CICP, "7"),
    (MP3, AudioCoding::Mp3, "mp4a.40.34", "2", CICP, "2"),
    (MP3_QUICKTIME, AudioCoding::Mp3, "mp4a.40.34", "2", CICP, "2"),
    (AC3, AudioCoding::Ac3, "ac-3", "6", DOLBY, "F801"),
    (AC3_QUICKTIME, AudioCoding::Ac3, "ac-3", "6", DOLBY, "F801"),
    (EAC3, AudioCoding::Eac3, "ec-3", "6", DOLBY, "F801"),
    (EAC3_QUICKTIME, AudioCoding::Eac3, "ec-3", "2", DOLBY, "A000"),
    (OPUS, AudioCoding::Opus, "opus", "2", CICP, "2"),
    (OPUS_51, AudioCoding::Opus, "opus", "6", CICP, "6"),
    (FLAC, AudioCoding::Flac, "fLaC", "2", CICP, "2"),
];

#[test]
fn audio_entries_give_their_facts() {
    for (hex, coding, string, hls, scheme, value) in AUDIO {
        let codec = parse_hex(hex);
        let audio = codec.audio().unwrap();
        assert_eq!(
            (audio.coding, codec.codec_string.as_str()),
            (coding, string)
        );
        assert_eq!(
            (audio.sample_rate, audio.hls_channels.as_str()),
            (48_000, hls)
        );
        assert_eq!(
            audio.dash_channel_configuration,
            (scheme, value.to_owned()),
            "{string}"
        );
    }
}

#[test]
fn iso_entries_are_written_verbatim() {
    for hex in [
        AVC,
        AVC_PQ_SAR,
        AVC_INTERLACED,
        AAC,
        AAC_51,
        AAC_71,
        MP3,
        HVC1_PQ,
        HEV1_422,
        AV1,
        AV1_HLG,
        VP9,
        VP9_PQ,
        AC3,
        EAC3,
        OPUS,
        OPUS_51,
        FLAC,
    ] {
        assert_eq!(parse_hex(hex).sample_entry, decode_hex(hex));
    }
}

#[test]
fn annex_b_parameters_are_read() {
    let codec = parse_hex(AVC);
    let nal = codec.video().unwrap().nal.clone().unwrap();
    assert!(!nal.is_hevc);
    assert_eq!(nal.length_field_bytes, 4);
    let types: Vec<u8> = nal.parameter_sets.iter().map(|set| set[0] & 31).collect();
    assert_eq!(types, [7, 8]);
}

#[test]
fn refused_codecs_are_named_with_a_remedy() {
    let error = Codec::from_sample_entry(&decode_hex(PCM_QUICKTIME)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(
        error.message.contains("sowt") && error.message.contains("AAC"),
        "{error}"
    );
    let error = Codec::from_sample_entry(b"\0\0\0\x08encv").unwrap_err();
    assert!(error.message.contains("encrypted"), "{error}");
    let mut dts = decode_hex(AAC);
    let at = dts
        .windows(2)
        .position(|pair| pair == [0x40, 0x15])
        .unwrap();
    dts[at] = 0xa9;
    let error = Codec::from_sample_entry(&dts).unwrap_err();
    assert_eq!(
        (error.kind, error.location.as_str()),
        (ErrorKind::Unsupported, "mp4a")
    );
    assert!(error.message.contains("0xa9"), "{error}");
}

/// Returns the entry `hex` with one more child box.
fn with_box(hex: &str, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut entry = decode_hex(hex);
    crate::bytes::write_box(&mut entry, name, |out| out.extend_from_slice(body));
    let size = entry.len() as u32;
    entry[..4].copy_from_slice(&size.to_be_bytes());
    entry
}

#[test]
fn dolby_vision_strings_are_main_or_supplemental() {
    // Each case has an entry, the new four-letter code of the entry, and the Dolby Vision profile,
    // level and compatibility. The expected codec string and supplemental codec string follow.
    let hevc = "hvc1.2.4.L60.90";
    let cases = [
        (HVC1_PQ, b"hvc1", 8, 7, 1, hevc, Some("dvh1.08.07/db1p")),
        (HVC1_PQ, b"hvc1", 8, 3, 4, hevc, Some("dvh1.08.03/db4h")),
        (HVC1_PQ, b"hvc1", 8, 3, 2, hevc, Some("dvh1.08.03/db2g")),
        (
            HVC1_PQ,
            b"hev1",
            8,
            9,
            1,
            "hev1.2.4.L60.90",
            Some("dvhe.08.09/db1p"),
        ),
        (HVC1_PQ, b"hvc1", 7, 6, 6, hevc, None),
        (HVC1_PQ, b"dvh1", 5, 6, 0, "dvh1.05.06", None),
        (HVC1_PQ, b"dvhe", 5, 13, 0, "dvhe.05.13", None),
        (
            AVC,
            b"avc3",
            9,
            5,
            2,
            "avc3.64000C",
            Some("dvav.09.05/db2g"),
        ),
        (
            AV1_HLG,
            b"av01",
            10,
            9,
            4,
            "av01.0.00M.10.0.110.09.18.09.0",
            Some("dav1.10.09/db4h"),
        ),
        (AV1, b"dav1", 10, 1, 0, "dav1.10.01", None),
    ];
    for (hex, code, profile, level, compatibility, string, supplemental) in cases {
        let fields: u32 = profile << 25 | level << 19 | 0b101 << 16 | compatibility << 12;
        let body = [&[1, 0], &fields.to_be_bytes()[..], &[0; 18]].concat();
        let mut entry = with_box(hex, b"dvvC", &body);
        entry[4..8].copy_from_slice(code);
        let codec = Codec::from_sample_entry(&entry).unwrap();
        assert_eq!(
            (
                codec.codec_string.as_str(),
                codec.supplemental_codecs.as_deref()
            ),
            (string, supplemental)
        );
        assert_eq!(codec.sample_entry, entry);
    }
}

#[test]
fn eac3_reports_rear_surrounds_and_objects() {
    let cases: [(&[u8], &str, &str); 3] = [
        (
            &[0x0e, 0x00, 0x20, 0x0f, 0x00, 0x01, 0x10],
            "16/JOC",
            "F801",
        ),
        (&[0x0e, 0x00, 0x20, 0x0f, 0x02, 0x02], "8", "FA01"),
        (&[0x0e, 0x00, 0x20, 0x0e, 0x03, 0x00], "6", "F802"),
    ];
    for (body, hls, dash) in cases {
        let mut entry = decode_hex(EAC3)[..36].to_vec();
        crate::bytes::write_box(&mut entry, b"dec3", |out| out.extend_from_slice(body));
        entry[3] = entry.len() as u8;
        let codec = Codec::from_sample_entry(&entry).unwrap();
        let audio = codec.audio().unwrap();
        assert_eq!(
            (
                audio.hls_channels.as_str(),
                audio.dash_channel_configuration.1.as_str()
            ),
            (hls, dash)
        );
    }
}

#[rustfmt::skip]
const ALL: [&str; 26] = [
    AVC, AVC_PQ_SAR, AVC_QUICKTIME, AVC_INTERLACED, AVC_444, HVC1_PQ, HEV1_422, AV1, AV1_HLG, VP9,
    VP9_PQ, AAC, AAC_QUICKTIME, AAC_51, AAC_71, AAC_PCE_QUAD, AAC_PCE_61, MP3, MP3_QUICKTIME, AC3,
    AC3_QUICKTIME, EAC3, EAC3_QUICKTIME, OPUS, OPUS_51, FLAC,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn broken_entries_never_panic_and_parsed_ones_round_trip(
        which in 0..ALL.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut entry = decode_hex(ALL[which]);
        for (at, value) in changes {
            let at = at.index(entry.len());
            entry[at] = value;
        }
        if let Some(cut) = cut {
            entry.truncate(cut.index(entry.len()).max(8));
            let size = entry.len() as u32;
            entry[..4].copy_from_slice(&size.to_be_bytes());
        }
        if let Ok(codec) = Codec::from_sample_entry(&entry) {
            let again = Codec::from_sample_entry(&codec.sample_entry).unwrap();
            prop_assert_eq!(again.codec_string, codec.codec_string);
            prop_assert_eq!(again.sample_entry, codec.sample_entry);
        }
    }
}
