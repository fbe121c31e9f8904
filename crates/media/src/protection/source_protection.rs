//! Tracks whose source is already encrypted. The boxes that describe the encryption are copied
//! unchanged.

use super::senc_table::SencTable;
use super::subsample_map::BLOCK_BYTES;
use super::{
    ContentSystem, KeyId, ProtectionParameters, ProtectionScheme, SystemSignaling, format_key_id,
};
use crate::bytes::ByteReader;
use crate::codec::Codec;
use crate::codec::child_boxes::{ChildBoxes, split_code_and_body};
use crate::error::{Error, Result, format_fourcc};

/// Length of the fields before the child boxes of a visual and of an audio sample entry, in bytes
/// (ISO/IEC 14496-12, 12).
const VISUAL_FIELDS_BYTES: usize = 78;
const AUDIO_FIELDS_BYTES: usize = 28;
/// Maximum number of `pssh` boxes of a film, and maximum size of each box in bytes.
const PSSH_BOXES_MAX: usize = 64;
const PSSH_BYTES_MAX: usize = 64 << 10;
/// Length of a `pssh` box without key ids and without data, in bytes (ISO/IEC 23001-7, 8.1).
const PSSH_BYTES_MIN: usize = 32;

/// The protection that a track already has in its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceProtection {
    /// The protection that the sample entry declares.
    pub entry: ProtectedEntry,
    /// IVs and subsamples of each sample.
    pub(crate) auxiliary: SencTable,
    /// `pssh` boxes of the film that apply to the track.
    pub(crate) pssh_boxes: Vec<Vec<u8>>,
}

/// The protection that an `encv` or `enca` sample entry declares (ISO/IEC 14496-12, 8.12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedEntry {
    /// Scheme, key id and constant IV, for manifests.
    pub protection: ProtectionParameters,
    /// Length of each sample's IV, in bytes. 0 if the IV is constant.
    pub(crate) iv_bytes: usize,
    /// Numbers of encrypted and of unencrypted cipher blocks in the pattern. Both are 0 without a
    /// pattern.
    pattern: (u8, u8),
    /// The `sinf` box, as it is in the source.
    sinf: Vec<u8>,
}

/// Returns whether `code` is the type of a protected sample entry.
pub(crate) fn is_protected_entry(code: [u8; 4]) -> bool {
    matches!(&code, b"encv" | b"enca")
}

impl ProtectedEntry {
    /// Splits a protected sample entry into two parts: the codec's unencrypted sample entry, and
    /// the description of the protection.
    ///
    /// # Errors
    /// `Unsupported` if the form of encryption cannot be served unchanged; the message describes
    /// this form. `Malformed` if a box is missing or invalid.
    pub(crate) fn split_protected_entry(entry: &[u8]) -> Result<(Vec<u8>, ProtectedEntry)> {
        let (code, body) = split_code_and_body(entry)?;
        let fields_bytes = match &code {
            b"encv" => VISUAL_FIELDS_BYTES,
            _ => AUDIO_FIELDS_BYTES,
        };
        let split = body.split_at_checked(fields_bytes);
        let (fields, children) =
            split.ok_or_else(|| Error::malformed("the sample entry is truncated"))?;
        let mut children = ChildBoxes::parse(children)?;
        let missing = || {
            unsupported_encryption_error(&format!("({} without a sinf box)", format_fourcc(code)))
        };
        let sinf = children.find_body(b"sinf").ok_or_else(missing)?;
        let (original, protected) = read_sinf(sinf)?;
        children.0.retain(|child| child.name != *b"sinf");
        let mut clear = Vec::with_capacity(entry.len());
        crate::bytes::write_box(&mut clear, &original, |out| {
            out.extend_from_slice(fields);
            children.write_boxes(out);
        });
        Ok((clear, protected))
    }

    /// Returns the number of encrypted bytes in one repetition of the pattern, and the total length
    /// of the repetition in bytes. Both are `None` if the pattern skips no blocks.
    pub(super) fn crypt_and_stripe_len(&self) -> (Option<usize>, Option<usize>) {
        let bytes = |blocks: u8| usize::from(blocks) * BLOCK_BYTES;
        match self.pattern {
            (_, 0) => (None, None),
            (crypt, skip) => (Some(bytes(crypt)), Some(bytes(crypt) + bytes(skip))),
        }
    }

    /// Appends the sample entry of the codec in protected form, with the `sinf` box of the source.
    pub(crate) fn write_entry(&self, out: &mut Vec<u8>, codec: &Codec) {
        let start = out.len();
        codec.write_sample_entry(out);
        out.extend_from_slice(&self.sinf);
        let size = (out.len() - start) as u32;
        let name = match codec.video() {
            Some(_) => b"encv",
            None => b"enca",
        };
        if let Some(header) = out.get_mut(start..start + 8) {
            header[..4].copy_from_slice(&size.to_be_bytes());
            header[4..].copy_from_slice(name);
        }
    }
}

impl SourceProtection {
    /// Returns one content protection system for each `pssh` box of the track.
    pub fn systems(&self) -> Vec<SystemSignaling> {
        let boxes = self.pssh_boxes.iter();
        boxes
            .filter_map(|pssh| {
                let id: KeyId = pssh.get(12..28)?.try_into().ok()?;
                let mut signal =
                    SystemSignaling::new(ContentSystem::from_uuid(&format_key_id(&id))?);
                signal.pssh = Some(pssh.clone());
                Some(signal)
            })
            .collect()
    }

