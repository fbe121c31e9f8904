//! Sample auxiliary information of an encrypted source: the `senc` entries of all samples of a
//! track (ISO/IEC 23001-7, 7.2).

use super::source_protection::unsupported_encryption_error;
use crate::bytes::{ByteReader, write_box};
use crate::error::{Error, Result};
use std::ops::Range;

/// Number of samples between two positions in `SencTable::block_starts`.
const BLOCK_SAMPLES: u32 = 256;
/// `UseSubSampleEncryption`.
pub(crate) const SENC_SUBSAMPLES: u32 = 2;
/// Maximum length of one sample's entry, in bytes. `saiz` stores the length in eight bits.
const ENTRY_BYTES_MAX: usize = 255;

/// The `senc` entries of a track's samples. The entry of a video sample takes about 16 bytes of
/// memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SencTable {
    /// Length of each sample's entry, in bytes.
    sizes: Vec<u8>,
    entries: Vec<u8>,
    /// Position in `entries` of the first entry of each block of `BLOCK_SAMPLES` samples.
    block_starts: Vec<u64>,
    /// Whether the entries have subsamples. `None` until samples are added.
    has_subsamples: Option<bool>,
}

impl SencTable {
    /// Adds the entries of the next `count` samples. `senc` is the body of the `senc` box. If the
    /// source has no `senc` box, the added entries are empty.
    ///
    /// # Errors
    /// `Malformed` if an entry is missing. `Unsupported` if the source is encrypted in a form that
    /// cannot be served unchanged.
    pub(crate) fn add_samples(
        &mut self,
        senc: Option<&[u8]>,
        count: u32,
        iv_bytes: usize,
    ) -> Result<()> {
        let Some(senc) = senc else {
            return self.add_entries_without_box(count, iv_bytes);
        };
        let mut reader = ByteReader::new(senc);
        let flags = reader.u32() & 0x00ff_ffff;
        let declared = reader.u32();
        reader.check_no_short_read()?;
        if flags & !SENC_SUBSAMPLES != 0 {
            return Err(unsupported_encryption_error(
                "with parameters of its own in senc",
            ));
        }
        if declared < count {
            let message = format!("senc describes {declared} of {count} samples");
            return Err(Error::malformed(message));
        }
        let has_subsamples = flags & SENC_SUBSAMPLES != 0;
        self.require_same_subsample_use(has_subsamples)?;
        for _ in 0..count {
            let rest = reader.remaining_slice();
            let len = entry_len(rest, iv_bytes, has_subsamples);
            let entry = rest.get(..len).ok_or_else(truncated_senc_error)?;
            self.push_entry(entry)?;
            reader.skip(len);
        }
        Ok(())
    }

    fn add_entries_without_box(&mut self, count: u32, iv_bytes: usize) -> Result<()> {
        if iv_bytes > 0 && count > 0 {
            return Err(unsupported_encryption_error(
                "without senc boxes (its auxiliary information is elsewhere)",
            ));
        }
        self.require_same_subsample_use(false)?;
        (0..count).try_for_each(|_| self.push_entry(&[]))
    }

    /// Adds the entry of the next sample, which has subsamples.
    ///
    /// # Errors
    /// `Unsupported` if the entry is too long.
    pub(crate) fn push_subsamples(&mut self, entry: &[u8]) -> Result<()> {
        self.require_same_subsample_use(true)?;
        self.push_entry(entry)
    }

    fn require_same_subsample_use(&mut self, has_subsamples: bool) -> Result<()> {
        match self.has_subsamples {
            Some(before) if before != has_subsamples => Err(unsupported_encryption_error(
                "with subsamples in some fragments only",
            )),
            _ => {
                self.has_subsamples = Some(has_subsamples);
                Ok(())
            }
        }
    }

    fn push_entry(&mut self, entry: &[u8]) -> Result<()> {
        if entry.len() > ENTRY_BYTES_MAX {
            return Err(unsupported_encryption_error(
                "with too many subsamples in one sample",
            ));
        }
        if self.sizes.len().is_multiple_of(BLOCK_SAMPLES as usize) {
            self.block_starts.push(self.entries.len() as u64);
        }
        self.sizes.push(entry.len() as u8);
        self.entries.extend_from_slice(entry);
        Ok(())
    }

    /// Returns the table of a range of samples.
    pub(crate) fn trim(self, range: Range<u32>) -> SencTable {
        if range.start == 0 && range.end as usize == self.sizes.len() {
            return self;
        }
        let mut trimmed = SencTable {
            has_subsamples: self.has_subsamples,
            ..SencTable::default()
        };
        for entry in self.list_entries(range) {
            // Cannot fail, because the length was checked when the entry was added.
            let _ = trimmed.push_entry(entry);
        }
        trimmed
    }

