//! The boxes `saiz`, `saio` and `senc` of one fragment (ISO/IEC 14496-12, 8.7.8 and 8.7.9; ISO/IEC
//! 23001-7, 7.2).

use super::senc_table::{SENC_SUBSAMPLES, SencTable};
use super::{ProtectionParameters, ProtectionScheme, SubsampleMap};
use crate::bytes::write_full_box;
use std::ops::Range;

/// The auxiliary information of a fragment's samples.
#[derive(Debug, Clone)]
pub(crate) struct SampleAuxiliary {
    /// Size of each sample's entry in bytes.
    sizes: Vec<u8>,
    /// The entries, one after another.
    entries: Vec<u8>,
    has_subsamples: bool,
}

/// Bytes of `senc` before its first entry.
const SENC_HEAD_BYTES: u64 = 16;
const SAIO_BYTES: u64 = 20;
const SAIZ_HEAD_BYTES: u64 = 17;
/// Number of subsamples of each sample, as assumed for estimates. It is enough for a picture of
/// four slices.
const TYPICAL_SUBSAMPLES: u64 = 5;

impl SampleAuxiliary {
    /// Builds the entries of `count` samples, starting with the sample number `first` of the track.
    /// Without `map`, samples are protected as a whole.
    pub(crate) fn new(
        protection: &ProtectionParameters,
        first: u32,
        count: u32,
        map: Option<&SubsampleMap>,
    ) -> SampleAuxiliary {
        let mut auxiliary = SampleAuxiliary {
            sizes: Vec::with_capacity(count as usize),
            entries: Vec::new(),
            has_subsamples: map.is_some(),
        };
        let mut samples = map.map(SubsampleMap::samples);
        for n in 0..count {
            let start = auxiliary.entries.len();
            if protection.scheme == ProtectionScheme::Cenc {
                let iv = protection.sample_iv(first.wrapping_add(n));
                auxiliary.entries.extend_from_slice(&iv);
            }
            if let Some(samples) = &mut samples {
                let subsamples = samples.next().unwrap_or_default();
                write_subsamples(&mut auxiliary.entries, subsamples);
            }
            let size = auxiliary.entries.len() - start;
            auxiliary.sizes.push(size as u8);
        }
        auxiliary
    }

    /// Copies the entries of a range of samples of an encrypted source.
    pub(crate) fn from_source(table: &SencTable, samples: Range<u32>) -> SampleAuxiliary {
        let (sizes, entries) = table.slice(samples);
        SampleAuxiliary {
            sizes: sizes.to_vec(),
            entries: entries.to_vec(),
            has_subsamples: table.has_subsamples(),
        }
    }

    /// Estimates the total length of all boxes in bytes. The estimate assumes that pictures have
    /// few slices.
    pub(crate) fn estimate_len(
        protection: &ProtectionParameters,
        is_video: bool,
        count: u64,
    ) -> u64 {
        let iv = match protection.scheme {
            ProtectionScheme::Cenc => 8,
            ProtectionScheme::Cbcs => 0,
        };
        let subsamples = if is_video {
            2 + 6 * TYPICAL_SUBSAMPLES
        } else {
            0
        };
        let entry = iv + subsamples;
        let description = if is_video { 1 } else { 0 };
        SENC_HEAD_BYTES + SAIZ_HEAD_BYTES + SAIO_BYTES + count * (entry + description)
    }

    /// Returns the total length of all boxes in bytes.
    pub(crate) fn len(&self) -> u64 {
        SENC_HEAD_BYTES + self.entries.len() as u64 + self.saiz_saio_len()
    }

    /// Returns the length of `saiz` and `saio` in bytes. Without entries, both boxes are left out,
    /// and the length is 0.
    fn saiz_saio_len(&self) -> u64 {
        match (self.entries.is_empty(), self.shared_size()) {
            (true, _) => 0,
            (false, Some(_)) => SAIZ_HEAD_BYTES + SAIO_BYTES,
            (false, None) => SAIZ_HEAD_BYTES + self.sizes.len() as u64 + SAIO_BYTES,
        }
    }

    fn shared_size(&self) -> Option<u8> {
        let first = *self.sizes.first()?;
        self.sizes
            .iter()
            .all(|size| *size == first)
            .then_some(first)
    }

    /// Appends the boxes. `moof_start` is the position of `moof` in `out`.
    pub(crate) fn write_auxiliary_boxes(&self, out: &mut Vec<u8>, moof_start: usize) {
        if !self.entries.is_empty() {
            self.write_saiz(out);
            // The offset counts from the start of `moof` to the first entry (default-base-is-moof).
            let offset = out.len() as u64 - moof_start as u64 + SAIO_BYTES + SENC_HEAD_BYTES;
            write_full_box(out, b"saio", 0, 0, |out| {
                out.extend_from_slice(&1u32.to_be_bytes());
                out.extend_from_slice(&(offset as u32).to_be_bytes());
            });
        }
        let flags = if self.has_subsamples {
            SENC_SUBSAMPLES
        } else {
            0
        };
        // FFmpeg decrypts a fragment only if the fragment has a `senc` box, so the box is written
        // even without entries.
        write_full_box(out, b"senc", 0, flags, |out| {
            out.extend_from_slice(&(self.sizes.len() as u32).to_be_bytes());
            out.extend_from_slice(&self.entries);
        });
    }

    fn write_saiz(&self, out: &mut Vec<u8>) {
        write_full_box(out, b"saiz", 0, 0, |out| {
            let shared = self.shared_size();
            out.push(shared.unwrap_or(0));
            out.extend_from_slice(&(self.sizes.len() as u32).to_be_bytes());
            if shared.is_none() {
                out.extend_from_slice(&self.sizes);
            }
        });
    }
}

pub(super) fn write_subsamples(out: &mut Vec<u8>, subsamples: &[super::Subsample]) {
    out.extend_from_slice(&(subsamples.len() as u16).to_be_bytes());
    for subsample in subsamples {
        out.extend_from_slice(&subsample.clear.to_be_bytes());
        out.extend_from_slice(&subsample.protected.to_be_bytes());
    }
}
