//! Sample entries of real files and what must be read from them.

use super::vectors::*;
use super::*;
use crate::error::Kind;
use proptest::prelude::*;

/// Bytes of a hexadecimal vector.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn parse(hex: &str) -> Codec {
    Codec::parse(&bytes(hex)).unwrap()
}

/// Codec string, size, pixel shape and colour of a video entry.
type Seen<'a> = (&'a str, u32, u32, (u32, u32), Option<(u8, u8, u8, bool)>);

#[rustfmt::skip]
const VIDEO: [(&str, Seen<'_>); 11] = [
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
fn video_facts() {
    for (hex, seen) in VIDEO {
        let codec = parse(hex);
        assert_eq!(
            (seen_of(&codec), codec.supplemental.as_deref()),
            (seen, None)
        );
    }
}

#[test]
fn parameter_sets_say_what_the_entry_does_not() {
    for hex in [AVC_PQ_SAR, HVC1_PQ, HEV1_422, AV1_HLG] {
        let whole = parse(hex);
        let mut entry = bytes(hex);
        for name in [b"pasp", b"colr"] {
            if let Some(at) = entry.windows(4).position(|four| four == name) {
                entry[at..at + 4].copy_from_slice(b"free");
            }
        }
        let codec = Codec::parse(&entry).unwrap();
        assert_eq!(seen_of(&codec), seen_of(&whole));
    }
}

fn seen_of(codec: &Codec) -> Seen<'_> {
    let video = codec.video().unwrap();
    let color = video.color;
    let color = color.map(|c| (c.primaries, c.transfer, c.matrix, c.full_range));
    (&codec.string, video.width, video.height, video.sar, color)
}

const CICP: &str = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
const DOLBY: &str = "tag:dolby.com,2014:dash:audio_channel_configuration:2011";

/// Entry, coding, codec string, HLS channels, scheme and value of DASH channels; all at 48 kHz.
type Heard = (
    &'static str,
    AudioCoding,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const AUDIO: [Heard; 13] = [
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
fn audio_facts() {
    for (hex, coding, string, hls, scheme, value) in AUDIO {
        let codec = parse(hex);
        let audio = codec.audio().unwrap();
        assert_eq!((audio.coding, codec.string.as_str()), (coding, string));
        assert_eq!(
            (audio.sample_rate, audio.hls_channels.as_str()),
            (48_000, hls)
        );
        assert_eq!(audio.dash_channels, (scheme, value.to_owned()), "{string}");
    }
}

#[test]
fn iso_entries_stay_as_they_are() {
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
        assert_eq!(parse(hex).sample_entry, bytes(hex));
    }
}

#[test]
fn quicktime_entries_become_iso_ones() {
    let iso = parse(AAC).sample_entry;
    let from_quicktime = parse(AAC_QUICKTIME).sample_entry;
    // The same fields, and an esds box that differs only in what FFmpeg names the track there.
    assert_eq!(from_quicktime[4..32], {
        let mut head = iso[4..32].to_vec();
        head[21] = 1; // FFmpeg writes 2 channels for any number in ISO files
        head
    });
    assert_eq!(&from_quicktime[40..44], b"esds");
    let again = Codec::parse(&from_quicktime).unwrap();
    assert_eq!(
        (again.sample_entry, again.string),
        (from_quicktime, "mp4a.40.2".to_owned())
    );

    let mp3 = parse(MP3_QUICKTIME);
    assert_eq!(&mp3.fourcc, b"mp4a");
    let again = Codec::parse(&mp3.sample_entry).unwrap();
    assert_eq!(again.audio().unwrap().coding, AudioCoding::Mp3);

    let avc = parse(AVC_QUICKTIME).sample_entry;
    assert_eq!(avc[16..32], [0; 16]);
    assert_eq!(Codec::parse(&avc).unwrap().sample_entry, avc);
}

#[test]
fn quicktime_video_loses_its_terminator_and_its_own_boxes() {
    let mut entry = bytes(AVC);
    entry[15] = 7; // data_reference_index
    let gama = b"\0\0\0\x0cgama\0\x02\x33\x33";
    entry.extend_from_slice(gama);
    entry.extend_from_slice(b"\0\0\0\x12colrnclc\0\x09\0\x10\0\x09\0\0\0\0");
    let size = entry.len() as u32;
    entry[..4].copy_from_slice(&size.to_be_bytes());
    let codec = Codec::parse(&entry).unwrap();
    let mut expected = bytes(AVC);
    expected.extend_from_slice(b"\0\0\0\x13colrnclx\0\x09\0\x10\0\x09\0");
    let size = expected.len() as u32;
    expected[..4].copy_from_slice(&size.to_be_bytes());
    assert_eq!(codec.sample_entry, expected);
    assert_eq!(
        codec.video().unwrap().color.map(|color| color.transfer),
        Some(16)
    );
}

#[test]
fn what_annex_b_needs() {
    let codec = parse(AVC);
    let nal = codec.video().unwrap().nal.clone().unwrap();
    assert!(!nal.hevc);
    assert_eq!(nal.length_bytes, 4);
    let types: Vec<u8> = nal.parameter_sets.iter().map(|set| set[0] & 31).collect();
    assert_eq!(types, [7, 8]);
}

#[test]
fn refusals_name_the_code_and_a_way_out() {
    let error = Codec::parse(&bytes(PCM_QUICKTIME)).unwrap_err();
    assert_eq!(error.kind, Kind::Unsupported);
    assert!(
        error.what.contains("sowt") && error.what.contains("AAC"),
        "{error}"
    );
    let error = Codec::parse(b"\0\0\0\x08encv").unwrap_err();
    assert!(error.what.contains("encrypted"), "{error}");
    let mut dts = bytes(AAC);
    let at = dts
        .windows(2)
        .position(|pair| pair == [0x40, 0x15])
        .unwrap();
    dts[at] = 0xa9;
    let error = Codec::parse(&dts).unwrap_err();
    assert_eq!(
        (error.kind, error.place.as_str()),
        (Kind::Unsupported, "mp4a")
    );
    assert!(error.what.contains("0xa9"), "{error}");
}

/// An mp4a entry of this declared rate around an `AudioSpecificConfig`.
fn mp4a(declared: u16, config: &[u8]) -> Vec<u8> {
    use crate::bytes::{write_box, write_full_box};
    let mut out = Vec::new();
    write_box(&mut out, b"mp4a", |out| {
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 16]);
        out.extend_from_slice(&[0, 0, 0, 0]);
        out.extend_from_slice(&[declared.to_be_bytes(), [0, 0]].concat());
        write_full_box(out, b"esds", 0, 0, |out| {
            let len = config.len() as u8;
            out.extend_from_slice(&[3, 20 + len, 0, 0, 0, 4, 15 + len, 0x40, 0x15]);
            out.extend_from_slice(&[0; 11]);
            out.extend_from_slice(&[5, len]);
            out.extend_from_slice(config);
        });
    });
    out
}

