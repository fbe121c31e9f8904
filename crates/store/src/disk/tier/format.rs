//! The file format of a stored object. A file consists of a header and a body. The body starts at a
//! page boundary.
//!
//! A file contains the following fields in this order. Integers are little-endian.
//! - magic and format version (8 bytes)
//! - lengths of key, tags and head (4 bytes each)
//! - zeros (4 bytes)
//! - length of the body (8 bytes)
//! - XXH3-64 of the body (8 bytes)
//! - key, tags and head
//! - XXH3-64 of all bytes before this field (8 bytes)
//! - zeros up to the next page boundary
//! - body, up to the end of the file

use twox_hash::XxHash3_64;

/// Magic and format version. The constant changes with the format, so that files of older formats
/// are not read.
const MAGIC: [u8; 8] = *b"HWobj\0\0\x01";
/// Number of bytes before the key.
pub(super) const FIXED: usize = 40;
const SUM: usize = 8;
/// Alignment of the body in bytes, so that the kernel can send whole pages.
const PAGE: usize = 4096;
/// Maximum length of the key, the tags or the head, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TierFileHeader<'a> {
    pub(super) key: &'a str,
    /// Tags by which the object can be purged, separated by spaces.
    pub(super) tags: &'a str,
    /// Metadata that the caller stores with the object.
    pub(super) head: &'a [u8],
    pub(super) body_len: u64,
    pub(super) body_sum: u64,
}

/// Lengths of the key, the tags and the head, in bytes.
type FieldLens = [usize; 3];

impl<'a> TierFileHeader<'a> {
    /// Encodes the header. Returns `None` if the key, the tags or the head is too long.
    pub(super) fn encode_header(&self) -> Option<Vec<u8>> {
        let texts = [self.key.as_bytes(), self.tags.as_bytes(), self.head];
        let mut out = Vec::with_capacity(PAGE);
        out.extend_from_slice(&MAGIC);
        for text in texts {
            let len = u32::try_from(text.len()).ok()?;
            (text.len() <= TEXT_BYTES_MAX).then_some(())?;
            out.extend_from_slice(&len.to_le_bytes());
        }
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.body_len.to_le_bytes());
        out.extend_from_slice(&self.body_sum.to_le_bytes());
        for text in texts {
            out.extend_from_slice(text);
        }
        out.extend_from_slice(&checksum(&out).to_le_bytes());
        out.resize(out.len().next_multiple_of(PAGE), 0);
        Some(out)
    }

    /// Decodes the header of a file. `bytes` contains all bytes that precede the body (see
    /// [`body_offset`]). Returns `None` if the header is damaged.
    pub(super) fn decode_header(bytes: &'a [u8]) -> Option<TierFileHeader<'a>> {
        let lens = field_lens(bytes)?;
        let end = FIXED + lens.iter().sum::<usize>();
        let (checked, rest) = bytes.split_at_checked(end)?;
        let found = rest.first_chunk::<SUM>()?;
        if checksum(checked) != u64::from_le_bytes(*found) {
            return None;
        }
        let (fixed, texts) = checked.split_at_checked(FIXED)?;
        let (key, texts) = texts.split_at_checked(lens[0])?;
        let (tags, head) = texts.split_at_checked(lens[1])?;
        Some(TierFileHeader {
            key: std::str::from_utf8(key).ok()?,
            tags: std::str::from_utf8(tags).ok()?,
            head,
            body_len: read_u64(fixed, 24)?,
            body_sum: read_u64(fixed, 32)?,
        })
    }
}

/// Reads the offset of the body from the first [`FIXED`] bytes of a file.
pub(super) fn body_offset(fixed: &[u8]) -> Option<usize> {
    let lens = field_lens(fixed)?;
    let end = FIXED + lens.iter().sum::<usize>() + SUM;
    Some(end.next_multiple_of(PAGE))
}

/// Returns the checksum of these bytes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

fn field_lens(fixed: &[u8]) -> Option<FieldLens> {
    (fixed.get(..8)? == MAGIC && fixed.get(20..24)? == [0; 4]).then_some(())?;
    let mut lens = [0; 3];
    for (n, len) in lens.iter_mut().enumerate() {
        let at = 8 + 4 * n;
        let bytes = fixed.get(at..at + 4)?.try_into().ok()?;
        *len = usize::try_from(u32::from_le_bytes(bytes)).ok()?;
        (*len <= TEXT_BYTES_MAX).then_some(())?;
    }
    Some(lens)
}

fn read_u64(fixed: &[u8], at: usize) -> Option<u64> {
    let bytes = fixed.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}