    /// Returns the lengths and the bytes of the entries of a range of samples.
    pub(crate) fn slice(&self, range: Range<u32>) -> (&[u8], &[u8]) {
        let sizes = self.sizes.get(range.start as usize..range.end as usize);
        let sizes = sizes.unwrap_or_default();
        let start = self.entry_start(range.start);
        let len: usize = sizes.iter().map(|size| usize::from(*size)).sum();
        (
            sizes,
            self.entries.get(start..start + len).unwrap_or_default(),
        )
    }

    /// Iterates over the entries of a range of samples.
    pub(crate) fn list_entries(&self, range: Range<u32>) -> impl Iterator<Item = &[u8]> {
        let (sizes, mut entries) = self.slice(range);
        sizes.iter().map(move |size| {
            let (entry, rest) = entries.split_at(usize::from(*size).min(entries.len()));
            entries = rest;
            entry
        })
    }

    fn entry_start(&self, sample: u32) -> usize {
        let block = sample / BLOCK_SAMPLES;
        let start = self.block_starts.get(block as usize).copied().unwrap_or(0);
        let before = (block * BLOCK_SAMPLES) as usize..sample as usize;
        let sizes = self.sizes.get(before).unwrap_or_default().iter();
        start as usize + sizes.map(|size| usize::from(*size)).sum::<usize>()
    }

    /// Returns whether the entries have subsamples.
    pub(crate) fn has_subsamples(&self) -> bool {
        self.has_subsamples.unwrap_or(false)
    }

    /// Appends a `senc` box with all samples. Index MP4s and progressive MP4s contain this box.
    pub(crate) fn write_senc(&self, out: &mut Vec<u8>) {
        write_box(out, b"senc", |out| self.write_senc_body(out));
    }

    /// Appends the body of a `senc` box: version, flags, sample count and entries.
    pub(crate) fn write_senc_body(&self, out: &mut Vec<u8>) {
        let flags = if self.has_subsamples() {
            SENC_SUBSAMPLES
        } else {
            0
        };
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&(self.sizes.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.entries);
    }

    /// Approximate heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.sizes.len() + self.entries.len() + self.block_starts.len() * 8
    }
}

/// Returns the length of the first entry of `rest`, in bytes.
fn entry_len(rest: &[u8], iv_bytes: usize, has_subsamples: bool) -> usize {
    if !has_subsamples {
        return iv_bytes;
    }
    let count = rest.get(iv_bytes..iv_bytes + 2);
    let count = count.map_or(0, |count| {
        usize::from(count[0]) << 8 | usize::from(count[1])
    });
    iv_bytes + 2 + 6 * count
}

fn truncated_senc_error() -> Error {
    Error::malformed("senc ends within an entry")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the body of a `senc` box. Sample `n` has an IV of 8 bytes and `n % 3` subsamples.
    fn senc(count: u32) -> Vec<u8> {
        let mut out = vec![0, 0, 0, 2];
        out.extend_from_slice(&count.to_be_bytes());
        for n in 0..count {
            out.extend_from_slice(&u64::from(n).to_be_bytes());
            out.extend_from_slice(&((n % 3) as u16).to_be_bytes());
            out.extend((0..n % 3 * 6).map(|_| n as u8));
        }
        out
    }

    #[test]
    fn slices_are_the_entries_of_their_samples() {
        let mut table = SencTable::default();
        let bytes = senc(1000);
        table.add_samples(Some(&bytes), 600, 8).unwrap();
        table.add_samples(Some(&bytes), 1000, 8).unwrap();
        for (start, n) in [(0, 0), (599, 599), (600, 0), (1599, 999), (857, 257)] {
            let (sizes, entries) = table.slice(start..start + 1);
            assert_eq!(sizes, [10 + (n % 3) as u8 * 6]);
            assert_eq!(entries[..8], u64::from(n as u32).to_be_bytes());
        }
        let trimmed = table.clone().trim(599..1200);
        assert_eq!(trimmed.slice(1..300), table.slice(600..899));
        let mut written = Vec::new();
        trimmed.write_senc(&mut written);
        let mut again = SencTable::default();
        again.add_samples(Some(&written[8..]), 601, 8).unwrap();
        assert_eq!(again, trimmed);
    }

    #[test]
    fn forms_that_cannot_be_carried_over_are_named() {
        let whole = senc(5);
        let mut own_parameters = whole.clone();
        own_parameters[3] = 1;
        for (senc, wrong) in [
            (Some(&whole[..40]), "senc ends within an entry"),
            (Some(&own_parameters[..]), "parameters of its own"),
            (Some(&whole[..6]), "shorter than its fields"),
            (None, "without senc boxes"),
        ] {
            let added = SencTable::default().add_samples(senc, 5, 8);
            let error = added.unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
        let mut mixed = SencTable::default();
        mixed.add_samples(None, 1, 0).unwrap();
        assert!(mixed.add_samples(Some(&whole), 5, 0).is_err());
        assert!(
            SencTable::default()
                .add_samples(Some(&whole), 6, 8)
                .is_err()
        );
    }
}
