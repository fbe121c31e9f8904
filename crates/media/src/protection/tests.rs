use super::base64_text::{decode_base64, encode_base64};
use super::sample_entry::write_protected_entry;
use super::slice_header_len::{ceil_log2, len_with_emulation_prevention};
use super::subsample_map::SubsampleCollector;
use super::*;
use crate::error::Result;
use crate::fixtures;
use proptest::prelude::*;

const KEY_ID: KeyId = [
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
];

fn protection(scheme: ProtectionScheme) -> ProtectionParameters {
    ProtectionParameters {
        scheme,
        key_id: KEY_ID,
        iv: [0x5a; 16],
    }
}

fn find<'a>(bytes: &'a [u8], name: &[u8; 4]) -> &'a [u8] {
    let at = bytes.windows(4).position(|window| window == name);
    let at = at.expect("the box exists") - 4;
    let size = u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    &bytes[at..at + size as usize]
}

#[test]
fn a_protected_entry_has_the_boxes_of_its_scheme() {
    let (cbcs, cenc) = (ProtectionScheme::Cbcs, ProtectionScheme::Cenc);
    let (avc, aac) = (
        fixtures::build_avc_test_codec(640, 360),
        fixtures::build_aac_test_codec(),
    );
    for (codec, scheme, name, original, sinf_len, tenc_fields) in [
        (
            &avc,
            cbcs,
            b"encv",
            b"avc1",
            97,
            [1, 0, 0, 0, 0, 0x19, 1, 0],
        ),
        (&aac, cbcs, b"enca", b"mp4a", 97, [1, 0, 0, 0, 0, 0, 1, 0]),
        (&avc, cenc, b"encv", b"avc1", 80, [0, 0, 0, 0, 0, 0, 1, 8]),
    ] {
        let mut entry = vec![0xee; 3];
        write_protected_entry(&mut entry, codec, &protection(scheme));
        let entry = &entry[3..];
        assert_eq!(&entry[4..8], name);
        assert_eq!(entry[..4], (entry.len() as u32).to_be_bytes());
        let sinf = find(entry, b"sinf");
        assert_eq!(sinf.len(), sinf_len);
        assert!(entry.ends_with(sinf), "sinf is the last child");
        assert_eq!(&find(sinf, b"frma")[8..], original);
        assert_eq!(&find(sinf, b"schm")[12..16], scheme.name().as_bytes());
        let tenc = find(sinf, b"tenc");
        assert_eq!(
            (&tenc[8..16], &tenc[16..32]),
            (&tenc_fields[..], &KEY_ID[..])
        );
        assert_eq!(tenc.len() > 32, scheme == cbcs);
    }
}

#[test]
fn key_ids_are_written_and_read_as_uuids() {
    let text = "00112233-4455-6677-8899-aabbccddeeff";
    assert_eq!(format_key_id(&KEY_ID), text);
    assert_eq!(parse_key_id(text), Some(KEY_ID));
    assert_eq!(
        parse_key_id(&text.to_uppercase().replace('-', "")),
        Some(KEY_ID)
    );
    for wrong in [
        "",
        "0011",
        "00112233-4455-6677-8899-aabbccddeefg",
        &format!("{text}00"),
    ] {
        assert_eq!(parse_key_id(wrong), None, "{wrong}");
    }
}

#[test]
fn base64_is_padded() {
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
    ] {
        assert_eq!(encode_base64(bytes.as_bytes()), text);
        assert_eq!(
            decode_base64(&format!(" {text}\n")),
            Some(bytes.as_bytes().to_vec())
        );
    }
    // The unused bits of the last character are ignored, even if they are set.
    assert_eq!(decode_base64("Zh=="), Some(b"f".to_vec()));
    for wrong in ["Zg", "Zg=", "Z===", "====", "Z=g=", "Zm9*"] {
        assert_eq!(decode_base64(wrong), None, "{wrong}");
    }
}

