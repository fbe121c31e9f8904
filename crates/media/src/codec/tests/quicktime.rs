//! Tests of the conversion of QuickTime's entries to ISO form.

use super::aac::build_mp4a;
use super::*;

#[test]
fn quicktime_entries_become_iso_ones() {
    let iso = parse_hex(AAC).sample_entry;
    let from_quicktime = parse_hex(AAC_QUICKTIME).sample_entry;
    // The fixed fields before the sampling rate are equal, except the number of channels.
    assert_eq!(from_quicktime[4..32], {
        let mut head = iso[4..32].to_vec();
        head[21] = 1; // in ISO files, FFmpeg always writes 2 channels
        head
    });
    assert_eq!(&from_quicktime[40..44], b"esds");
    let again = Codec::from_sample_entry(&from_quicktime).unwrap();
    assert_eq!(
        (again.sample_entry, again.codec_string),
        (from_quicktime, "mp4a.40.2".to_owned())
    );

    let mp3 = parse_hex(MP3_QUICKTIME);
    assert_eq!(&mp3.fourcc, b"mp4a");
    let again = Codec::from_sample_entry(&mp3.sample_entry).unwrap();
    assert_eq!(again.audio().unwrap().coding, AudioCoding::Mp3);

    let avc = parse_hex(AVC_QUICKTIME).sample_entry;
    assert_eq!(avc[16..32], [0; 16]);
    assert_eq!(Codec::from_sample_entry(&avc).unwrap().sample_entry, avc);
}

#[test]
fn quicktime_video_loses_its_terminator_and_its_own_boxes() {
    let mut entry = decode_hex(AVC);
    entry[15] = 7; // data_reference_index
    let gama = b"\0\0\0\x0cgama\0\x02\x33\x33";
    entry.extend_from_slice(gama);
    entry.extend_from_slice(b"\0\0\0\x12colrnclc\0\x09\0\x10\0\x09\0\0\0\0");
    let size = entry.len() as u32;
    entry[..4].copy_from_slice(&size.to_be_bytes());
    let codec = Codec::from_sample_entry(&entry).unwrap();
    let mut expected = decode_hex(AVC);
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
fn quicktime_version_2_holds_rates_beyond_16_bits() {
    let mut fields = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 16];
    fields.extend_from_slice(&[0xff, 0xfe, 0, 0, 0, 1, 0, 0, 0, 0, 0, 72]);
    fields.extend_from_slice(&96_000f64.to_bits().to_be_bytes());
    fields.extend_from_slice(&[0, 0, 0, 2]);
    fields.extend_from_slice(&[
        0x7f, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1,
    ]);
    let iso = build_mp4a(0, &[0x10, 0x10]);
    let mut entry = Vec::new();
    crate::bytes::write_box(&mut entry, b"mp4a", |out| {
        out.extend_from_slice(&fields);
        crate::bytes::write_box(out, b"wave", |out| {
            out.extend_from_slice(b"\0\0\0\x0cfrmamp4a");
            out.extend_from_slice(&iso[36..]);
            out.extend_from_slice(&[0, 0, 0, 8, 0, 0, 0, 0]);
        });
    });
    let codec = Codec::from_sample_entry(&entry).unwrap();
    let audio = codec.audio().unwrap();
    assert_eq!((audio.sample_rate, audio.channel_count), (96_000, 2));
    assert_eq!(codec.sample_entry, iso, "96000 does not fit the field: 0");
}
