//! Codec strings of Dolby Vision, from the configuration boxes `dvcC`, `dvvC` and `dvwC`.
//!
//! See "Dolby Vision Streams Within the ISO Base Media File Format", 2.2 and 3; "Dolby Vision
//! Profiles and Levels"; and HLS `SUPPLEMENTAL-CODECS`, RFC 8216bis, 4.4.6.2.

use super::bit_reader::BitReader;
use super::visual_sample_entry::VisualSampleEntry;

/// Codec strings of a Dolby Vision configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DolbyVisionStrings {
    /// The main codec string, if only Dolby Vision decoders can decode the track.
    pub main_codec_string: Option<String>,
    /// The supplemental codec string, if other decoders can decode the base layer.
    pub supplemental_codecs: Option<String>,
}

/// Reads the codec strings from the Dolby Vision box of an entry. Both strings are `None` if there
/// is no valid box.
pub fn read_dolby_vision_strings(entry: &VisualSampleEntry<'_>) -> DolbyVisionStrings {
    let children = &entry.children;
    let boxes = [b"dvcC", b"dvvC", b"dvwC"];
    let Some(body) = boxes.into_iter().find_map(|name| children.find_body(name)) else {
        return DolbyVisionStrings::default();
    };
    let mut bits = BitReader::new(body);
    bits.skip(16); // dv_version
    let (profile, level) = (bits.read_bits(7), bits.read_bits(6));
    bits.skip(3); // rpu_present_flag, el_present_flag, bl_present_flag
    let compatibility = bits.read_bits(4);
    if bits.is_past_end() {
        return DolbyVisionStrings::default();
    }
    let (code, only_dolby) = match &entry.code {
        b"avc1" => ("dva1", false),
        b"avc3" => ("dvav", false),
        b"hvc1" => ("dvh1", false),
        b"hev1" => ("dvhe", false),
        b"av01" => ("dav1", false),
        b"dva1" => ("dva1", true),
        b"dvav" => ("dvav", true),
        b"dvh1" => ("dvh1", true),
        b"dvhe" => ("dvhe", true),
        b"dav1" => ("dav1", true),
        _ => return DolbyVisionStrings::default(),
    };
    let string = format!("{code}.{profile:02}.{level:02}");
    if only_dolby {
        return DolbyVisionStrings {
            main_codec_string: Some(string),
            supplemental_codecs: None,
        };
    }
    // Players without Dolby Vision can show these base layers, which are HDR10, SDR and HLG.
    let brand = match compatibility {
        1 => "db1p",
        2 => "db2g",
        4 => "db4h",
        _ => return DolbyVisionStrings::default(),
    };
    DolbyVisionStrings {
        main_codec_string: None,
        supplemental_codecs: Some(format!("{string}/{brand}")),
    }
}
