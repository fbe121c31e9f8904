//! CMAF init segments: `ftyp` and a `moov` without samples (ISO/IEC 23000-19, 7.3.1).

use super::TRACK_ID;
use crate::bmff::dref::{self, DataReference};
use crate::bytes::{write_box, write_full_box};
use crate::codec::{TextFormat, TrackFormat};
use crate::index::Track;
use crate::protection::{TrackSignaling, write_protected_entry};

/// `cmfc` declares CMAF. `iso6` declares the features that CMAF fragments use: default-base-is-moof
/// and tfdt.
const FTYP: &[u8; 32] = b"\0\0\0\x20ftypcmfc\0\0\0\0iso6cmfcmp41dash";

/// The identity matrix (ISO/IEC 14496-12, 8.3.2). Its numbers are fixed-point numbers in the format
/// 16.16, or 2.30 in the last column.
pub(crate) const IDENTITY_MATRIX_WORDS: [u32; 9] =
    [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

pub(crate) fn write_init_segment(track: &Track, signaling: Option<&TrackSignaling>) -> Vec<u8> {
    let mut out = Vec::with_capacity(700 + track.codec.sample_entry.len());
    write_ftyp(&mut out, track);
    write_box(&mut out, b"moov", |out| {
        write_mvhd(out, track);
        write_box(out, b"trak", |out| {
            write_tkhd(out, track);
            write_box(out, b"mdia", |out| write_mdia(out, track, signaling));
        });
        write_box(out, b"mvex", write_mvex_content);
        for pssh in signaling.iter().flat_map(|signaling| &signaling.pssh_boxes) {
            out.extend_from_slice(pssh);
        }
    });
    out
}

/// Writes the brands. Text tracks also declare their CMAF media profile, which is WebVTT or IMSC
/// text.
fn write_ftyp(out: &mut Vec<u8>, track: &Track) {
    let profile = match &track.codec.format {
        TrackFormat::Text(TextFormat::Wvtt) => b"cwvt",
        TrackFormat::Text(TextFormat::Stpp) => b"im1t",
        _ => return out.extend_from_slice(FTYP),
    };
    write_box(out, b"ftyp", |out| {
        out.extend_from_slice(&FTYP[8..]);
        out.extend_from_slice(profile);
    });
}

fn write_mvhd(out: &mut Vec<u8>, track: &Track) {
    write_full_box(out, b"mvhd", 0, 0, |out| {
        // creation, modification, timescale, duration (0, because all samples are in fragments)
        write_words(out, &[0, 0, track.timescale, 0]);
        // rate 1.0, volume 1.0, reserved fields
        write_words(out, &[0x1_0000, 0x0100_0000, 0, 0]);
        write_words(out, &IDENTITY_MATRIX_WORDS);
        write_words(out, &[0; 6]);
        write_words(out, &[TRACK_ID + 1]);
    });
}

fn write_tkhd(out: &mut Vec<u8>, track: &Track) {
    // flags: track enabled, in movie, in preview
    write_full_box(out, b"tkhd", 0, 7, |out| {
        // creation, modification, track_ID, reserved, duration, reserved, layer and alternate group
        write_words(out, &[0, 0, TRACK_ID, 0, 0, 0, 0, 0]);
        let volume = if track.codec.audio().is_some() {
            0x0100_0000
        } else {
            0
        };
        write_words(out, &[volume]);
        write_words(out, &track.matrix.map(|value| value as u32));
        let (width, height) = display_size(track);
        write_words(out, &[width, height]);
    });
}

/// Returns the display width and height as fixed-point numbers in the format 16.16. The sample
/// aspect ratio changes only the width.
pub(crate) fn display_size(track: &Track) -> (u32, u32) {
    let Some(video) = track.codec.video() else {
        return (0, 0);
    };
    let (across, down) = (video.sar.0.max(1), video.sar.1.max(1));
    let width = u128::from(video.width) * 65536 * u128::from(across) / u128::from(down);
    let fixed = |value: u128| u32::try_from(value).unwrap_or(u32::MAX);
    (fixed(width), fixed(u128::from(video.height) * 65536))
}

fn write_mdia(out: &mut Vec<u8>, track: &Track, signaling: Option<&TrackSignaling>) {
    write_full_box(out, b"mdhd", 0, 0, |out| {
        write_words(out, &[0, 0, track.timescale, 0]);
        out.extend_from_slice(&pack_language(&track.language).to_be_bytes());
        out.extend_from_slice(&[0; 2]);
    });
    write_hdlr(out, track);
    write_box(out, b"minf", |out| write_minf(out, track, signaling));
}

/// Writes the handler type of a track (ISO/IEC 14496-12, 8.4.3), and the extended language tag if
/// necessary.
pub(crate) fn write_hdlr(out: &mut Vec<u8>, track: &Track) {
    let (handler, name) = match &track.codec.format {
        TrackFormat::Video(_) => (b"vide", b"Video\0"),
        TrackFormat::Audio(_) => (b"soun", b"Audio\0"),
        TrackFormat::Text(TextFormat::Wvtt) => (b"text", b"Texts\0"),
        TrackFormat::Text(TextFormat::Stpp) => (b"subt", b"Texts\0"),
        TrackFormat::Text(TextFormat::Tx3g) => (b"sbtl", b"Texts\0"),
    };
    write_full_box(out, b"hdlr", 0, 0, |out| {
        write_words(out, &[0]);
        out.extend_from_slice(handler);
        write_words(out, &[0; 3]);
        out.extend_from_slice(name);
    });
    write_elng(out, &track.language);
}

/// Writes the extended language tag (8.4.6), unless three letters express the language.
fn write_elng(out: &mut Vec<u8>, language: &str) {
    if pack_language(language) == PACKED_UND && language != "und" {
        write_full_box(out, b"elng", 0, 0, |out| {
            out.extend(language.bytes().filter(|byte| *byte != 0));
            out.push(0);
        });
    }
}

const PACKED_UND: u16 = 0x55c4;

/// Packs a language code of three letters into five bits per letter (8.4.2.3). Any other tag is
/// packed as `und`.
pub(crate) fn pack_language(language: &str) -> u16 {
    match language.as_bytes() {
        letters @ [_, _, _] if letters.iter().all(u8::is_ascii_lowercase) => letters
            .iter()
            .fold(0, |packed, letter| (packed << 5) | u16::from(letter - 0x60)),
        _ => PACKED_UND,
    }
}

fn write_minf(out: &mut Vec<u8>, track: &Track, signaling: Option<&TrackSignaling>) {
    match &track.codec.format {
        // graphics mode: copy
        TrackFormat::Video(_) => {
            write_full_box(out, b"vmhd", 0, 1, |out| write_words(out, &[0; 2]))
        }
        // balance: centre
        TrackFormat::Audio(_) => write_full_box(out, b"smhd", 0, 0, |out| write_words(out, &[0])),
        TrackFormat::Text(TextFormat::Stpp) => write_full_box(out, b"sthd", 0, 0, |_| {}),
        TrackFormat::Text(_) => write_full_box(out, b"nmhd", 0, 0, |_| {}),
    }
    write_box(out, b"dinf", |out| {
        dref::write_dref(out, &DataReference::SameFile);
    });
    write_box(out, b"stbl", |out| {
        write_full_box(out, b"stsd", 0, 0, |out| {
            write_words(out, &[1]);
            match (&track.protection, signaling) {
                (_, Some(signaling)) if !signaling.is_of_source => {
                    write_protected_entry(out, &track.codec, &signaling.protection);
                }
                (Some(source), _) => source.entry.write_entry(out, &track.codec),
                (None, _) => track.codec.write_sample_entry(out),
            }
        });
        for empty in [b"stts", b"stsc", b"stco"] {
            write_full_box(out, empty, 0, 0, |out| write_words(out, &[0]));
        }
        write_full_box(out, b"stsz", 0, 0, |out| write_words(out, &[0; 2]));
    });
}

fn write_mvex_content(out: &mut Vec<u8>) {
    // The defaults here are 0, because each `tfhd` contains the defaults of its fragment.
    write_full_box(out, b"trex", 0, 0, |out| {
        write_words(out, &[TRACK_ID, 1, 0, 0, 0])
    });
}

fn write_words(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::bmff::tkhd::Tkhd;
    use crate::fixtures;

    #[test]
    fn a_rotated_picture_keeps_its_matrix() {
        let mut track = fixtures::build_video_track(1, 25, 100);
        track.matrix = [0, 0x1_0000, 0, -0x1_0000, 0, 0, 720 << 16, 0, 0x4000_0000];
        let init = super::write_init_segment(&track, None);
        let at = init.windows(4).position(|name| name == b"tkhd").unwrap();
        let tkhd = Tkhd::parse(&init[at + 4..]).unwrap();
        assert_eq!(tkhd.matrix, track.matrix);
    }
}