    /// Approximate heap memory, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let boxes = self.pssh_boxes.iter().map(Vec::len).sum::<usize>();
        self.auxiliary.heap_bytes() + self.entry.sinf.len() + boxes
    }

    /// Describes the protection in one phrase.
    pub fn describe_protection(&self) -> String {
        let own = &self.entry.protection;
        let key = format_key_id(&own.key_id);
        format!("already encrypted ({}, key id {key})", own.scheme.name())
    }
}

/// Returns the four-character code of the unencrypted sample entry, and the protection.
fn read_sinf(sinf: &[u8]) -> Result<([u8; 4], ProtectedEntry)> {
    let children = ChildBoxes::parse(sinf)?;
    let require = |name| children.require_body(name, *b"sinf");
    let original = require(b"frma")?.first_chunk().copied();
    let original = original.ok_or_else(|| Error::malformed("frma is truncated"))?;
    let mut schm = ByteReader::new(require(b"schm")?);
    schm.skip(4); // version and flags
    let scheme = schm.read_array();
    schm.check_no_short_read()?;
    let scheme = parse_scheme(scheme)?;
    let schi = ChildBoxes::parse(require(b"schi")?)?;
    let tenc = schi.require_body(b"tenc", *b"schi")?;
    let (protection, iv_bytes) = read_tenc(tenc, scheme)?;
    let mut whole = Vec::with_capacity(sinf.len() + 8);
    crate::bytes::write_box(&mut whole, b"sinf", |out| out.extend_from_slice(sinf));
    let entry = ProtectedEntry {
        protection,
        iv_bytes,
        pattern: read_pattern(tenc),
        sinf: whole,
    };
    Ok((original, entry))
}

fn parse_scheme(scheme: [u8; 4]) -> Result<ProtectionScheme> {
    match &scheme {
        b"cenc" => Ok(ProtectionScheme::Cenc),
        b"cbcs" => Ok(ProtectionScheme::Cbcs),
        _ => Err(unsupported_encryption_error(&format!(
            "with the scheme {}; only cenc and cbcs are passed through",
            format_fourcc(scheme)
        ))),
    }
}

/// Creates the error for a form of encryption that cannot be served unchanged.
pub(crate) fn unsupported_encryption_error(form: &str) -> Error {
    Error::unsupported(format!("the track is already encrypted {form}"))
}

/// Reads `tenc` (ISO/IEC 23001-7, 8.2). Returns the protection and the length of each sample's IV
/// in bytes.
fn read_tenc(tenc: &[u8], scheme: ProtectionScheme) -> Result<(ProtectionParameters, usize)> {
    let mut reader = ByteReader::new(tenc);
    reader.skip(6); // version, flags, reserved, pattern
    let (is_protected, iv_bytes) = (reader.u8(), usize::from(reader.u8()));
    let key_id = reader.read_array();
    let constant = match iv_bytes {
        0 => usize::from(reader.u8()),
        _ => 0,
    };
    let constant_iv = reader.take(constant);
    reader.check_no_short_read()?;
    if is_protected != 1 {
        return Err(unsupported_encryption_error(
            "in parts only (tenc declares it unprotected)",
        ));
    }
    if !matches!((iv_bytes, constant), (8 | 16, _) | (0, 8 | 16)) {
        return Err(Error::malformed("tenc has an invalid size of IVs"));
    }
    let mut iv = [0; 16];
    if let Some(start) = iv.get_mut(..constant_iv.len()) {
        start.copy_from_slice(constant_iv);
    }
    let protection = ProtectionParameters { scheme, key_id, iv };
    Ok((protection, iv_bytes))
}

/// Returns the pattern of a `tenc` box that [`read_tenc`] has accepted: the numbers of encrypted
/// and of unencrypted blocks. Version 0 of `tenc` has no pattern.
fn read_pattern(tenc: &[u8]) -> (u8, u8) {
    match tenc {
        [version, _, _, _, _, pattern, ..] if *version > 0 => (pattern >> 4, pattern & 15),
        _ => (0, 0),
    }
}

/// Selects the `pssh` boxes that apply to a key. A box applies if it lists this key id, or if it
/// lists no key ids.
pub(crate) fn select_pssh_of_key(boxes: &[Vec<u8>], key_id: &KeyId) -> Vec<Vec<u8>> {
    let applies = |pssh: &&Vec<u8>| {
        let mut reader = ByteReader::new(pssh);
        reader.skip(8);
        let version = reader.u8();
        reader.skip(3 + 16);
        let count = if version == 0 {
            0
        } else {
            reader.u32() as usize
        };
        let ids = reader.take(count.saturating_mul(16).min(pssh.len()));
        count == 0 || ids.chunks_exact(16).any(|id| id == key_id)
    };
    boxes.iter().filter(applies).cloned().collect()
}

/// Adds a `pssh` box of the film. Ignores a box that is too short for its fields, because no player
/// can use it.
///
/// # Errors
/// `Unsupported` if there are too many boxes or the box is too long. The message contains the
/// limits.
pub(crate) fn push_source_pssh(boxes: &mut Vec<Vec<u8>>, bytes: &[u8]) -> Result<()> {
    if bytes.len() < PSSH_BYTES_MIN {
        return Ok(());
    }
    if boxes.len() >= PSSH_BOXES_MAX || bytes.len() > PSSH_BYTES_MAX {
        return Err(unsupported_encryption_error(&format!(
            "with more than {PSSH_BOXES_MAX} pssh boxes, or one of more than {PSSH_BYTES_MAX} bytes"
        )));
    }
    boxes.push(bytes.to_vec());
    Ok(())
}
