//! The sample table of one track. The size, times, file offset and sync flag of a sample take about
//! eight bytes.

use super::chunk_table::{ChunkTable, ChunkTableBuilder};
use super::column_builder::ColumnBuilder;
use super::duration_table::{DurationCursor, DurationTable};
use super::packed_integers::{PackedIntegers, SAMPLES_PER_BLOCK};
use super::size_table::SizeTable;
use std::ops::Range;

/// One access unit: a coded picture or an audio frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Decode time in ticks, relative to the first sample of the track.
    pub dts: u64,
    /// Ticks until the next sample is decoded.
    pub duration: u32,
    /// Composition offset in ticks. The sample is shown at `dts + composition_offset +
    /// presentation_offset`.
    pub composition_offset: i32,
    /// Size in bytes.
    pub size: u32,
    /// Whether decoding can start at this sample.
    pub is_sync: bool,
    /// Offset of the sample's bytes in the file.
    pub offset: u64,
}

/// The samples of a track, numbered from 0.
///
/// A lookup by number or time takes at most logarithmic time, plus the time to read one chunk or
/// one block of samples. Lookups are equally fast at the start and at the end of the film.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleTable {
    len: u32,
    total_duration: u64,
    durations: DurationTable,
    sizes: SizeTable,
    /// The distinct composition offsets. For each sample, `composition_offset_numbers` contains an
    /// index into this list.
    composition_offset_values: Box<[i32]>,
    composition_offset_numbers: PackedIntegers,
    /// Numbers of the sync samples, in ascending order; `None` means that all samples are sync
    /// samples.
    sync_samples: Option<Box<[u32]>>,
    chunks: ChunkTable,
}

impl SampleTable {
    /// Packs columns of equal length. `sync` lists the sync samples; `None` means that all samples
    /// are sync samples.
    pub(super) fn new(
        (durations, end): (&ColumnBuilder, u64),
        sizes: &ColumnBuilder,
        (offset_numbers, offset_values): (&ColumnBuilder, Vec<i32>),
        sync: Option<Vec<u32>>,
        chunks: ChunkTableBuilder,
    ) -> SampleTable {
        SampleTable {
            len: sizes.len(),
            total_duration: end,
            durations: DurationTable::new(durations),
            sizes: SizeTable::new(sizes),
            composition_offset_numbers: offset_numbers.to_packed(),
            composition_offset_values: offset_values.into(),
            sync_samples: sync.map(Vec::into),
            chunks: chunks.finish(sizes.len()),
        }
    }

    /// Number of samples.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sum of all durations, in ticks.
    pub fn total_duration(&self) -> u64 {
        self.total_duration
    }

    /// Returns the decode time of sample `n`, in ticks. Past the last sample, returns
    /// [`SampleTable::total_duration`].
    pub fn dts(&self, n: u32) -> u64 {
        if n >= self.len {
            return self.total_duration;
        }
        self.durations.dts(n)
    }

    /// Returns the last sample whose decode time is at or before `dts`. Returns 0 if there is no
    /// such sample.
    pub fn sample_at_dts(&self, dts: u64) -> u32 {
        self.durations.sample_at(dts, self.len)
    }

    /// Returns the largest `dts + composition_offset + duration`, in ticks. A sample with duration
    /// 0 counts as one tick long.
    pub fn last_presentation_end(&self) -> i64 {
        let end = |sample: Sample| {
            let dts = i64::try_from(sample.dts).unwrap_or(i64::MAX);
            dts.saturating_add(
                i64::from(sample.composition_offset) + i64::from(sample.duration.max(1)),
            )
        };
        // Searches backwards, and stops when no earlier sample can end after `last`, even with the
        // largest composition offset.
        let cts_max = i64::from(self.composition_offset_max());
        let (mut until, mut last) = (self.len, i64::MIN);
        while until > 0 {
            let from = until.saturating_sub(SAMPLES_PER_BLOCK);
            last = last.max(self.iter_range(from..until).map(end).max().unwrap_or(last));
            let before = i64::try_from(self.dts(from)).unwrap_or(i64::MAX);
            if before.saturating_add(cts_max + 1) <= last {
                break;
            }
            until = from;
        }
        if self.len == 0 { 0 } else { last }
    }

    /// Returns the duration of sample `n`, in ticks.
    pub fn duration(&self, n: u32) -> u32 {
        if n >= self.len {
            return 0;
        }
        self.durations.get(n)
    }

    /// Returns the size of sample `n`, in bytes.
    pub fn size(&self, n: u32) -> u32 {
        self.sizes.get(n)
    }

    /// Returns the composition offset of sample `n`, in ticks.
    pub fn composition_offset(&self, n: u32) -> i32 {
        let number = self.composition_offset_numbers.get(n) as usize;
        self.composition_offset_values
            .get(number)
            .copied()
            .unwrap_or(0)
    }

    /// Returns whether decoding can start at sample `n`.
    pub fn is_sync(&self, n: u32) -> bool {
        self.sync_samples
            .as_ref()
            .is_none_or(|sync| sync.binary_search(&n).is_ok())
    }

    /// Returns whether decoding can start at every sample.
    pub fn is_all_sync(&self) -> bool {
        self.sync_samples.is_none()
    }

