//! Encodes a stored value with its name, its version and a checksum.
//!
//! A record contains the following fields in this order. Integers are little-endian.
//! - magic and format version (8 bytes)
//! - length of the name (4 bytes)
//! - length of the version (4 bytes)
//! - length of the value (8 bytes)
//! - name, version and value
//! - XXH3-64 of all bytes before this field (8 bytes)

use twox_hash::XxHash3_64;

/// Magic and format version. The constant changes with the format, so that files of older formats
/// are not read.
const MAGIC: [u8; 8] = *b"HWkept\0\x01";
const HEAD: usize = 24;
const SUM: usize = 8;

/// A value with its name and version, as it is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheRecord<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a [u8],
    pub(super) value: &'a [u8],
}

/// The reason why a value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordError {
    /// The bytes are not a complete and intact record.
    Broken,
    /// The record is complete, but has another name or version.
    Other,
}

pub(super) fn compute_checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

impl<'a> CacheRecord<'a> {
    /// Encodes the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (name, version) = (self.name.as_bytes(), self.version);
        let mut out =
            Vec::with_capacity(HEAD + name.len() + version.len() + self.value.len() + SUM);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&(name.len() as u32).to_le_bytes());
        out.extend_from_slice(&(version.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.value.len() as u64).to_le_bytes());
        for part in [name, version, self.value] {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(&compute_checksum(&out).to_le_bytes());
        out
    }

    /// Returns the value, if `bytes` are an intact record with this name and version.
    pub(super) fn decode_value(
        bytes: &'a [u8],
        name: &str,
        version: &[u8],
    ) -> Result<&'a [u8], RecordError> {
        let found = CacheRecord::decode_record(bytes).ok_or(RecordError::Broken)?;
        match found.name == name && found.version == version {
            true => Ok(found.value),
            false => Err(RecordError::Other),
        }
    }

    fn decode_record(bytes: &'a [u8]) -> Option<CacheRecord<'a>> {
        let (rest, sum) = bytes.split_last_chunk::<SUM>()?;
        if compute_checksum(rest) != u64::from_le_bytes(*sum) {
            return None;
        }
        let (head, rest) = rest.split_at_checked(HEAD)?;
        let (magic, lens) = head.split_at_checked(8)?;
        let word = |at: usize| {
            lens.get(at..at + 4)?
                .try_into()
                .ok()
                .map(u32::from_le_bytes)
        };
        let value = lens.get(8..16)?.try_into().ok().map(u64::from_le_bytes)?;
        let (name, rest) = rest.split_at_checked(usize::try_from(word(0)?).ok()?)?;
        let (version, rest) = rest.split_at_checked(usize::try_from(word(4)?).ok()?)?;
        (magic == MAGIC && rest.len() as u64 == value).then_some(())?;
        Some(CacheRecord {
            name: std::str::from_utf8(name).ok()?,
            version,
            value: rest,
        })
    }
}
