//! Tests of AAC entries and their `AudioSpecificConfig`.

use super::*;

/// Builds an `mp4a` entry with this declared sampling rate and this `AudioSpecificConfig`.
pub(super) fn build_mp4a(declared: u16, config: &[u8]) -> Vec<u8> {
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

/// Declared sampling rate and configuration, followed by the expected codec string, decoded
/// sampling rate, number of channels and CICP layout.
type AacCase = (u16, &'static [u8], &'static str, u32, u32, &'static str);

/// Configurations encoded by hand according to ISO/IEC 14496-3, 1.6.2.1 and Table 1.19.
#[rustfmt::skip]
const AAC_CONFIGS: [AacCase; 13] = [
    (44_100, &[0x12, 0x10], "mp4a.40.2", 44_100, 2, "2"),
    // Hierarchical signalling of SBR over 24 kHz stereo, and of PS over 24 kHz mono.
    (48_000, &[0x2b, 0x11, 0x88, 0x00], "mp4a.40.5", 48_000, 2, "2"),
    (24_000, &[0xeb, 0x09, 0x88, 0x00], "mp4a.40.29", 48_000, 2, "2"),
    // Backward-compatible signalling of SBR, of SBR with PS, and of the absence of SBR.
    (24_000, &[0x13, 0x10, 0x56, 0xe5, 0x98], "mp4a.40.5", 48_000, 2, "2"),
    (24_000, &[0x13, 0x08, 0x56, 0xe5, 0x9d, 0x48, 0x80], "mp4a.40.29", 48_000, 2, "2"),
    (48_000, &[0x13, 0x10, 0x56, 0xe5, 0x00], "mp4a.40.2", 24_000, 2, "2"),
    // Implicit signalling, with and without SBR. Only the declared sampling rate reveals SBR.
    (48_000, &[0x13, 0x10], "mp4a.40.5", 48_000, 2, "2"),
    (24_000, &[0x13, 0x10], "mp4a.40.2", 24_000, 2, "2"),
    // A sampling rate coded in 24 bits (44100 Hz), and channel configurations 7, 11, 12 and 14.
    (44_100, &[0x17, 0x80, 0x56, 0x22, 0x10], "mp4a.40.2", 44_100, 2, "2"),
    (48_000, &[0x11, 0xb8], "mp4a.40.2", 48_000, 8, "7"),
    (48_000, &[0x11, 0xd8], "mp4a.40.2", 48_000, 7, "11"),
    (48_000, &[0x11, 0xe0], "mp4a.40.2", 48_000, 8, "12"),
    (48_000, &[0x11, 0xf0], "mp4a.40.2", 48_000, 8, "14"),
];

#[test]
fn aac_configurations_are_parsed() {
    for (declared, config, string, sample_rate, count, layout) in AAC_CONFIGS {
        let codec = Codec::from_sample_entry(&build_mp4a(declared, config)).unwrap();
        let audio = codec.audio().unwrap();
        let found = (
            codec.codec_string.as_str(),
            audio.sample_rate,
            audio.channel_count,
        );
        assert_eq!(found, (string, sample_rate, count), "{config:02x?}");
        assert_eq!(
            audio.dash_channel_configuration,
            (CICP, layout.to_owned()),
            "{config:02x?}"
        );
        assert_eq!(audio.audio_specific_config, config);
    }
    for broken in [&[][..], &[0x12], &[0x16, 0x90], &[0x17, 0x80, 0, 0, 0x10]] {
        assert!(
            Codec::from_sample_entry(&build_mp4a(48_000, broken)).is_err(),
            "{broken:02x?}"
        );
    }
}

#[test]
fn program_config_elements_give_channel_layouts() {
    for (hex, channels, layout) in [(AAC_PCE_QUAD, 4, "10"), (AAC_PCE_61, 7, "11")] {
        let codec = parse_hex(hex);
        let audio = codec.audio().unwrap();
        assert_eq!(
            (
                audio.channel_count,
                audio.dash_channel_configuration.1.as_str()
            ),
            (channels, layout)
        );
    }
}
