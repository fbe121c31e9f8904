//! A rendition's segments: exact times, and where the bytes lie.

use super::address::{Part, resolve};
use super::template::{Values, fill};
use crate::error::{Error, Kind, Result};
use crate::time::Time;
use std::ops::Range;
use url::Url;

/// The most segments that are kept of one manifest: ten renditions of two-second segments for two
/// days. Manifests can name a thousand million in a line.
pub const SEGMENTS_MAX: usize = 1_000_000;

/// Segments in order of time.
///
/// Text stays as the manifest has it and is resolved when a segment is asked for: a long base is
/// then not repeated for each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Segments {
    rows: Vec<Row>,
    addresses: Vec<Address>,
    inits: Vec<Init>,
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// When it is first shown, in ticks from the start of the presentation; may be negative.
    pub(super) start: i64,
    /// Ticks.
    pub(super) duration: i64,
    /// Ticks a second; not zero.
    pub(super) timescale: u32,
    /// Which address.
    pub(super) address: u32,
    /// Which init segment.
    pub(super) init: Option<u16>,
    /// Said not to exist.
    pub(super) gap: bool,
    /// `$Number$`.
    pub(super) number: u64,
    /// `$Time$`.
    pub(super) time: u64,
    /// Bytes of the resource; all where `None`.
    pub(super) range: Option<(u64, u64)>,
}

/// The URL of one or many segments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Address {
    pub(super) base: std::sync::Arc<Url>,
    pub(super) text: Box<str>,
    pub(super) template: Option<std::sync::Arc<Identity>>,
}

/// Which representation a template speaks of.
#[derive(Debug, PartialEq)]
pub(super) struct Identity {
    pub(super) id: String,
    pub(super) bandwidth: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Init {
    pub(super) address: Address,
    pub(super) range: Option<Range<u64>>,
}

impl Segments {
    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// When segment `n` is first shown; past the last, when the last one ends.
    pub fn start(&self, n: usize) -> Time {
        match self.rows.get(n) {
            Some(row) => Time::new(row.start, row.timescale),
            None => self.end(),
        }
    }

    /// How long segment `n` is; past the last, nothing.
    pub fn duration(&self, n: usize) -> Time {
        let row = self.rows.get(n);
        row.map_or(Time::ZERO, |row| Time::new(row.duration, row.timescale))
    }

    /// When the last segment ends.
    pub fn end(&self) -> Time {
        self.rows.last().map_or(Time::ZERO, |row| {
            Time::new(row.start.saturating_add(row.duration), row.timescale)
        })
    }

    /// The segment that is shown at `time`: the last that starts at or before it.
    pub fn at(&self, time: Time) -> usize {
        let after = self
            .rows
            .partition_point(|row| Time::new(row.start, row.timescale) <= time);
        after.saturating_sub(1)
    }

    /// Whether the manifest says that segment `n` does not exist (EXT-X-GAP).
    pub fn is_gap(&self, n: usize) -> bool {
        self.rows.get(n).is_some_and(|row| row.gap)
    }

    /// What to ask for to get segment `n`; `None` past the last.
    ///
    /// # Errors
    /// As [`resolve`]; `Malformed` for a template that cannot be filled in.
    pub fn part(&self, n: usize) -> Result<Option<Part>> {
        let Some(row) = self.rows.get(n) else {
            return Ok(None);
        };
        let Some(address) = self.addresses.get(row.address as usize) else {
            return Ok(None);
        };
        let url = address.resolve(row.number, row.time)?;
        let range = row.range.map(|(start, end)| start..end);
        Ok(Some(Part { url, range }))
    }

    /// Which init segment is needed before segment `n`: a number that is equal for segments that
    /// share one.
    pub fn init(&self, n: usize) -> Option<u16> {
        self.rows.get(n).and_then(|row| row.init)
    }

    /// What to ask for to get an init segment.
    ///
    /// # Errors
    /// As [`Segments::part`].
    pub fn init_part(&self, init: u16) -> Result<Option<Part>> {
        let Some(init) = self.inits.get(usize::from(init)) else {
            return Ok(None);
        };
        let url = init.address.resolve(0, 0)?;
        Ok(Some(Part {
            url,
            range: init.range.clone(),
        }))
    }

    /// Bytes of memory that this takes, about.
    pub fn memory_bytes(&self) -> usize {
        let text = self.addresses.iter().map(|address| address.text.len());
        self.rows.len() * size_of::<Row>()
            + self.addresses.len() * size_of::<Address>()
            + text.sum::<usize>()
    }

    /// These, then `other`'s.
    ///
    /// # Errors
    /// `TooLarge` over [`SEGMENTS_MAX`].
    pub fn append(&mut self, other: Segments) -> Result<()> {
        let addresses = self.addresses.len() as u32;
        let inits = self.inits.len() as u16;
        if self.inits.len() + other.inits.len() > usize::from(u16::MAX) {
            return Err(too_many_inits());
        }
        for mut row in other.rows {
            row.address += addresses;
            row.init = row.init.map(|init| init + inits);
            self.push(row)?;
        }
        self.addresses.extend(other.addresses);
        self.inits.extend(other.inits);
        Ok(())
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        if self.rows.len() >= SEGMENTS_MAX {
            return Err(too_many(SEGMENTS_MAX as u64 + 1));
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds an address, unless it is the last one again.
    pub(super) fn push_address(&mut self, address: Address) -> u32 {
        if self.addresses.last() != Some(&address) {
            self.addresses.push(address);
        }
        self.addresses.len() as u32 - 1
    }

    /// Adds an init segment, unless it is the last one again.
    pub(super) fn push_init(&mut self, init: Init) -> Result<u16> {
        if self.inits.last() != Some(&init) {
            if self.inits.len() >= usize::from(u16::MAX) {
                return Err(too_many_inits());
            }
            self.inits.push(init);
        }
        Ok((self.inits.len() - 1) as u16)
    }
}

impl Address {
    pub(super) fn resolve(&self, number: u64, time: u64) -> Result<Url> {
        let Some(identity) = &self.template else {
            return resolve(&self.base, &self.text);
        };
        let values = Values {
            id: &identity.id,
            bandwidth: identity.bandwidth,
            number,
            time,
        };
        resolve(&self.base, &fill(&self.text, &values)?)
    }
}

/// More segments than are kept.
pub(super) fn too_many(count: u64) -> Error {
    let what = format!("{count} segments or more are listed; at most {SEGMENTS_MAX} are read");
    Error::new(Kind::TooLarge, what)
}

fn too_many_inits() -> Error {
    let what = format!("more than {} init segments", u16::MAX);
    Error::new(Kind::TooLarge, what)
}
