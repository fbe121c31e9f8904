//! Protected sample entries (ISO/IEC 14496-12, 8.12; ISO/IEC 23001-7, 8.2).

use super::{ProtectionParameters, ProtectionScheme};
use crate::bytes::{write_box, write_full_box};
use crate::codec::Codec;

/// `scheme_version` in `schm`: 1.0 for every scheme.
const SCHEME_VERSION: u32 = 0x0001_0000;
/// `default_crypt_byte_block` is 1 and `default_skip_byte_block` is 9, so one of ten cipher blocks
/// is encrypted.
const VIDEO_PATTERN: u8 = 0x19;

/// Appends the sample entry of a protected track. It is the sample entry of the codec, renamed to
/// `encv` or `enca`, with `sinf` as the last child box.
pub(crate) fn write_protected_entry(
    out: &mut Vec<u8>,
    codec: &Codec,
    protection: &ProtectionParameters,
) {
    let start = out.len();
    codec.write_sample_entry(out);
    let is_video = codec.video().is_some();
    let original: [u8; 4] = codec.fourcc;
    write_sinf(out, original, is_video, protection);
    let size = (out.len() - start) as u32;
    let name = if is_video { b"encv" } else { b"enca" };
    if let Some(header) = out.get_mut(start..start + 8) {
        header[..4].copy_from_slice(&size.to_be_bytes());
        header[4..].copy_from_slice(name);
    }
}

fn write_sinf(
    out: &mut Vec<u8>,
    original: [u8; 4],
    is_video: bool,
    protection: &ProtectionParameters,
) {
    write_box(out, b"sinf", |out| {
        write_box(out, b"frma", |out| out.extend_from_slice(&original));
        write_full_box(out, b"schm", 0, 0, |out| {
            out.extend_from_slice(protection.scheme.name().as_bytes());
            out.extend_from_slice(&SCHEME_VERSION.to_be_bytes());
        });
        write_box(out, b"schi", |out| write_tenc(out, is_video, protection));
    });
}

fn write_tenc(out: &mut Vec<u8>, is_video: bool, protection: &ProtectionParameters) {
    let is_pattern = protection.scheme == ProtectionScheme::Cbcs;
    write_full_box(out, b"tenc", is_pattern.into(), 0, |out| {
        let pattern = if is_pattern && is_video {
            VIDEO_PATTERN
        } else {
            0
        };
        // reserved, pattern, isProtected, Per_Sample_IV_Size
        out.extend_from_slice(&[0, pattern, 1, if is_pattern { 0 } else { 8 }]);
        out.extend_from_slice(&protection.key_id);
        if is_pattern {
            out.push(protection.iv.len() as u8);
            out.extend_from_slice(&protection.iv);
        }
    });
}
