//! Segments out of a `sidx` (ISO/IEC 14496-12, 8.16.3): what `SegmentBase@indexRange` points at.

use super::address::Part;
use super::segments::{Address, Init, Row, Segments};
use crate::bmff::Children;
use crate::bmff::sidx::Sidx;
use crate::error::{Error, Result};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;

/// A file whose segments its own index names.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexPiece {
    /// The file; its range is the index.
    pub part: Part,
    /// Bytes of the init segment, where they are known.
    pub init: Option<Range<u64>>,
    /// When the period starts, in nanoseconds.
    pub period_start: i64,
    /// The file's time at the start of the period, in seconds.
    pub presentation_offset: Time,
}

impl IndexPiece {
    /// Reads the bytes that were fetched.
    ///
    /// # Errors
    /// `Malformed` or `Truncated` if they hold no whole `sidx`; `Unsupported` if it points at
    /// further ones.
    pub fn read(&self, bytes: &[u8]) -> Result<Segments> {
        let at = self.part.range.as_ref().map_or(0, |range| range.start);
        let mut found = None;
        for next in Children::new(bytes, 0) {
            let next = next?;
            if &next.name == b"sidx" {
                let end = at.checked_add(next.body_at() + next.body.len() as u64);
                found = Some((next.read(Sidx::parse)?, end.ok_or_else(overflow)?));
                break;
            }
        }
        let (sidx, end) = found.ok_or_else(|| Error::malformed("no sidx in the index range"))?;
        self.segments(&sidx, end)
    }

    fn segments(&self, sidx: &Sidx, end: u64) -> Result<Segments> {
        let timescale = sidx.timescale;
        if timescale == 0 {
            return Err(Error::malformed("a sidx with a timescale of 0"));
        }
        let shift = Time::new(self.period_start, super::decimal::NANOS)
            .round_to(timescale)
            .checked_sub(self.presentation_offset.round_to(timescale))
            .ok_or_else(overflow)?;
        let mut segments = Segments::default();
        let address = Address {
            base: Arc::new(self.part.url.clone()),
            text: "".into(),
            template: None,
        };
        let init = match &self.init {
            Some(range) => Some(segments.push_init(Init {
                address: address.clone(),
                range: Some(range.clone()),
            })?),
            None => None,
        };
        let address = segments.push_address(address);
        let mut byte = end.checked_add(sidx.first_offset).ok_or_else(overflow)?;
        let start = i64::try_from(sidx.earliest).map_err(|_| overflow())?;
        let mut start = start.checked_add(shift).ok_or_else(overflow)?;
        for reference in &sidx.references {
            if reference.is_index {
                return Err(Error::unsupported("a sidx that points at further ones"));
            }
            let after = byte
                .checked_add(reference.size.into())
                .ok_or_else(overflow)?;
            segments.push(Row {
                start,
                duration: reference.duration.into(),
                timescale,
                address,
                init,
                gap: reference.size == 0,
                number: 0,
                time: 0,
                range: Some((byte, after)),
            })?;
            byte = after;
            start = start
                .checked_add(reference.duration.into())
                .ok_or_else(overflow)?;
        }
        Ok(segments)
    }
}

fn overflow() -> Error {
    Error::malformed("a sidx whose times or bytes run past 64 bits")
}
