//! CMAF init segments: ftyp and a moov without samples (ISO/IEC 23000-19, 7.3.1).

use super::moof::TRACK_ID;
use crate::bmff::dref::{self, Location};
use crate::bytes::{write_box, write_full_box};
use crate::codec::Media;
use crate::index::Track;

/// `cmfc`: CMAF; `iso6`: what its fragments use (default-base-is-moof, tfdt).
const FTYP: &[u8; 32] = b"\0\0\0\x20ftypcmfc\0\0\0\0iso6cmfcmp41dash";

/// The identity of ISO/IEC 14496-12, 8.3.2: 16.16 numbers, and 2.30 in the last column.
pub(crate) const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

pub(super) fn segment(track: &Track) -> Vec<u8> {
    let mut out = Vec::with_capacity(700 + track.codec.sample_entry.len());
    out.extend_from_slice(FTYP);
    write_box(&mut out, b"moov", |out| {
        mvhd(out, track);
        write_box(out, b"trak", |out| {
            tkhd(out, track);
            write_box(out, b"mdia", |out| mdia(out, track));
        });
        write_box(out, b"mvex", trex);
    });
    out
}

fn mvhd(out: &mut Vec<u8>, track: &Track) {
    write_full_box(out, b"mvhd", 0, 0, |out| {
        // creation, modification, timescale, duration (unknown: it is in fragments)
        put(out, &[0, 0, track.timescale, 0]);
        // rate 1.0, volume 1.0 and reserved, reserved
        put(out, &[0x1_0000, 0x0100_0000, 0, 0]);
        put(out, &MATRIX);
        put(out, &[0; 6]);
        put(out, &[TRACK_ID + 1]);
    });
}

fn tkhd(out: &mut Vec<u8>, track: &Track) {
    // enabled, in movie, in preview
    write_full_box(out, b"tkhd", 0, 7, |out| {
        // creation, modification, track_ID, reserved, duration, reserved, layer and group
        put(out, &[0, 0, TRACK_ID, 0, 0, 0, 0, 0]);
        let volume = if track.codec.audio().is_some() {
            0x0100_0000
        } else {
            0
        };
        put(out, &[volume]);
        put(out, &track.matrix.map(|value| value as u32));
        let (width, height) = display_size(track);
        put(out, &[width, height]);
    });
}

/// Width and height as shown, as 16.16 numbers: the sample aspect ratio is applied to the width.
pub(crate) fn display_size(track: &Track) -> (u32, u32) {
    let Some(video) = track.codec.video() else {
        return (0, 0);
    };
    let (across, down) = (video.sar.0.max(1), video.sar.1.max(1));
    let width = u128::from(video.width) * 65536 * u128::from(across) / u128::from(down);
    let fixed = |value: u128| u32::try_from(value).unwrap_or(u32::MAX);
    (fixed(width), fixed(u128::from(video.height) * 65536))
}

fn mdia(out: &mut Vec<u8>, track: &Track) {
    write_full_box(out, b"mdhd", 0, 0, |out| {
        put(out, &[0, 0, track.timescale, 0]);
        out.extend_from_slice(&packed_language(&track.language).to_be_bytes());
        out.extend_from_slice(&[0; 2]);
    });
    write_hdlr(out, track);
    write_box(out, b"minf", |out| minf(out, track));
}

/// What kind of track it is (ISO/IEC 14496-12, 8.4.3), and its extended language where it needs one.
pub(crate) fn write_hdlr(out: &mut Vec<u8>, track: &Track) {
    let (handler, name) = match &track.codec.media {
        Media::Video(_) => (b"vide", b"Video\0"),
        Media::Audio(_) => (b"soun", b"Audio\0"),
    };
    write_full_box(out, b"hdlr", 0, 0, |out| {
        put(out, &[0]);
        out.extend_from_slice(handler);
        put(out, &[0; 3]);
        out.extend_from_slice(name);
    });
    write_language(out, &track.language);
}

/// The extended language tag (8.4.6), where three letters do not say it all.
fn write_language(out: &mut Vec<u8>, language: &str) {
    if packed_language(language) == UND && language != "und" {
        write_full_box(out, b"elng", 0, 0, |out| {
            out.extend(language.bytes().filter(|byte| *byte != 0));
            out.push(0);
        });
    }
}

const UND: u16 = 0x55c4;

/// Three letters in five bits each (8.4.2.3); `und` for anything else.
pub(crate) fn packed_language(language: &str) -> u16 {
    match language.as_bytes() {
        letters @ [_, _, _] if letters.iter().all(u8::is_ascii_lowercase) => letters
            .iter()
            .fold(0, |packed, letter| (packed << 5) | u16::from(letter - 0x60)),
        _ => UND,
    }
}

fn minf(out: &mut Vec<u8>, track: &Track) {
    match &track.codec.media {
        // graphics mode: copy
        Media::Video(_) => write_full_box(out, b"vmhd", 0, 1, |out| put(out, &[0; 2])),
        // balance: centre
        Media::Audio(_) => write_full_box(out, b"smhd", 0, 0, |out| put(out, &[0])),
    }
    write_box(out, b"dinf", |out| {
        dref::write(out, &Location::Here);
    });
    write_box(out, b"stbl", |out| {
        write_full_box(out, b"stsd", 0, 0, |out| {
            put(out, &[1]);
            track.codec.write_entry(out);
        });
        for empty in [b"stts", b"stsc", b"stco"] {
            write_full_box(out, empty, 0, 0, |out| put(out, &[0]));
        }
        write_full_box(out, b"stsz", 0, 0, |out| put(out, &[0; 2]));
    });
}

fn trex(out: &mut Vec<u8>) {
    // Defaults that matter are in each tfhd.
    write_full_box(out, b"trex", 0, 0, |out| put(out, &[TRACK_ID, 1, 0, 0, 0]));
}

fn put(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::bmff::tkhd::Tkhd;
    use crate::fixtures;

    #[test]
    fn a_turned_picture_stays_turned() {
        let mut track = fixtures::video(1, 25, 100);
        track.matrix = [0, 0x1_0000, 0, -0x1_0000, 0, 0, 720 << 16, 0, 0x4000_0000];
        let init = super::segment(&track);
        let at = init.windows(4).position(|name| name == b"tkhd").unwrap();
        let tkhd = Tkhd::parse(&init[at + 4..]).unwrap();
        assert_eq!(tkhd.matrix, track.matrix);
    }
}
