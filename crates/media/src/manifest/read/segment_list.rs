//! The segments of a rendition, with exact times and byte positions.

use super::resource_range::{ResourceRange, resolve_url};
use super::url_template::{TemplateValues, fill_template};
use crate::error::{Error, ErrorKind, Result};
use crate::time::Time;
use std::ops::Range;
use std::sync::Arc;
use url::Url;

/// Maximum number of segments in one manifest, enough for ten renditions of two-second segments
/// over two days. The limit is needed because one line of a manifest can describe a billion
/// segments.
pub const SEGMENTS_MAX: usize = 1_000_000;

/// Segments in order of time.
///
/// Each URL is stored as the manifest contains it, and is resolved when a segment is requested. A
/// long base URL is therefore not stored again for each segment.
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
    /// Index into the addresses of the list.
    pub(super) address_index: u32,
    /// Index into the init segments of the list.
    pub(super) init_index: Option<u16>,
    /// Whether the manifest marks the segment as missing.
    pub(super) is_gap: bool,
    /// `$Number$`.
    pub(super) number: u64,
    /// `$Time$`.
    pub(super) time: u64,
    /// Byte range of the resource; `None` means the whole resource.
    pub(super) byte_range: Option<(u64, u64)>,
}

/// The URL of one segment, or the URL template of many segments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SegmentAddress {
    pub(super) base: Arc<Url>,
    /// Shared, so that copies of a list take little memory.
    pub(super) text: Arc<str>,
    pub(super) template: Option<Arc<RepresentationTemplateValues>>,
}

/// Values of a representation that replace identifiers of a URL template.
#[derive(Debug, PartialEq)]
pub(super) struct RepresentationTemplateValues {
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
    /// of the last segment.
    pub fn start_time(&self, n: usize) -> Time {
        match self.rows.get(n) {
            Some(row) => Time::new(row.start_ticks, row.timescale),
            None => self.last_segment_end(),
        }
    }

    /// Returns the duration of segment `n`; zero past the last segment.
    pub fn duration(&self, n: usize) -> Time {
        let row = self.rows.get(n);
        row.map_or(Time::ZERO, |row| {
            Time::new(row.duration_ticks, row.timescale)
        })
    }

    /// Returns the end of the last segment.
    pub fn last_segment_end(&self) -> Time {
        self.rows.last().map_or(Time::ZERO, |row| {
            Time::new(
                row.start_ticks.saturating_add(row.duration_ticks),
                row.timescale,
            )
        })
    }

    /// Returns the index of the last segment that starts at or before `time`; 0 if all segments
    /// start later.
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

    /// Returns the resource of segment `n`; `None` past the last segment.
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
        let url = address.resolve_segment_url(row.number, row.time)?;
        let range = row.byte_range.map(|(start, end)| start..end);
        Ok(Some(ResourceRange { url, range }))
    }

    /// Returns the index of the init segment of segment `n`. Segments that share an init segment
    /// have the same index.
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
        let url = init.address.resolve_segment_url(0, 0)?;
        Ok(Some(ResourceRange {
            url,
            range: init.range.clone(),
        }))
    }

    /// Returns the approximate memory of the list in bytes.
    pub fn memory_bytes(&self) -> usize {
        let text = self.addresses.iter().map(|address| address.text.len());
        self.rows.len() * size_of::<SegmentRow>()
            + self.addresses.len() * size_of::<SegmentAddress>()
            + text.sum::<usize>()
    }

    /// Appends the segments of `other`.
    ///
    /// # Errors
    /// `TooLarge` if the list would contain more than [`SEGMENTS_MAX`] segments or 65,535 init
    /// segments.
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

    /// Adds an address, unless the last address is equal. Returns the index of the address.
    pub(super) fn push_address(&mut self, address: SegmentAddress) -> u32 {
        if self.addresses.last() != Some(&address) {
            self.addresses.push(address);
        }
        self.addresses.len() as u32 - 1
    }

    /// Adds an init segment, unless the last init segment is equal. Returns the index of the init
    /// segment.
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
    pub(super) fn resolve_segment_url(&self, number: u64, time: u64) -> Result<Url> {
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
