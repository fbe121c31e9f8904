//! Conversion of NAL units with length fields (ISO/IEC 14496-15) to a byte stream with start codes
//! (annex B of ITU-T H.264 and H.265). In the byte stream, each frame starts with an access unit
//! delimiter, and key frames contain the parameter sets.

use super::MuxFrame;
use crate::codec::NalFormat;
use crate::error::{Error, Result};

const START_CODE: [u8; 4] = [0, 0, 0, 1];
/// Access unit delimiters that allow any slice type, with their start codes.
const AVC_DELIMITER: &[u8] = &[0, 0, 0, 1, 0x09, 0xf0];
const HEVC_DELIMITER: &[u8] = &[0, 0, 0, 1, 0x46, 0x01, 0x50];

/// Conversion parameters of one track.
#[derive(Debug)]
pub struct AnnexBConverter {
    is_hevc: bool,
    length_bytes: usize,
    delimiter: &'static [u8],
    /// Parameter sets with start codes.
    parameter_sets: Vec<u8>,
}

/// A scanned frame: the NAL units to add, and the length of the frame in the byte stream.
#[derive(Debug)]
pub struct AnnexBFrame<'a> {
    /// Length in the byte stream, in bytes.
    pub len: usize,
    data: &'a [u8],
    has_delimiter: bool,
    needs_parameter_sets: bool,
}

impl AnnexBConverter {
    /// Creates a converter for this NAL format.
    pub fn new(nal: &NalFormat) -> AnnexBConverter {
        let mut sets = Vec::new();
        for set in &nal.parameter_sets {
            sets.extend_from_slice(&START_CODE);
            sets.extend_from_slice(set);
        }
        AnnexBConverter {
            is_hevc: nal.is_hevc,
            length_bytes: usize::from(nal.length_field_bytes),
            delimiter: if nal.is_hevc {
                HEVC_DELIMITER
            } else {
                AVC_DELIMITER
            },
            parameter_sets: sets,
        }
    }

    /// Scans a frame. Reads only the length field and the header of each NAL unit.
    ///
    /// # Errors
    /// `Malformed` if a NAL unit is longer than the rest of its sample.
    pub fn scan_frame<'a>(&self, frame: &MuxFrame<'a>) -> Result<AnnexBFrame<'a>> {
        let mut unit = AnnexBFrame {
            len: 0,
            data: frame.data,
            has_delimiter: false,
            needs_parameter_sets: frame.is_sync,
        };
        let mut rest = frame.data;
        let mut first = true;
        while let Some((nal, after)) = split_nal_unit(rest, self.length_bytes)? {
            let (delimiter, parameters) = self.classify_nal_unit(nal);
            unit.has_delimiter |= first && delimiter;
            unit.needs_parameter_sets &= !parameters;
            unit.len += START_CODE.len() + nal.len();
            rest = after;
            first = false;
        }
        if !unit.has_delimiter {
            unit.len += self.delimiter.len();
        }
        if unit.needs_parameter_sets {
            unit.len += self.parameter_sets.len();
        }
        Ok(unit)
    }

    /// Passes the frame's byte stream to `write`, in parts.
    pub fn write_frame(&self, unit: &AnnexBFrame<'_>, mut write: impl FnMut(&[u8])) {
        let sets: &[u8] = if unit.needs_parameter_sets {
            &self.parameter_sets
        } else {
            &[]
        };
        if !unit.has_delimiter {
            write(self.delimiter);
            write(sets);
        }
        let mut rest = unit.data;
        let mut after_delimiter = unit.has_delimiter;
        while let Ok(Some((nal, after))) = split_nal_unit(rest, self.length_bytes) {
            write(&START_CODE);
            write(nal);
            if after_delimiter {
                write(sets);
                after_delimiter = false;
            }
            rest = after;
        }
    }

    /// Estimates the length of a frame in the byte stream, in bytes. `size` is the size of the
    /// frame in the file. The frame is assumed to contain neither delimiter nor parameter sets.
    pub fn len_estimate(&self, size: u32, sync: bool) -> usize {
        let sets = if sync { self.parameter_sets.len() } else { 0 };
        let longer = START_CODE.len() - self.length_bytes.min(START_CODE.len());
        size as usize + longer + self.delimiter.len() + sets
    }

    /// Returns the maximum length of a frame in the byte stream, in bytes, for any content. `size`
    /// is the size of the frame in the file.
    pub fn len_max(&self, size: u32, sync: bool) -> usize {
        let longer = START_CODE.len() - self.length_bytes.min(START_CODE.len());
        // Each written NAL unit has at least one byte after the length field. A start code can be
        // longer than a length field, and the estimate includes this difference for only one unit.
        let units = size as usize / (self.length_bytes + 1);
        self.len_estimate(size, sync) + units * longer
    }

    /// Returns whether the unit is an access unit delimiter, and whether it is an SPS.
    fn classify_nal_unit(&self, nal: &[u8]) -> (bool, bool) {
        let head = nal.first().copied().unwrap_or(0);
        if self.is_hevc {
            let kind = head >> 1 & 63;
            (kind == 35, kind == 33)
        } else {
            (head & 31 == 9, head & 31 == 7)
        }
    }
}

/// Splits off the next NAL unit that is not empty. `None` at the end.
fn split_nal_unit(mut rest: &[u8], length_bytes: usize) -> Result<Option<(&[u8], &[u8])>> {
    while !rest.is_empty() {
        let cut = rest
            .split_at_checked(length_bytes)
            .and_then(|(field, rest)| {
                let fold = |len, byte: &u8| len << 8 | usize::from(*byte);
                rest.split_at_checked(field.iter().fold(0, fold))
            });
        match cut {
            None => return Err(overlong_nal_unit_error(rest.len())),
            Some(([], after)) => rest = after,
            Some(cut) => return Ok(Some(cut)),
        }
    }
    Ok(None)
}

fn overlong_nal_unit_error(left: usize) -> Error {
    Error::malformed(format!(
        "a NAL unit is longer than its sample, of which {left} bytes are left"
    ))
}
