//! The segments of a rendition, with exact times and byte positions.

use super::resource_range::{ResourceRange, resolve_url};
use super::url_template::{TemplateValues, fill_template};
use crate::error::{Error, ErrorKind, Result};
use crate::time::Time;
use std::ops::Range;
use url::Url;

/// Maximum number of segments of one manifest: ten renditions of two-second segments for two days.
/// One line of a manifest can list a billion.
pub const SEGMENTS_MAX: usize = 1_000_000;

/// Segments in order of time.
///
/// URLs are stored as text of the manifest and resolved when a segment is requested. A long base is
/// therefore not repeated for each segment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SegmentList {
    rows: Vec<SegmentRow>,
    addresses: Vec<SegmentAddress>,
    inits: Vec<InitSegment>,
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SegmentRow {
    /// Presentation time in ticks from the start of the presentation; may be negative.
    pub(super) start_ticks: i64,
    /// Duration in ticks.
    pub(super) duration_ticks: i64,
    /// Ticks per second; not zero.
    pub(super) timescale: u32,
    /// Index of the address.
    pub(super) address_index: u32,
    /// Index of the init segment.
    pub(super) init_index: Option<u16>,
    /// Whether the manifest marks the segment as missing.
    pub(super) is_gap: bool,
    /// `$Number$`.
    pub(super) number: u64,
    /// `$Time$`.
    pub(super) time: u64,
    /// Byte range of the resource; `None` means all of it.
    pub(super) byte_range: Option<(u64, u64)>,
}

/// The URL of one or many segments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SegmentAddress {
    pub(super) base: std::sync::Arc<Url>,
    pub(super) text: Box<str>,
    pub(super) template: Option<std::sync::Arc<RepresentationIdentity>>,
}

/// The representation whose values fill in a URL template.
#[derive(Debug, PartialEq)]
pub(super) struct RepresentationIdentity {
    pub(super) id: String,
    pub(super) bandwidth: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct InitSegment {
    pub(super) address: SegmentAddress,
    pub(super) range: Option<Range<u64>>,
}

impl SegmentList {
    /// Number of segments.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the presentation time of segment `n`. If there is no such segment, returns the end
    /// of the last one.
    pub fn start_time(&self, n: usize) -> Time {
        match self.rows.get(n) {
            Some(row) => Time::new(row.start_ticks, row.timescale),
            None => self.end_time(),
        }
    }

    /// Returns the duration of segment `n`; zero past the last.
    pub fn duration(&self, n: usize) -> Time {
        let row = self.rows.get(n);
        row.map_or(Time::ZERO, |row| {
            Time::new(row.duration_ticks, row.timescale)
        })
    }

    /// Returns the end of the last segment.
    pub fn end_time(&self) -> Time {
        self.rows.last().map_or(Time::ZERO, |row| {
            Time::new(
                row.start_ticks.saturating_add(row.duration_ticks),
                row.timescale,
            )
        })
    }

    /// Returns the segment at `time`: the last that starts at or before it.
    pub fn segment_at(&self, time: Time) -> usize {
        let after = self
            .rows
            .partition_point(|row| Time::new(row.start_ticks, row.timescale) <= time);
        after.saturating_sub(1)
    }

    /// Returns whether the manifest marks segment `n` as missing (EXT-X-GAP).
    pub fn is_gap(&self, n: usize) -> bool {
        self.rows.get(n).is_some_and(|row| row.is_gap)
    }

    /// Returns the resource of segment `n`; `None` past the last.
    ///
    /// # Errors
    /// The errors of [`resolve_url`]; `Malformed` for an invalid template.
    pub fn segment_resource(&self, n: usize) -> Result<Option<ResourceRange>> {
        let Some(row) = self.rows.get(n) else {
            return Ok(None);
        };
        let Some(address) = self.addresses.get(row.address_index as usize) else {
            return Ok(None);
        };
        let url = address.resolve(row.number, row.time)?;
        let range = row.byte_range.map(|(start, end)| start..end);
        Ok(Some(ResourceRange { url, range }))
    }

    /// Returns the index of the init segment of segment `n`. It is equal for segments that share
    /// one.
    pub fn init_index(&self, n: usize) -> Option<u16> {
        self.rows.get(n).and_then(|row| row.init_index)
    }

    /// Returns the resource of an init segment.
    ///
    /// # Errors
    /// The errors of [`SegmentList::segment_resource`].
    pub fn init_resource(&self, init: u16) -> Result<Option<ResourceRange>> {
        let Some(init) = self.inits.get(usize::from(init)) else {
            return Ok(None);
        };
        let url = init.address.resolve(0, 0)?;
        Ok(Some(ResourceRange {
            url,
            range: init.range.clone(),
        }))
    }

    /// Approximate memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let text = self.addresses.iter().map(|address| address.text.len());
        self.rows.len() * size_of::<SegmentRow>()
            + self.addresses.len() * size_of::<SegmentAddress>()
            + text.sum::<usize>()
    }

    /// Appends the segments of `other`.
    ///
    /// # Errors
    /// `TooLarge` over [`SEGMENTS_MAX`].
    pub fn append(&mut self, other: SegmentList) -> Result<()> {
        let addresses = self.addresses.len() as u32;
        let inits = self.inits.len() as u16;
        if self.inits.len() + other.inits.len() > usize::from(u16::MAX) {
            return Err(too_many_init_segments_error());
        }
        for mut row in other.rows {
            row.address_index += addresses;
            row.init_index = row.init_index.map(|init| init + inits);
            self.push(row)?;
        }
        self.addresses.extend(other.addresses);
        self.inits.extend(other.inits);
        Ok(())
    }

    pub(super) fn push(&mut self, row: SegmentRow) -> Result<()> {
        if self.rows.len() >= SEGMENTS_MAX {
            return Err(too_many_segments_error(SEGMENTS_MAX as u64 + 1));
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds an address, unless it equals the last one.
    pub(super) fn push_address(&mut self, address: SegmentAddress) -> u32 {
        if self.addresses.last() != Some(&address) {
            self.addresses.push(address);
        }
        self.addresses.len() as u32 - 1
    }

    /// Adds an init segment, unless it equals the last one.
    pub(super) fn push_init(&mut self, init: InitSegment) -> Result<u16> {
        if self.inits.last() != Some(&init) {
            if self.inits.len() >= usize::from(u16::MAX) {
                return Err(too_many_init_segments_error());
            }
            self.inits.push(init);
        }
        Ok((self.inits.len() - 1) as u16)
    }
}

impl SegmentAddress {
    pub(super) fn resolve(&self, number: u64, time: u64) -> Result<Url> {
        let Some(identity) = &self.template else {
            return resolve_url(&self.base, &self.text);
        };
        let values = TemplateValues {
            id: &identity.id,
            bandwidth: identity.bandwidth,
            number,
            time,
        };
        resolve_url(&self.base, &fill_template(&self.text, &values)?)
    }
}

/// Creates the error for more than [`SEGMENTS_MAX`] segments.
pub(super) fn too_many_segments_error(count: u64) -> Error {
    let message = format!("{count} segments or more are listed; at most {SEGMENTS_MAX} are read");
    Error::new(ErrorKind::TooLarge, message)
}

fn too_many_init_segments_error() -> Error {
    let message = format!("more than {} init segments", u16::MAX);
    Error::new(ErrorKind::TooLarge, message)
}