/// Shaka Packager 3.8.0 writes the expected bytes for `KEY_ID` with `--protection_systems
/// Widevine,CommonSystem`.
#[test]
fn pssh_boxes_equal_those_of_the_reference_packager() {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let widevine = SystemSignaling::new(ContentSystem::Widevine);
    let cbcs = widevine
        .pssh_box(&protection(ProtectionScheme::Cbcs))
        .expect("a box");
    let id = "00112233445566778899aabbccddeeff";
    assert_eq!(
        hex(&cbcs),
        format!(
            "0000003870737368{}edef8ba979d64acea3c827dcd51d21ed000000181210{id}48f3c6899b06",
            "00000000"
        )
    );
    let cenc = widevine
        .pssh_box(&protection(ProtectionScheme::Cenc))
        .expect("a box");
    assert!(hex(&cenc).ends_with("48e3dc959b06"));
    let common = SystemSignaling::new(ContentSystem::ClearKey);
    let common = common
        .pssh_box(&protection(ProtectionScheme::Cenc))
        .expect("a box");
    assert_eq!(
        hex(&common),
        format!("0000003470737368010000001077efecc0b24d02ace33c1e52e2fb4b00000001{id}00000000")
    );
}

#[test]
fn playready_headers_contain_the_little_endian_key_id() {
    let mut signal = SystemSignaling::new(ContentSystem::PlayReady);
    signal.license_url = Some("https://l.example/?a=1&b=2".to_owned());
    signal.checksum = Some([1, 2, 3, 4, 5, 6, 7, 8]);
    let header = |scheme| {
        let object = signal.playready_object(&protection(scheme));
        assert_eq!(object[..4], (object.len() as u32).to_le_bytes());
        assert_eq!(object[4..8], [1, 0, 1, 0]);
        let units = object[10..]
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        String::from_utf16(&units.collect::<Vec<_>>()).expect("UTF-16")
    };
    let guid = "MyIRAFVEd2aImaq7zN3u/w==";
    let cbcs = header(ProtectionScheme::Cbcs);
    assert!(
        cbcs.contains(&format!("<KID ALGID=\"AESCBC\" VALUE=\"{guid}\"></KID>")),
        "{cbcs}"
    );
    let cenc = header(ProtectionScheme::Cenc);
    assert!(
        cenc.contains(&format!(
            "<KID>{guid}</KID><CHECKSUM>AQIDBAUGBwg=</CHECKSUM>"
        )),
        "{cenc}"
    );
    assert!(
        cenc.contains("<LA_URL>https://l.example/?a=1&amp;b=2</LA_URL>"),
        "{cenc}"
    );
}

#[test]
fn emulation_prevention_counts_as_stored_bytes() {
    assert_eq!(len_with_emulation_prevention(&[1, 0, 0, 3, 1, 9, 9], 4), 5);
    assert_eq!(len_with_emulation_prevention(&[1, 0, 0, 3, 1, 9, 9], 3), 3);
    assert_eq!(len_with_emulation_prevention(&[1, 2], 9), 2);
    assert_eq!([0, 1, 2, 3, 4, 5].map(ceil_log2), [0, 0, 1, 2, 2, 3]);
}

fn collect(whole_blocks: bool, runs: &[(usize, usize)]) -> Vec<(u16, u32)> {
    let mut out = Vec::new();
    let mut collector = SubsampleCollector::new(&mut out, whole_blocks);
    for (clear, protected) in runs {
        collector.add_clear(*clear);
        collector.add_protected(*protected);
    }
    collector.finish();
    out.iter().map(|run| (run.clear, run.protected)).collect()
}

#[test]
fn unencrypted_runs_are_joined_and_split() {
    assert_eq!(collect(false, &[(30, 0), (12, 100)]), [(42, 100)]);
    assert_eq!(collect(false, &[(70_000, 5)]), [(65_535, 0), (4_465, 5)]);
    assert_eq!(collect(true, &[(10, 44)]), [(10, 32), (12, 0)]);
    assert_eq!(collect(true, &[(10, 15), (5, 16)]), [(30, 16)]);
}

/// A test cipher that marks the bytes that a real cipher would encrypt.
struct MarkingCipher;

impl Aes128Cipher for MarkingCipher {
    fn encrypt_ctr(&self, counter: [u8; 16], bytes: &mut [u8]) -> Result<()> {
        bytes.fill(counter[15]);
        Ok(())
    }

    fn block_cipher(&self) -> Result<impl BlockCipher> {
        Ok(MarkingCipher)
    }
}

impl BlockCipher for MarkingCipher {
    fn encrypt_blocks(&mut self, blocks: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!((blocks.len() % 16, out.len()), (0, blocks.len()));
        out.fill(0xff);
        Ok(())
    }
}

