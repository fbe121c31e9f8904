//! Subsamples of all samples of a track, stored with the index of the track. With stored
//! subsamples, the length of an encrypted segment is known before its samples are read.
//!
//! An index MP4 stores the subsamples in a `uuid` box in `stbl`. The box contains an identifier, a
//! version, and the body of a `senc` box without IVs (ISO/IEC 23001-7, 7.2). Each sample takes two
//! bytes, plus six bytes per slice.

use super::scheme::is_protectable;
use super::senc_table::SencTable;
use super::subsample_map::{Subsample, SubsampleCollector};
use super::{ProtectionParameters, ProtectionScheme, SubsampleMap, SubsampleParser};
use crate::bmff::Mp4Box;
use crate::bytes::{ByteReader, write_box};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::index::SampleTable;
use std::ops::Range;

/// `extended_type` of the `uuid` box (ISO/IEC 14496-12, 4.2.2).
const ID: [u8; 16] = *b"\x5d\x0e\xb7\x31\x9a\x44\x4c\x62\x8f\x15\x2b\xc8\x60\x7e\xd9\xa3";
const VERSION: u32 = 1;
/// Length of one subsample in an entry, in bytes.
const SUBSAMPLE_BYTES: usize = 6;

/// The `cbcs` subsamples of all samples of a track. The `cenc` subsamples are computed from the
/// `cbcs` subsamples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSubsamples {
    table: SencTable,
}

impl StoredSubsamples {
    /// Returns the subsamples of a range of samples in this scheme. `None` if a sample has too many
    /// subsamples.
    pub(crate) fn build_subsample_map(
        &self,
        samples: Range<u32>,
        scheme: ProtectionScheme,
    ) -> Option<SubsampleMap> {
        let mut map = SubsampleMap::default();
        let mut collected = Vec::new();
        for entry in self.table.list_entries(samples) {
            let whole_blocks = scheme == ProtectionScheme::Cenc;
            let mut collector = SubsampleCollector::new(&mut collected, whole_blocks);
            for run in read_clear_and_protected_runs(entry) {
                collector.add_clear(run.clear.into());
                collector.add_protected(run.protected as usize);
            }
            collector.finish();
            if collected.len() > super::nal_subsamples::SUBSAMPLES_MAX {
                return None;
            }
            map.push_sample(&collected);
        }
        Some(map)
    }

    /// Appends the `uuid` box.
    pub(crate) fn write_uuid_box(&self, out: &mut Vec<u8>) {
        write_box(out, b"uuid", |out| {
            out.extend_from_slice(&ID);
            out.extend_from_slice(&VERSION.to_be_bytes());
            self.table.write_senc_body(out);
        });
    }

    /// Reads the subsamples of `count` samples from the `uuid` box in `stbl`. Returns `None` if the
    /// box is missing or its version is unknown.
    ///
    /// # Errors
    /// `Malformed` if an entry is missing.
    pub(crate) fn from_stbl(stbl: &Mp4Box<'_>, count: u32) -> Result<Option<StoredSubsamples>> {
        for child in stbl.children() {
            let child = child?;
            let mut reader = ByteReader::new(child.body);
            if child.name != *b"uuid" || reader.read_array() != ID || reader.u32() != VERSION {
                continue;
            }
            let mut table = SencTable::default();
            table.add_samples(Some(reader.remaining_slice()), count, 0)?;
            return Ok(Some(StoredSubsamples { table }));
        }
        Ok(None)
    }

    /// Keeps only the samples of a range. `samples` is the sample table of exactly this range.
    ///
    /// # Errors
    /// `Malformed` if the subsamples of a sample do not add up to its size. The message contains
    /// the number of the first such sample.
    pub(crate) fn trim(self, range: Range<u32>, samples: &SampleTable) -> Result<StoredSubsamples> {
        let table = self.table.trim(range);
        let kept = StoredSubsamples { table };
        kept.check_sample_sizes(samples)?;
        Ok(kept)
    }

    fn check_sample_sizes(&self, samples: &SampleTable) -> Result<()> {
        let entries = self.table.list_entries(0..samples.len());
        let totals = entries.map(|entry| {
            read_clear_and_protected_runs(entry)
                .map(Subsample::len)
                .sum::<u64>()
        });
        let sizes = samples.iter_range(0..samples.len());
        let wrong = totals
            .zip(sizes)
            .position(|(total, s)| total != s.size.into());
        match wrong {
            None => Ok(()),
            Some(n) => Err(Error::malformed(format!(
                "the stored subsamples do not fill sample {n}: index the media again"
            ))),
        }
    }

    /// Approximate heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }
}

/// Iterates over the subsamples of an entry. `entry` starts after the IV.
pub(super) fn read_clear_and_protected_runs(entry: &[u8]) -> impl Iterator<Item = Subsample> {
    let runs = entry.get(2..).unwrap_or_default();
    runs.chunks_exact(SUBSAMPLE_BYTES).map(|run| {
        let mut reader = ByteReader::new(run);
        Subsample {
            clear: reader.u16(),
            protected: reader.u32(),
        }
    })
}

/// Finds the subsamples of all samples of a track. Samples are added in decode order.
#[derive(Debug)]
pub struct PrecomputedSubsamplesBuilder {
    /// A parser that has only the parameter sets of the sample entry.
    initial: SubsampleParser,
    parser: SubsampleParser,
    table: SencTable,
}

