//! The samples of one track: size, time, place and kind of each, at some eight bytes a sample.

use super::chunks::{Chunks, ChunksBuilder};
use super::column::Column;
use super::durations::{Cursor, Durations};
use super::packed::Packed;
use super::sizes::Sizes;
use std::ops::Range;

/// One access unit: a coded picture, or a frame of sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Decode time in ticks, from the track's first sample.
    pub dts: u64,
    /// Ticks until the next sample is decoded.
    pub duration: u32,
    /// Composition offset: shown at `dts + cts + origin`.
    pub cts: i32,
    /// Bytes.
    pub size: u32,
    /// Whether decoding can start here.
    pub sync: bool,
    /// Where its bytes begin in the file.
    pub offset: u64,
}

/// Samples by number, from 0. Every look-up by number or time is logarithmic at worst, plus at
/// most one chunk or one block of `BLOCK` samples; none depends on the place in the film.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    len: u32,
    end: u64,
    durations: Durations,
    sizes: Sizes,
    /// Distinct composition offsets, and per sample which of them.
    cts_values: Box<[i32]>,
    cts: Packed,
    /// Numbers of the sync samples, ascending; `None`: all are.
    sync: Option<Box<[u32]>>,
    chunks: Chunks,
}

/// Samples between two absolute times or places, where they are packed one by one.
pub(super) const BLOCK: u32 = 64;

impl Samples {
    /// Packs columns of equal length. `sync` lists the sync samples; `None`: all are.
    pub(super) fn new(
        (durations, end): (&Column, u64),
        sizes: &Column,
        (cts, cts_values): (&Column, Vec<i32>),
        sync: Option<Vec<u32>>,
        chunks: ChunksBuilder,
    ) -> Samples {
        Samples {
            len: sizes.len(),
            end,
            durations: Durations::new(durations),
            sizes: Sizes::new(sizes),
            cts: cts.pack(),
            cts_values: cts_values.into(),
            sync: sync.map(Vec::into),
            chunks: chunks.finish(sizes.len()),
        }
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sum of all durations, in ticks.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Decode time of sample `n`; [`Samples::end`] past the last.
    pub fn dts(&self, n: u32) -> u64 {
        if n >= self.len {
            return self.end;
        }
        self.durations.before(n)
    }

    /// The sample being decoded at `dts`: the last that starts at or before it (0 before the
    /// first, the last one after the end).
    pub fn at_dts(&self, dts: u64) -> u32 {
        self.durations.at(dts, self.len)
    }

    /// When the last of them is shown no more: the largest `dts + cts + duration`, where a sample
    /// without a duration is taken to last a tick.
    pub fn last_shown(&self) -> i64 {
        let end = |sample: Sample| {
            let dts = i64::try_from(sample.dts).unwrap_or(i64::MAX);
            dts.saturating_add(i64::from(sample.cts) + i64::from(sample.duration.max(1)))
        };
        // From the end back, until nothing before can last longer: not even with the largest offset.
        let cts_max = i64::from(self.cts_values.iter().copied().max().unwrap_or(0));
        let (mut until, mut last) = (self.len, i64::MIN);
        while until > 0 {
            let from = until.saturating_sub(BLOCK);
            last = last.max(self.range(from..until).map(end).max().unwrap_or(last));
            let before = i64::try_from(self.dts(from)).unwrap_or(i64::MAX);
            if before.saturating_add(cts_max + 1) <= last {
                break;
            }
            until = from;
        }
        if self.len == 0 { 0 } else { last }
    }

    /// Ticks of sample `n`.
    pub fn duration(&self, n: u32) -> u32 {
        if n >= self.len {
            return 0;
        }
        self.durations.get(n)
    }

    /// Bytes of sample `n`.
    pub fn size(&self, n: u32) -> u32 {
        self.sizes.get(n)
    }

    /// Composition offset of sample `n`.
    pub fn cts(&self, n: u32) -> i32 {
        let number = self.cts.get(n) as usize;
        self.cts_values.get(number).copied().unwrap_or(0)
    }

    /// Whether decoding can start at sample `n`.
    pub fn is_sync(&self, n: u32) -> bool {
        self.sync
            .as_ref()
            .is_none_or(|sync| sync.binary_search(&n).is_ok())
    }

    /// Whether decoding can start at every sample.
    pub fn all_sync(&self) -> bool {
        self.sync.is_none()
    }

    /// Numbers of the samples where decoding can start, ascending.
    pub fn sync_samples(&self) -> impl Iterator<Item = u32> + '_ {
        let listed = self.sync.as_deref();
        let count = listed.map_or(self.len, |sync| sync.len() as u32);
        (0..count).map(move |n| listed.map_or(n, |sync| sync[n as usize]))
    }

