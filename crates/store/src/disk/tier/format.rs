//! One kept object as a file: what it is, and its bytes from the begin of a page on.
//!
//! Little-endian: magic and format version (8 bytes); lengths of key, tags and head (4 each) and 4
//! bytes of zero; length and XXH3-64 of the body (8 each); key, tags, head; XXH3-64 of everything
//! before; zeros up to a page; the body, to the end of the file.

use twox_hash::XxHash3_64;

/// Changes whenever the form does: older files are then not read.
const MAGIC: [u8; 8] = *b"HWobj\0\0\x01";
/// Before the texts.
pub(super) const FIXED: usize = 40;
const SUM: usize = 8;
/// The body begins at a multiple of it, so that the kernel can send whole pages.
const PAGE: usize = 4096;
/// No text is longer.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// What a file says that its body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) key: &'a str,
    /// Names that it can be removed by, separated by spaces.
    pub(super) tags: &'a str,
    /// What whoever keeps it wants to know of it.
    pub(super) head: &'a [u8],
    pub(super) body_len: u64,
    pub(super) body_sum: u64,
}

/// Lengths of the three texts.
type Lens = [usize; 3];

impl<'a> Header<'a> {
    /// As it lies before the body; `None` for texts that are too long.
    pub(super) fn write(&self) -> Option<Vec<u8>> {
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
        out.extend_from_slice(&sum(&out).to_le_bytes());
        out.resize(out.len().next_multiple_of(PAGE), 0);
        Some(out)
    }

    /// Reads the begin of a file, which must be as long as [`start`] says.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Header<'a>> {
        let lens = lens(bytes)?;
        let end = FIXED + lens.iter().sum::<usize>();
        let (said, rest) = bytes.split_at_checked(end)?;
        let found = rest.first_chunk::<SUM>()?;
        if sum(said) != u64::from_le_bytes(*found) {
            return None;
        }
        let (fixed, texts) = said.split_at_checked(FIXED)?;
        let (key, texts) = texts.split_at_checked(lens[0])?;
        let (tags, head) = texts.split_at_checked(lens[1])?;
        Some(Header {
            key: std::str::from_utf8(key).ok()?,
            tags: std::str::from_utf8(tags).ok()?,
            head,
            body_len: word(fixed, 24)?,
            body_sum: word(fixed, 32)?,
        })
    }
}

/// Where the body begins, from the first [`FIXED`] bytes of a file.
pub(super) fn start(fixed: &[u8]) -> Option<usize> {
    let lens = lens(fixed)?;
    let end = FIXED + lens.iter().sum::<usize>() + SUM;
    Some(end.next_multiple_of(PAGE))
}

/// The checksum of these bytes.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

fn lens(fixed: &[u8]) -> Option<Lens> {
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

fn word(fixed: &[u8], at: usize) -> Option<u64> {
    let bytes = fixed.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes))
}