/// Declared rate, configuration, then codec string, rate and channels as a decoder gives them,
/// and the CICP layout.
type Config = (u16, &'static [u8], &'static str, u32, u32, &'static str);

/// Configurations written out from ISO/IEC 14496-3, 1.6.2.1 and Table 1.19.
#[rustfmt::skip]
const AAC_CONFIGS: [Config; 13] = [
    (44_100, &[0x12, 0x10], "mp4a.40.2", 44_100, 2, "2"),
    // hierarchical: SBR over 24 kHz stereo, PS over 24 kHz mono
    (48_000, &[0x2b, 0x11, 0x88, 0x00], "mp4a.40.5", 48_000, 2, "2"),
    (24_000, &[0xeb, 0x09, 0x88, 0x00], "mp4a.40.29", 48_000, 2, "2"),
    // backward compatible: SBR, SBR and PS, and the word that there is no SBR
    (24_000, &[0x13, 0x10, 0x56, 0xe5, 0x98], "mp4a.40.5", 48_000, 2, "2"),
    (24_000, &[0x13, 0x08, 0x56, 0xe5, 0x9d, 0x48, 0x80], "mp4a.40.29", 48_000, 2, "2"),
    (48_000, &[0x13, 0x10, 0x56, 0xe5, 0x00], "mp4a.40.2", 24_000, 2, "2"),
    // implicit: only the declared rate tells
    (48_000, &[0x13, 0x10], "mp4a.40.5", 48_000, 2, "2"),
    (24_000, &[0x13, 0x10], "mp4a.40.2", 24_000, 2, "2"),
    // a rate of 24 bits (44100) and channel configurations 7, 11, 12, 14
    (44_100, &[0x17, 0x80, 0x56, 0x22, 0x10], "mp4a.40.2", 44_100, 2, "2"),
    (48_000, &[0x11, 0xb8], "mp4a.40.2", 48_000, 8, "7"),
    (48_000, &[0x11, 0xd8], "mp4a.40.2", 48_000, 7, "11"),
    (48_000, &[0x11, 0xe0], "mp4a.40.2", 48_000, 8, "12"),
    (48_000, &[0x11, 0xf0], "mp4a.40.2", 48_000, 8, "14"),
];

#[test]
fn aac_configurations() {
    for (declared, config, string, sample_rate, count, layout) in AAC_CONFIGS {
        let codec = Codec::parse(&mp4a(declared, config)).unwrap();
        let audio = codec.audio().unwrap();
        let found = (codec.string.as_str(), audio.sample_rate, audio.channels);
        assert_eq!(found, (string, sample_rate, count), "{config:02x?}");
        assert_eq!(
            audio.dash_channels,
            (CICP, layout.to_owned()),
            "{config:02x?}"
        );
        assert_eq!(audio.aac_config, config);
    }
    for broken in [&[][..], &[0x12], &[0x16, 0x90], &[0x17, 0x80, 0, 0, 0x10]] {
        assert!(
            Codec::parse(&mp4a(48_000, broken)).is_err(),
            "{broken:02x?}"
        );
    }
}

#[test]
fn channels_of_program_config_elements() {
    for (hex, channels, layout) in [(AAC_PCE_QUAD, 4, "10"), (AAC_PCE_61, 7, "11")] {
        let codec = parse(hex);
        let audio = codec.audio().unwrap();
        assert_eq!(
            (audio.channels, audio.dash_channels.1.as_str()),
            (channels, layout)
        );
    }
}

/// The entry with one more box at its end.
fn with_box(hex: &str, name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut entry = bytes(hex);
    crate::bytes::write_box(&mut entry, name, |out| out.extend_from_slice(body));
    let size = entry.len() as u32;
    entry[..4].copy_from_slice(&size.to_be_bytes());
    entry
}

#[test]
fn dolby_vision_is_main_or_supplemental() {
    // code of the entry, profile, level, compatibility → codec string, supplemental
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
        let codec = Codec::parse(&entry).unwrap();
        assert_eq!(
            (codec.string.as_str(), codec.supplemental.as_deref()),
            (string, supplemental)
        );
        assert_eq!(codec.sample_entry, entry);
    }
}