#[test]
fn the_pattern_starts_at_each_protected_run() {
    let (codec, protection) = (
        fixtures::build_avc_test_codec(640, 360),
        protection(ProtectionScheme::Cbcs),
    );
    let mut map = SubsampleMap::default();
    let run = |clear, protected| Subsample { clear, protected };
    map.push_sample(&[run(5, 180), run(3, 15)]);
    let mut payload = vec![0; 203];
    let sizes = [203].into_iter();
    encrypt_samples(
        &mut payload,
        (0, sizes),
        Some(&map),
        (&codec, &protection),
        &MarkingCipher,
    )
    .expect("matching sizes");
    let marked: Vec<usize> = (0..203).filter(|n| payload[*n] == 0xff).collect();
    assert_eq!(marked, (5..21).chain(165..181).collect::<Vec<_>>());
}

#[test]
fn the_counter_continues_over_the_runs_of_a_sample() {
    let (codec, mut protection) = (
        fixtures::build_avc_test_codec(640, 360),
        protection(ProtectionScheme::Cenc),
    );
    protection.iv = [0; 16];
    let mut map = SubsampleMap::default();
    let run = |clear, protected| Subsample { clear, protected };
    map.push_sample(&[run(1, 32), run(1, 16), run(2, 16)]);
    let mut payload = vec![9; 68];
    let sizes = [68].into_iter();
    encrypt_samples(
        &mut payload,
        (7, sizes),
        Some(&map),
        (&codec, &protection),
        &MarkingCipher,
    )
    .expect("matching sizes");
    assert_eq!((payload[1], payload[34], payload[52]), (0, 2, 3));
    assert_eq!(protection.sample_iv(7), 7u64.to_be_bytes());
}

#[test]
fn codecs_without_rules_are_refused_by_name() {
    let error = SubsampleParser::new(
        &fixtures::build_vp9_test_codec(),
        &protection(ProtectionScheme::Cbcs),
    );
    let error = error.expect_err("VP9 has no rules yet");
    assert_eq!(
        error.message,
        "codec vp09 cannot be protected yet; encode the video as AVC or HEVC"
    );
}

#[test]
fn avc_slices_that_would_stay_unencrypted_are_refused_by_name() {
    let codec = fixtures::build_avc_test_codec(640, 360);
    for scheme in [ProtectionScheme::Cbcs, ProtectionScheme::Cenc] {
        let parser = SubsampleParser::new(&codec, &protection(scheme)).expect("known codec");
        let parser = parser.expect("video has subsamples");
        let add = |unit_type: u8| {
            let nal = [&[0, 0, 0, 9, 0x60 | unit_type][..], &[0x80; 8]].concat();
            parser
                .clone()
                .add_sample(&nal)
                .map_err(|error| error.message)
        };
        for (unit_type, feature) in [
            (19, "AVC with auxiliary pictures"),
            (20, "AVC with several layers"),
            (21, "AVC with several layers"),
        ] {
            let message = format!("{feature} cannot be protected; encode the video without it");
            assert_eq!(add(unit_type), Err(message));
        }
        // SEI messages, prefix NAL units and unspecified NAL units stay unencrypted.
        for unit_type in [6, 9, 14, 24] {
            assert_eq!(add(unit_type), Ok(()));
        }
    }
}

proptest! {
    #[test]
    fn damaged_samples_never_panic(sample in prop::collection::vec(any::<u8>(), 0..200), hevc: bool) {
        let codec = match hevc {
            true => fixtures::build_hevc_pq_test_codec(),
            false => fixtures::build_avc_test_codec(640, 360),
        };
        let parser = SubsampleParser::new(&codec, &protection(ProtectionScheme::Cbcs)).expect("known codec");
        let mut parser = parser.expect("video has subsamples");
        let mut nal = (sample.len() as u32).to_be_bytes().to_vec();
        nal.extend_from_slice(&sample);
        if parser.add_sample(&nal).is_ok() {
            let map = parser.finish();
            let bytes: u64 = map.samples().flatten().map(|run| u64::from(run.clear) + u64::from(run.protected)).sum();
            prop_assert_eq!(bytes, nal.len() as u64);
        }
        let parser = SubsampleParser::new(&codec, &protection(ProtectionScheme::Cenc)).expect("known codec");
        // Parses the random bytes as NAL units, most of which have impossible lengths.
        let _ = parser.expect("video has subsamples").add_sample(&sample);
    }
}
