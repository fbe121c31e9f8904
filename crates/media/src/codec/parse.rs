//! Chooses the parser for a sample entry.

use super::audio_sample_entry::AudioSampleEntry;
use super::visual_sample_entry::VisualSampleEntry;
use super::{Codec, TextFormat, TrackFormat};
use super::{aac, ac3, av1, avc, child_boxes, eac3, flac, hevc, opus, vp9, vvc};
use crate::error::{Error, Result, format_fourcc};

impl Codec {
    /// Parses one sample entry, which is the whole box with its header, as stored in `stsd`
    /// (ISO/IEC 14496-12, 8.5.2).
    ///
    /// # Errors
    /// Returns `Unsupported` for entries that this crate cannot package, such as encrypted entries.
    /// The message contains the four-letter code. Returns `Malformed` or `Truncated` if the entry
    /// or its configuration is broken.
    pub fn from_sample_entry(entry: &[u8]) -> Result<Codec> {
        let (code, body) = child_boxes::split_code_and_body(entry)?;
        let visual = || VisualSampleEntry::parse(code, body);
        let audio = || AudioSampleEntry::parse(code, body);
        let codec = match &code {
            b"avc1" | b"avc3" | b"dva1" | b"dvav" => {
                visual().and_then(|entry| avc::parse_avc_entry(&entry))
            }
            b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => {
                visual().and_then(|entry| hevc::parse_hevc_entry(&entry))
            }
            b"av01" | b"dav1" => visual().and_then(|entry| av1::parse_av1_entry(&entry)),
            b"vp09" => visual().and_then(|entry| vp9::parse_vp9_entry(&entry)),
            b"vvc1" | b"vvi1" => visual().and_then(|entry| vvc::parse_vvc_entry(&entry)),
            b"ac-3" => audio().and_then(|entry| ac3::parse_ac3_entry(&entry)),
            b"ec-3" => audio().and_then(|entry| eac3::parse_eac3_entry(&entry)),
            b"Opus" => audio().and_then(|entry| opus::parse_opus_entry(&entry)),
            b"fLaC" => audio().and_then(|entry| flac::parse_flac_entry(&entry)),
            b"mp4a" => audio().and_then(|entry| aac::parse_mp4a_entry(&entry)),
            b".mp3" | b"mp3 " | b"ms\0\x55" => {
                audio().and_then(|entry| aac::parse_mp3_entry(&entry))
            }
            b"wvtt" => Ok(text_codec(code, entry, TextFormat::Wvtt)),
            b"stpp" => Ok(text_codec(code, entry, TextFormat::Stpp)),
            b"tx3g" => Ok(text_codec(code, entry, TextFormat::Tx3g)),
            _ => return Err(unsupported_codec_error(code)),
        };
        codec.map_err(|error| error.with_enclosing_box(code))
    }
}

/// Builds the codec of a text entry. The served entry is an exact copy.
fn text_codec(code: [u8; 4], entry: &[u8], format: TextFormat) -> Codec {
    Codec {
        fourcc: code,
        sample_entry: entry.to_vec(),
        codec_string: format_fourcc(code),
        supplemental_codecs: None,
        format: TrackFormat::Text(format),
    }
}

/// Creates the error for an entry that this crate cannot package. The message contains a remedy if
/// there is one.
fn unsupported_codec_error(code: [u8; 4]) -> Error {
    let hint = match &code {
        b"encv" | b"enca" => "is already encrypted; use the unencrypted file",
        b"mp4v" | b"s263" | b"ap4h" | b"apch" | b"apcn" | b"apcs" | b"apco" | b"jpeg" | b"mjpa" => {
            "cannot be played by browsers; encode the video as AVC, HEVC or AV1"
        }
        b"alac" | b"twos" | b"sowt" | b"lpcm" | b"ipcm" | b"fpcm" | b"in24" | b"fl32" | b"samr"
        | b"dtsc" | b"dtse" | b"dtsh" | b"dtsl" | b"mlpa" => {
            "cannot be played by browsers; encode the audio as AAC, or as FLAC without loss"
        }
        _ => "is not a supported codec",
    };
    Error::unsupported(format!("codec {} {hint}", format_fourcc(code)))
}