#[test]
fn eac3_with_rear_surrounds_and_with_objects() {
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
        let mut entry = bytes(EAC3)[..36].to_vec();
        crate::bytes::write_box(&mut entry, b"dec3", |out| out.extend_from_slice(body));
        entry[3] = entry.len() as u8;
        let codec = Codec::parse(&entry).unwrap();
        let audio = codec.audio().unwrap();
        assert_eq!(
            (audio.hls_channels.as_str(), audio.dash_channels.1.as_str()),
            (hls, dash)
        );
    }
}

#[test]
fn quicktime_version_2_tells_rates_beyond_16_bits() {
    let mut fields = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 16];
    fields.extend_from_slice(&[0xff, 0xfe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 72]);
    fields.extend_from_slice(&96_000f64.to_bits().to_be_bytes());
    fields.extend_from_slice(&[0, 0, 0, 2]);
    fields.extend_from_slice(&[
        0x7f, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1,
    ]);
    let iso = mp4a(0, &[0x10, 0x10]);
    let mut entry = Vec::new();
    crate::bytes::write_box(&mut entry, b"mp4a", |out| {
        out.extend_from_slice(&fields);
        crate::bytes::write_box(out, b"wave", |out| {
            out.extend_from_slice(b"\0\0\0\x0cfrmamp4a");
            out.extend_from_slice(&iso[36..]);
            out.extend_from_slice(&[0, 0, 0, 8, 0, 0, 0, 0]);
        });
    });
    let codec = Codec::parse(&entry).unwrap();
    let audio = codec.audio().unwrap();
    assert_eq!((audio.sample_rate, audio.channels), (96_000, 2));
    assert_eq!(codec.sample_entry, iso, "96000 does not fit the field: 0");
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
    fn broken_entries_never_panic_and_what_is_read_reads_back(
        which in 0..ALL.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut entry = bytes(ALL[which]);
        for (at, value) in changes {
            let at = at.index(entry.len());
            entry[at] = value;
        }
        if let Some(cut) = cut {
            entry.truncate(cut.index(entry.len()).max(8));
            let size = entry.len() as u32;
            entry[..4].copy_from_slice(&size.to_be_bytes());
        }
        if let Ok(codec) = Codec::parse(&entry) {
            let again = Codec::parse(&codec.sample_entry).unwrap();
            prop_assert_eq!(again.string, codec.string);
            prop_assert_eq!(again.sample_entry, codec.sample_entry);
        }
    }
}
