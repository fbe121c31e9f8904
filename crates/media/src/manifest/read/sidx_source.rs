//! Segments from a `sidx` (ISO/IEC 14496-12, 8.16.3), as referenced by `SegmentBase@indexRange`.

use super::resource_range::ResourceRange;
use super::segment_list::{InitSegment, SegmentAddress, SegmentList, SegmentRow};
use crate::bmff::BoxIterator;
use crate::bmff::sidx::Sidx;
use crate::error::{Error, Result};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// A file with a `sidx` that lists the segments of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct SidxSource {
    /// URL of the file, with the byte range of the `sidx`.
    pub index_resource: ResourceRange,
    /// Byte range of the init segment, if it is known.
    pub init_range: Option<Range<u64>>,
    /// Start of the period, in nanoseconds.
    pub period_start_ns: i64,
    /// Media time at the start of the period.
    pub presentation_time_offset: Time,
}

impl SidxSource {
    /// Parses the fetched bytes of `index_resource`.
    ///
    /// # Errors
    /// `Malformed` or `Truncated` if the bytes contain no complete `sidx`; `Unsupported` if the
    /// `sidx` references further `sidx` boxes.
    pub fn parse_segments(&self, bytes: &[u8]) -> Result<SegmentList> {
        let at = self
            .index_resource
            .range
            .as_ref()
            .map_or(0, |range| range.start);
        let mut found = None;
        for next in BoxIterator::new(bytes, 0) {
            let next = next?;
            if &next.name == b"sidx" {
                let end = at.checked_add(next.body_offset() + next.body.len() as u64);
                found = Some((
                    next.parse_body(Sidx::parse)?,
                    end.ok_or_else(overflow_error)?,
                ));
                break;
            }
        }
        let (sidx, end) = found.ok_or_else(|| Error::malformed("no sidx in the index range"))?;
        self.build_segments(&sidx, end)
    }

    fn build_segments(&self, sidx: &Sidx, end: u64) -> Result<SegmentList> {
        let timescale = sidx.timescale;
        if timescale == 0 {
            return Err(Error::malformed("a sidx with a timescale of 0"));
        }
        let shift = Time::new(self.period_start_ns, super::decimal::NANOS_PER_SECOND)
            .round_to(timescale)
            .checked_sub(self.presentation_time_offset.round_to(timescale))
            .ok_or_else(overflow_error)?;
        let mut segments = SegmentList::default();
        let address = SegmentAddress {
            base: Arc::new(self.index_resource.url.clone()),
            text: "".into(),
            template: None,
        };
        let init = match &self.init_range {
            Some(range) => Some(segments.push_init(InitSegment {
                address: address.clone(),
                range: Some(range.clone()),
            })?),
            None => None,
        };
        let address = segments.push_address(address);
        let mut byte = end
            .checked_add(sidx.first_offset)
            .ok_or_else(overflow_error)?;
        let start = i64::try_from(sidx.earliest_presentation_time).map_err(|_| overflow_error())?;
        let mut start = start.checked_add(shift).ok_or_else(overflow_error)?;
        for reference in &sidx.references {
            if reference.is_index {
                return Err(Error::unsupported("a sidx that references further ones"));
            }
            let after = byte
                .checked_add(reference.referenced_bytes.into())
                .ok_or_else(overflow_error)?;
            segments.push(SegmentRow {
                start_ticks: start,
                duration_ticks: reference.subsegment_duration.into(),
                timescale,
                address_index: address,
                init_index: init,
                is_gap: reference.referenced_bytes == 0,
                number: 0,
                time: 0,
                byte_range: Some((byte, after)),
            })?;
            byte = after;
            start = start
                .checked_add(reference.subsegment_duration.into())
                .ok_or_else(overflow_error)?;
        }
        Ok(segments)
    }
}

fn overflow_error() -> Error {
    Error::malformed("a sidx whose times or bytes exceed 64 bits")
}