    /// The first sync sample at or after `n`.
    pub fn sync_from(&self, n: u32) -> Option<u32> {
        match &self.sync {
            Some(sync) => sync.get(sync.partition_point(|s| *s < n)).copied(),
            None => (n < self.len).then_some(n),
        }
    }

    /// The last sync sample at or before `n`.
    pub fn sync_until(&self, n: u32) -> Option<u32> {
        match &self.sync {
            Some(sync) => sync
                .partition_point(|s| *s <= n)
                .checked_sub(1)
                .map(|at| sync[at]),
            None => (self.len > 0).then(|| n.min(self.len - 1)),
        }
    }

    /// Sample `n`. For many in a row use [`Samples::range`].
    pub fn get(&self, n: u32) -> Sample {
        self.range(n..n.saturating_add(1)).next().unwrap_or(Sample {
            dts: self.end,
            duration: 0,
            cts: 0,
            size: 0,
            sync: false,
            offset: 0,
        })
    }

    /// Samples `range`, in order, cut to those that exist.
    pub fn range(&self, range: Range<u32>) -> impl ExactSizeIterator<Item = Sample> + '_ {
        let range = range.start.min(self.len)..range.end.min(self.len);
        let mut dts = self.dts(range.start);
        let mut chunk = self.chunks.locate(range.start);
        let mut offset = self.chunks.offset(chunk.number);
        offset += self.sizes.sum(chunk.first..range.start);
        let mut durations = Cursor::new(&self.durations, range.start);
        let mut sync = SyncCursor::new(self.sync.as_deref(), range.start);
        range.map(move |n| {
            if n >= chunk.end {
                chunk = self.chunks.after(&chunk);
                offset = self.chunks.offset(chunk.number);
            }
            let (duration, size) = (durations.get(n), self.size(n));
            let (cts, sync) = (self.cts(n), sync.get(n));
            let sample = Sample {
                dts,
                duration,
                cts,
                size,
                sync,
                offset,
            };
            dts += u64::from(duration);
            offset += u64::from(size);
            sample
        })
    }

    /// Bytes of samples `range` together.
    pub fn bytes(&self, range: Range<u32>) -> u64 {
        self.sizes.sum(range)
    }

    /// The duration that all of `range` share, if they do. Cheap where durations come in runs.
    pub fn shared_duration(&self, range: Range<u32>) -> Option<u32> {
        let range = range.start..range.end.min(self.len);
        if range.is_empty() {
            return None;
        }
        self.durations.shared(range)
    }

    /// The size that all of `range` share, if they do.
    pub fn shared_size(&self, range: Range<u32>) -> Option<u32> {
        self.sizes.shared(range)
    }

    /// The composition offset that all of `range` share, if they do.
    pub fn shared_cts(&self, range: Range<u32>) -> Option<i32> {
        let value = self.cts.shared(range)?;
        self.cts_values.get(value as usize).copied()
    }

    /// How many of `range` are sync samples, and whether its first is one.
    pub fn sync_in(&self, range: Range<u32>) -> (u32, bool) {
        let range = range.start.min(self.len)..range.end.min(self.len);
        let Some(sync) = &self.sync else {
            return (range.len() as u32, !range.is_empty());
        };
        let from = &sync[sync.partition_point(|n| *n < range.start)..];
        let most = &from[..from.len().min(range.len())];
        let within = &most[..most.partition_point(|n| *n < range.end)];
        (within.len() as u32, within.first() == Some(&range.start))
    }

    /// The smallest composition offset of the track; 0 if it has no samples.
    pub fn cts_min(&self) -> i32 {
        self.cts_values.iter().copied().min().unwrap_or(0)
    }

    /// Bytes of heap.
    pub fn heap_bytes(&self) -> usize {
        let sync = self.sync.as_ref().map_or(0, |sync| size_of_val(&**sync));
        let cts = size_of_val(&*self.cts_values) + self.cts.heap_bytes();
        let chunks = self.chunks.heap_bytes();
        self.durations.heap_bytes() + self.sizes.heap_bytes() + cts + sync + chunks
    }
}

/// Whether samples in order are sync samples, without a search for each.
struct SyncCursor<'a> {
    /// The sync samples that are still ahead.
    ahead: Option<&'a [u32]>,
}

impl<'a> SyncCursor<'a> {
    fn new(sync: Option<&'a [u32]>, from: u32) -> SyncCursor<'a> {
        let ahead = sync.map(|sync| {
            sync.get(sync.partition_point(|n| *n < from)..)
                .unwrap_or_default()
        });
        SyncCursor { ahead }
    }

    fn get(&mut self, n: u32) -> bool {
        let Some(ahead) = self.ahead else {
            return true;
        };
        match ahead.split_first() {
            Some((first, rest)) if *first == n => {
                self.ahead = Some(rest);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
