//! Dolby Vision: the configuration boxes dvcC, dvvC and dvwC, and the codec strings that follow
//! from them ("Dolby Vision Streams Within the ISO Base Media File Format", 2.2 and 3;
//! "Dolby Vision Profiles and Levels"; HLS `SUPPLEMENTAL-CODECS`, RFC 8216bis 4.4.6.2).

use super::bits::Bits;
use super::visual_entry::VisualEntry;

/// Codec strings that a Dolby Vision configuration gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    /// The main codec string, where only Dolby Vision decoders can show the track.
    pub main: Option<String>,
    /// What players of Dolby Vision may take it for, where other players show its base layer.
    pub supplemental: Option<String>,
}

/// What the entry's Dolby Vision box, if it has one, says about codec strings.
pub fn strings(entry: &VisualEntry<'_>) -> Strings {
    let children = &entry.children;
    let boxes = [b"dvcC", b"dvvC", b"dvwC"];
    let Some(body) = boxes.into_iter().find_map(|name| children.find(name)) else {
        return Strings::default();
    };
    let mut bits = Bits::new(body);
    bits.skip(16); // dv_version
    let (profile, level) = (bits.u(7), bits.u(6));
    bits.skip(3); // rpu, el and bl present
    let compatibility = bits.u(4);
    if bits.short() {
        return Strings::default();
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
        _ => return Strings::default(),
    };
    let string = format!("{code}.{profile:02}.{level:02}");
    if only_dolby {
        return Strings {
            main: Some(string),
            supplemental: None,
        };
    }
    // Base layers that other players show: HDR10, SDR, HLG.
    let brand = match compatibility {
        1 => "db1p",
        2 => "db2g",
        4 => "db4h",
        _ => return Strings::default(),
    };
    Strings {
        main: None,
        supplemental: Some(format!("{string}/{brand}")),
    }
}
