//! Subsamples of AVC and HEVC samples (ISO/IEC 23001-7, 9.5). Everything stays unencrypted except
//! the slice data, which follows the slice header.

use super::avc_slice_header::AvcParameterSets;
use super::hevc_parameter_sets::HevcParameterSets;
use super::scheme::check_protectable_codec;
use super::subsample_map::{Subsample, SubsampleCollector, SubsampleMap};
use super::{ProtectionParameters, ProtectionScheme};
use crate::codec::Codec;
use crate::error::{Error, Result};

/// Finds the subsamples of one track's samples, which are added in decode order.
///
/// The first added sample must be a sync sample, because the parser also needs the parameter sets
/// inside samples.
#[derive(Debug, Clone)]
pub struct SubsampleParser {
    parameter_sets: ParameterSets,
    length_field_bytes: usize,
    scheme: ProtectionScheme,
    map: SubsampleMap,
    sample: Vec<Subsample>,
}

#[derive(Debug, Clone)]
enum ParameterSets {
    Avc(AvcParameterSets),
    Hevc(HevcParameterSets),
}

/// Treatment of a NAL unit.
enum NalUnitTreatment {
    Clear,
    ParameterSet,
    Slice,
}

/// Maximum number of subsamples of a sample. `saiz` stores the size of a sample's entry in one
/// byte, and each subsample takes six bytes of the entry.
pub(super) const SUBSAMPLES_MAX: usize = 40;

impl SubsampleParser {
    /// Creates the parser of a track. Returns `None` if the track's samples are protected as a
    /// whole.
    ///
    /// # Errors
    /// `Unsupported` if the codec cannot be protected, or if a parameter set cannot be parsed.
    pub fn new(
        codec: &Codec,
        protection: &ProtectionParameters,
    ) -> Result<Option<SubsampleParser>> {
        check_protectable_codec(codec)?;
        let Some(nal) = codec.video().and_then(|video| video.nal.as_ref()) else {
            return Ok(None);
        };
        let mut parser = SubsampleParser {
            parameter_sets: match nal.is_hevc {
                true => ParameterSets::Hevc(HevcParameterSets::default()),
                false => ParameterSets::Avc(AvcParameterSets::default()),
            },
            length_field_bytes: nal.length_field_bytes.into(),
            scheme: protection.scheme,
            map: SubsampleMap::default(),
            sample: Vec::new(),
        };
        for set in &nal.parameter_sets {
            parser.add_parameter_set(set)?;
        }
        Ok(Some(parser))
    }

    /// Checks that a track can be protected. The result is the same for both schemes.
    ///
    /// # Errors
    /// The errors of [`SubsampleParser::new`].
    pub fn check_protectable_track(codec: &Codec) -> Result<()> {
        SubsampleParser::new(codec, &ProtectionParameters::PLACEHOLDER).map(drop)
    }

    /// Adds the next sample.
    ///
    /// # Errors
    /// `Malformed` if the NAL units do not fill the sample, or if a slice header cannot be parsed;
    /// `Unsupported` if the sample contains a NAL unit that cannot be protected; `TooLarge` if the
    /// sample has more slices than `saiz` can describe.
    pub fn add_sample(&mut self, sample: &[u8]) -> Result<()> {
        let mut subsamples = std::mem::take(&mut self.sample);
        let whole_blocks = self.scheme == ProtectionScheme::Cenc;
        let mut collector = SubsampleCollector::new(&mut subsamples, whole_blocks);
        let mut rest = sample;
        while !rest.is_empty() {
            let (nal, after) = self.take_nal_unit(rest)?;
            let clear = match self.classify_unit(nal)? {
                NalUnitTreatment::Clear => nal.len(),
                NalUnitTreatment::ParameterSet => {
                    self.add_parameter_set(nal)?;
                    nal.len()
                }
                NalUnitTreatment::Slice => self.slice_headers_len(nal)?,
            };
            collector.add_clear(self.length_field_bytes + clear);
            collector.add_protected(nal.len() - clear);
            rest = after;
        }
        collector.finish();
        if subsamples.len() > SUBSAMPLES_MAX {
            return Err(Error::new(
                crate::error::ErrorKind::TooLarge,
                format!(
                    "a picture of {} slices cannot be protected; encode at most {SUBSAMPLES_MAX}",
                    subsamples.len()
                ),
            ));
        }
        self.map.push_sample(&subsamples);
        self.sample = subsamples;
        Ok(())
    }

    /// Returns the subsamples of all samples that were added.
    pub fn finish(self) -> SubsampleMap {
        self.map
    }

    /// Splits off the first NAL unit. Returns this unit without its length field, and the remaining
    /// bytes.
    fn take_nal_unit<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
        let split = bytes
            .split_at_checked(self.length_field_bytes)
            .and_then(|(length, rest)| {
                let length = length
                    .iter()
                    .fold(0usize, |length, byte| length << 8 | usize::from(*byte));
                rest.split_at_checked(length)
            });
        split.ok_or_else(|| Error::malformed("the NAL units do not fill their sample"))
    }

    fn classify_unit(&self, nal: &[u8]) -> Result<NalUnitTreatment> {
        let head = nal.first().copied().unwrap_or_default();
        let unsupported = |what: &str| {
            let message = format!("{what} cannot be protected; encode the video without it");
            Err(Error::unsupported(message))
        };
        match self.parameter_sets {
            _ if nal.is_empty() => Ok(NalUnitTreatment::Clear),
            ParameterSets::Avc(_) => match head & 31 {
                1 | 5 => Ok(NalUnitTreatment::Slice),
                2..=4 => unsupported("AVC data partitioning"),
                7 | 8 => Ok(NalUnitTreatment::ParameterSet),
                19 => unsupported("AVC with auxiliary pictures"),
                20 | 21 => unsupported("AVC with several layers"),
                _ => Ok(NalUnitTreatment::Clear),
            },
            ParameterSets::Hevc(_) => match head >> 1 & 63 {
                0..=31 if layer_id(nal) > 0 => unsupported("HEVC with several layers"),
                0..=31 => Ok(NalUnitTreatment::Slice),
                33 | 34 if layer_id(nal) == 0 => Ok(NalUnitTreatment::ParameterSet),
                _ => Ok(NalUnitTreatment::Clear),
            },
        }
    }

    fn add_parameter_set(&mut self, set: &[u8]) -> Result<()> {
        let added = match &mut self.parameter_sets {
            ParameterSets::Avc(sets) => sets.insert_parameter_set(set),
            ParameterSets::Hevc(sets) => sets.insert_parameter_set(set),
        };
        added.ok_or_else(|| {
            Error::unsupported(
                "a parameter set cannot be read, so the video cannot be protected; encode it without extensions",
            )
        })
    }

    fn slice_headers_len(&self, slice: &[u8]) -> Result<usize> {
        let len = match &self.parameter_sets {
            ParameterSets::Avc(sets) => sets.slice_headers_len(slice),
            ParameterSets::Hevc(sets) => sets.slice_headers_len(slice),
        };
        len.ok_or_else(|| Error::malformed("a slice header cannot be read"))
    }
}

/// `nuh_layer_id` (ITU-T H.265, 7.3.1.2).
fn layer_id(nal: &[u8]) -> u8 {
    let [a, b] = nal.first_chunk().copied().unwrap_or_default();
    (a & 1) << 5 | b >> 3
}
