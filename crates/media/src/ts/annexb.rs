//! From NAL units with lengths (ISO/IEC 14496-15) to a byte stream with start codes (annex B of
//! ITU-T H.264 and H.265), as transport streams want it: each frame begins with an access unit
//! delimiter, and key frames with the parameter sets.

use super::Frame;
use crate::codec::Nal;
use crate::error::{Error, Result};

const START_CODE: [u8; 4] = [0, 0, 0, 1];
/// Access unit delimiters that allow any slice type, with their start codes.
const AVC_DELIMITER: &[u8] = &[0, 0, 0, 1, 0x09, 0xf0];
const HEVC_DELIMITER: &[u8] = &[0, 0, 0, 1, 0x46, 0x01, 0x50];

/// What frames of one track have in common.
#[derive(Debug)]
pub struct Stream {
    hevc: bool,
    length_bytes: usize,
    delimiter: &'static [u8],
    /// Parameter sets with start codes.
    sets: Vec<u8>,
}

/// One frame, looked through: what must be added, and how long it becomes.
#[derive(Debug)]
pub struct AccessUnit<'a> {
    /// Bytes in the byte stream.
    pub len: usize,
    data: &'a [u8],
    delimited: bool,
    wants_sets: bool,
}

impl Stream {
    /// Prepares for frames of this kind.
    pub fn new(nal: &Nal) -> Stream {
        let mut sets = Vec::new();
        for set in &nal.parameter_sets {
            sets.extend_from_slice(&START_CODE);
            sets.extend_from_slice(set);
        }
        Stream {
            hevc: nal.hevc,
            length_bytes: usize::from(nal.length_bytes),
            delimiter: if nal.hevc {
                HEVC_DELIMITER
            } else {
                AVC_DELIMITER
            },
            sets,
        }
    }

    /// Looks through a frame, at the head of each NAL unit only.
    ///
    /// # Errors
    /// `Malformed` where a NAL unit's length passes the end of the sample.
    pub fn read<'a>(&self, frame: &Frame<'a>) -> Result<AccessUnit<'a>> {
        let mut unit = AccessUnit {
            len: 0,
            data: frame.data,
            delimited: false,
            wants_sets: frame.sync,
        };
        let mut rest = frame.data;
        let mut first = true;
        while let Some((nal, after)) = next(rest, self.length_bytes)? {
            let (delimiter, parameters) = self.kind(nal);
            unit.delimited |= first && delimiter;
            unit.wants_sets &= !parameters;
            unit.len += START_CODE.len() + nal.len();
            rest = after;
            first = false;
        }
        if !unit.delimited {
            unit.len += self.delimiter.len();
        }
        if unit.wants_sets {
            unit.len += self.sets.len();
        }
        Ok(unit)
    }

    /// Gives the frame's byte stream to `write`, piece by piece.
    pub fn write(&self, unit: &AccessUnit<'_>, mut write: impl FnMut(&[u8])) {
        let sets: &[u8] = if unit.wants_sets { &self.sets } else { &[] };
        if !unit.delimited {
            write(self.delimiter);
            write(sets);
        }
        let mut rest = unit.data;
        let mut after_delimiter = unit.delimited;
        while let Ok(Some((nal, after))) = next(rest, self.length_bytes) {
            write(&START_CODE);
            write(nal);
            if after_delimiter {
                write(sets);
                after_delimiter = false;
            }
            rest = after;
        }
    }

    /// Bytes that a frame of `size` bytes becomes, if nothing of what must be added is there.
    pub fn len_estimate(&self, size: u32, sync: bool) -> usize {
        let sets = if sync { self.sets.len() } else { 0 };
        let longer = START_CODE.len() - self.length_bytes.min(START_CODE.len());
        size as usize + longer + self.delimiter.len() + sets
    }

    /// No more bytes than this come of a frame of `size` bytes, whatever is in it.
    pub fn len_max(&self, size: u32, sync: bool) -> usize {
        let longer = START_CODE.len() - self.length_bytes.min(START_CODE.len());
        // Each NAL unit that is written has a byte at least; one's share is in the estimate.
        let units = size as usize / (self.length_bytes + 1);
        self.len_estimate(size, sync) + units * longer
    }

    /// Whether the unit is an access unit delimiter, and whether it is an SPS.
    fn kind(&self, nal: &[u8]) -> (bool, bool) {
        let head = nal.first().copied().unwrap_or(0);
        if self.hevc {
            let kind = head >> 1 & 63;
            (kind == 35, kind == 33)
        } else {
            (head & 31 == 9, head & 31 == 7)
        }
    }
}

/// The next NAL unit that is not empty, and what follows it; none at the end.
fn next(mut rest: &[u8], length_bytes: usize) -> Result<Option<(&[u8], &[u8])>> {
    while !rest.is_empty() {
        let cut = rest
            .split_at_checked(length_bytes)
            .and_then(|(field, rest)| {
                let fold = |len, byte: &u8| len << 8 | usize::from(*byte);
                rest.split_at_checked(field.iter().fold(0, fold))
            });
        match cut {
            None => return Err(past_the_end(rest.len())),
            Some(([], after)) => rest = after,
            Some(cut) => return Ok(Some(cut)),
        }
    }
    Ok(None)
}

fn past_the_end(left: usize) -> Error {
    Error::malformed(format!(
        "a NAL unit is longer than its sample, of which {left} bytes are left"
    ))
}
