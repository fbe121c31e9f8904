//! Sample entries of real files and what must be read from them.

use super::vectors::*;
use super::*;
use crate::error::Kind;

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