    /// Iterates over the numbers of the sync samples, in ascending order.
    pub fn sync_samples(&self) -> impl Iterator<Item = u32> + '_ {
        let listed = self.sync_samples.as_deref();
        let count = listed.map_or(self.len, |sync| sync.len() as u32);
        (0..count).map(move |n| listed.map_or(n, |sync| sync[n as usize]))
    }

    /// Returns the first sync sample at or after sample `n`.
    pub fn first_sync_from(&self, n: u32) -> Option<u32> {
        match &self.sync_samples {
            Some(sync) => sync.get(sync.partition_point(|s| *s < n)).copied(),
            None => (n < self.len).then_some(n),
        }
    }

    /// Returns the last sync sample at or before sample `n`.
    pub fn last_sync_until(&self, n: u32) -> Option<u32> {
        match &self.sync_samples {
            Some(sync) => sync
                .partition_point(|s| *s <= n)
                .checked_sub(1)
                .map(|at| sync[at]),
            None => (self.len > 0).then(|| n.min(self.len - 1)),
        }
    }

    /// Returns sample `n`. Use [`SampleTable::iter_range`] for consecutive samples.
    pub fn get(&self, n: u32) -> Sample {
        self.iter_range(n..n.saturating_add(1))
            .next()
            .unwrap_or(Sample {
                dts: self.total_duration,
                duration: 0,
                composition_offset: 0,
                size: 0,
                is_sync: false,
                offset: 0,
            })
    }

    /// Iterates over the samples of `range`. Ignores the part of `range` past the last sample.
    pub fn iter_range(&self, range: Range<u32>) -> impl ExactSizeIterator<Item = Sample> + '_ {
        let range = range.start.min(self.len)..range.end.min(self.len);
        let mut dts = self.dts(range.start);
        let mut chunk = self.chunks.find_chunk(range.start);
        let mut offset = self.chunks.chunk_offset(chunk.number);
        offset += self.sizes.sum_range(chunk.first..range.start);
        let mut durations = DurationCursor::new(&self.durations, range.start);
        let mut sync = SyncCursor::new(self.sync_samples.as_deref(), range.start);
        range.map(move |n| {
            if n >= chunk.end {
                chunk = self.chunks.next_chunk(&chunk);
                offset = self.chunks.chunk_offset(chunk.number);
            }
            let (duration, size) = (durations.get(n), self.size(n));
            let (composition_offset, sync) = (self.composition_offset(n), sync.get(n));
            let sample = Sample {
                dts,
                duration,
                composition_offset,
                size,
                is_sync: sync,
                offset,
            };
            dts += u64::from(duration);
            offset += u64::from(size);
            sample
        })
    }

    /// Sum of the sizes of the samples in `range`, in bytes.
    pub fn byte_count(&self, range: Range<u32>) -> u64 {
        self.sizes.sum_range(range)
    }

    /// Returns the duration that all samples in `range` share, if they share one. The lookup is
    /// fast if durations are stored as runs.
    pub fn shared_duration(&self, range: Range<u32>) -> Option<u32> {
        let range = range.start..range.end.min(self.len);
        if range.is_empty() {
            return None;
        }
        self.durations.shared_duration(range)
    }

    /// Returns the size that all samples in `range` share, if they share one.
    pub fn shared_size(&self, range: Range<u32>) -> Option<u32> {
        self.sizes.shared_size(range)
    }

    /// Returns the composition offset that all samples in `range` share, if they share one.
    pub fn shared_composition_offset(&self, range: Range<u32>) -> Option<i32> {
        let value = self.composition_offset_numbers.shared_value(range)?;
        self.composition_offset_values.get(value as usize).copied()
    }

    /// Returns the number of sync samples in `range`, and whether the first sample of `range` is a
    /// sync sample.
    pub fn count_sync_samples(&self, range: Range<u32>) -> (u32, bool) {
        let range = range.start.min(self.len)..range.end.min(self.len);
        let Some(sync) = &self.sync_samples else {
            return (range.len() as u32, !range.is_empty());
        };
        let from = &sync[sync.partition_point(|n| *n < range.start)..];
        let most = &from[..from.len().min(range.len())];
        let within = &most[..most.partition_point(|n| *n < range.end)];
        (within.len() as u32, within.first() == Some(&range.start))
    }

    /// Returns the smallest composition offset of the track; 0 if the track has no samples.
    pub fn composition_offset_min(&self) -> i32 {
        self.composition_offset_values
            .iter()
            .copied()
            .min()
            .unwrap_or(0)
    }

    /// Returns the largest composition offset of the track; 0 if the track has no samples.
    pub fn composition_offset_max(&self) -> i32 {
        let values = self.composition_offset_values.iter().copied();
        values.max().unwrap_or(0)
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        let sync = self
            .sync_samples
            .as_ref()
            .map_or(0, |sync| size_of_val(&**sync));
        let offsets = size_of_val(&*self.composition_offset_values)
            + self.composition_offset_numbers.heap_bytes();
        let chunks = self.chunks.heap_bytes();
        self.durations.heap_bytes() + self.sizes.heap_bytes() + offsets + sync + chunks
    }
}

/// A position in the list of sync samples. Checks consecutive samples without a new search for each
/// sample.
struct SyncCursor<'a> {
    /// Sync samples that the cursor has not reached yet.
    remaining: Option<&'a [u32]>,
}

impl<'a> SyncCursor<'a> {
    fn new(sync: Option<&'a [u32]>, from: u32) -> SyncCursor<'a> {
        let ahead = sync.map(|sync| {
            sync.get(sync.partition_point(|n| *n < from)..)
                .unwrap_or_default()
        });
        SyncCursor { remaining: ahead }
    }

    fn get(&mut self, n: u32) -> bool {
        let Some(ahead) = self.remaining else {
            return true;
        };
        match ahead.split_first() {
            Some((first, rest)) if *first == n => {
                self.remaining = Some(rest);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