impl PrecomputedSubsamplesBuilder {
    /// Creates the builder of a track. Returns `None` if samples of this codec have no subsamples
    /// or cannot be encrypted.
    ///
    /// # Errors
    /// `Malformed` or `Unsupported` if a parameter set cannot be read.
    pub fn new(codec: &Codec) -> Result<Option<PrecomputedSubsamplesBuilder>> {
        if !is_protectable(codec) {
            return Ok(None);
        }
        let parser = SubsampleParser::new(codec, &ProtectionParameters::PLACEHOLDER)?;
        Ok(parser.map(|parser| PrecomputedSubsamplesBuilder {
            initial: parser.clone(),
            parser,
            table: SencTable::default(),
        }))
    }

    /// Adds the next sample. Segments start at sync samples, so each sync sample resets the
    /// parameter sets to the parameter sets of the sample entry.
    ///
    /// # Errors
    /// The errors of [`SubsampleParser::add_sample`], and of [`PrecomputedSubsamplesBuilder::finish`]
    /// for earlier samples.
    pub fn add_sample(&mut self, sample: &[u8], is_sync: bool) -> Result<()> {
        if is_sync {
            self.store_entries()?;
        }
        self.parser.add_sample(sample)
    }

    /// Returns the subsamples of all samples that were added.
    ///
    /// # Errors
    /// `Unsupported` if a sample has too many subsamples.
    pub fn finish(mut self) -> Result<StoredSubsamples> {
        self.store_entries()?;
        Ok(StoredSubsamples { table: self.table })
    }

    fn store_entries(&mut self) -> Result<()> {
        let parser = std::mem::replace(&mut self.parser, self.initial.clone());
        let mut entry = Vec::new();
        for subsamples in parser.finish().samples() {
            entry.clear();
            super::sample_auxiliary::write_subsamples(&mut entry, subsamples);
            self.table.push_subsamples(&entry)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn store(samples: &[Vec<(usize, usize)>]) -> StoredSubsamples {
        let mut table = SencTable::default();
        for (runs, mut collected) in samples.iter().map(|runs| (runs, Vec::new())) {
            let mut collector = SubsampleCollector::new(&mut collected, false);
            for (clear, protected) in runs {
                collector.add_clear(*clear);
                collector.add_protected(*protected);
            }
            collector.finish();
            let mut entry = Vec::new();
            super::super::sample_auxiliary::write_subsamples(&mut entry, &collected);
            table.push_subsamples(&entry).unwrap();
        }
        StoredSubsamples { table }
    }

    fn collect(samples: &[Vec<(usize, usize)>], whole_blocks: bool) -> SubsampleMap {
        let (mut map, mut collected) = (SubsampleMap::default(), Vec::new());
        for runs in samples {
            let mut collector = SubsampleCollector::new(&mut collected, whole_blocks);
            for (clear, protected) in runs {
                collector.add_clear(*clear);
                collector.add_protected(*protected);
            }
            collector.finish();
            map.push_sample(&collected);
        }
        map
    }

    proptest! {
        #[test]
        fn both_schemes_follow_from_what_is_stored(
            samples in prop::collection::vec(
                prop::collection::vec((0usize..70_000, 0usize..100), 0..8), 0..20),
        ) {
            let stored = store(&samples);
            let all = 0..samples.len() as u32;
            let cbcs = stored.build_subsample_map(all.clone(), ProtectionScheme::Cbcs);
            prop_assert_eq!(cbcs, Some(collect(&samples, false)));
            let cenc = stored.build_subsample_map(all, ProtectionScheme::Cenc);
            prop_assert_eq!(cenc, Some(collect(&samples, true)));
        }
    }

    #[test]
    fn a_sample_with_too_many_subsamples_has_no_map() {
        // In `cenc`, the 8 bytes after the last whole cipher block become subsample 41. The limit
        // is 40 subsamples.
        let stored = store(&[vec![(10, 40); 40]]);
        assert!(
            stored
                .build_subsample_map(0..1, ProtectionScheme::Cbcs)
                .is_some()
        );
        assert!(
            stored
                .build_subsample_map(0..1, ProtectionScheme::Cenc)
                .is_none()
        );
    }

    #[test]
    fn the_box_is_read_as_it_was_written() {
        let stored = store(&[vec![(5, 100)], vec![], vec![(70_000, 3), (8, 17)]]);
        let mut stbl = Vec::new();
        write_box(&mut stbl, b"stbl", |out| {
            write_box(out, b"uuid", |out| out.extend_from_slice(&[7; 40]));
            stored.write_uuid_box(out);
        });
        let read = |bytes: &[u8], count| {
            StoredSubsamples::from_stbl(&Mp4Box::parse_first(bytes, 0).unwrap(), count)
        };
        assert_eq!(read(&stbl, 3).unwrap(), Some(stored));
        assert!(read(&stbl, 4).is_err());
        let version = stbl.windows(4).rposition(|four| four == b"uuid").unwrap() + 4 + 16;
        stbl[version + 3] = 2;
        assert_eq!(read(&stbl, 3).unwrap(), None);
    }

    #[test]
    fn subsamples_that_do_not_fill_their_sample_are_refused() {
        let stored = store(&[vec![(5, 100)], vec![(70_000, 3)], vec![(8, 16)]]);
        let rows = [(1, 0, 70_003, true), (1, 0, 24, true)];
        let samples =
            crate::fixtures::build_track(crate::fixtures::build_aac_test_codec(), 1, 0, &rows);
        let kept = stored.clone().trim(1..3, &samples.samples).unwrap();
        assert_eq!(
            kept.build_subsample_map(0..2, ProtectionScheme::Cbcs),
            stored.build_subsample_map(1..3, ProtectionScheme::Cbcs)
        );
        let error = stored.trim(0..2, &samples.samples).unwrap_err();
        assert!(error.to_string().contains("sample 0"), "{error}");
    }
}
