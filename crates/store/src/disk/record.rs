//! One kept value as bytes: what it is, itself, and a checksum of all.
//!
//! Little-endian: magic and format version (8 bytes), lengths of name and version (4 each) and of
//! the value (8), name, version, value, XXH3-64 of everything before.

use twox_hash::XxHash3_64;

/// Changes whenever the form does: older files are then not read.
const MAGIC: [u8; 8] = *b"HWkept\0\x01";
const HEAD: usize = 24;
const SUM: usize = 8;

/// A value, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// The bytes are no whole record.
    Broken,
    /// A whole record, but of something else.
    Other,
}

pub(super) fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

impl<'a> Record<'a> {
    /// As it lies in a file.
    pub(super) fn write(&self) -> Vec<u8> {
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
        out.extend_from_slice(&hash(&out).to_le_bytes());
        out
    }

    /// The value of this name and version, if that is what `bytes` are, whole and unharmed.
    pub(super) fn read(bytes: &'a [u8], name: &str, version: &[u8]) -> Result<&'a [u8], Unread> {
        let found = Record::whole(bytes).ok_or(Unread::Broken)?;
        match found.name == name && found.version == version {
            true => Ok(found.value),
            false => Err(Unread::Other),
        }
    }

    fn whole(bytes: &'a [u8]) -> Option<Record<'a>> {
        let (rest, sum) = bytes.split_last_chunk::<SUM>()?;
        if hash(rest) != u64::from_le_bytes(*sum) {
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
        Some(Record {
            name: std::str::from_utf8(name).ok()?,
            version,
            value: rest,
        })
    }
}
