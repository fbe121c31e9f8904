//! A builder that collects samples, one by one or column by column, and packs them into a table.

use super::chunk_table::ChunkTableBuilder;
use super::column_builder::ColumnBuilder;
use super::{Sample, SampleTable};
use std::collections::HashMap;

/// Maximum number of samples in a chunk; longer chunks are split. A lookup adds sample sizes from
/// the start of the chunk, so long chunks are slow. Without the limit, a file with one track may
/// have a single chunk.
const CHUNK_SAMPLES_MAX: u32 = 128;

/// Collects samples in decode order and packs them into a [`SampleTable`].
#[derive(Debug, Default)]
pub struct SampleTableBuilder {
    durations: ColumnBuilder,
    sizes: ColumnBuilder,
    composition_offset_numbers: ColumnBuilder,
    composition_offset_values: Vec<i32>,
    /// Index of each distinct composition offset. A linear search would be slow, because each
    /// sample of a hostile file may have a different offset.
    number_by_composition_offset: HashMap<i32, u32>,
    /// Numbers of the sync samples; `None` as long as all samples are sync samples.
    sync_samples: Option<Vec<u32>>,
    chunks: ChunkTableBuilder,
    total_duration: u64,
    next_offset: u64,
    expected_samples: usize,
}

impl SampleTableBuilder {
    /// Number of samples so far.
    pub fn len(&self) -> u32 {
        self.sizes.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of all durations so far, in ticks.
    pub fn total_duration(&self) -> u64 {
        self.total_duration
    }

    /// Reserves memory for `more` samples, so that adding samples does not reallocate the columns.
    pub fn reserve(&mut self, more: usize) {
        self.expected_samples = self.len() as usize + more;
    }

    /// Adds the next sample in decode order.
    ///
    /// `sample.dts` is ignored, because the decode time is the sum of the previous durations. A
    /// sample whose bytes directly follow those of the previous sample is added to the same chunk.
    pub fn push(&mut self, sample: Sample) {
        let n = self.len();
        self.sizes.push(sample.size, self.expected_samples);
        self.push_chunk(n, 1, sample.offset);
        self.push_composition_offsets(1, sample.composition_offset);
        self.push_durations(1, sample.duration);
        match &mut self.sync_samples {
            Some(sync) if sample.is_sync => sync.push(n),
            None if !sample.is_sync => self.sync_samples = Some((0..n).collect()),
            _ => {}
        }
    }

    /// Adds the same duration, in ticks, for `count` samples. Columns may be filled one after the
    /// other, but must have the same length at the end.
    pub(super) fn push_durations(&mut self, count: u32, ticks: u32) {
        self.durations.push_run(count, ticks, self.expected_samples);
        self.total_duration += u64::from(count) * u64::from(ticks);
    }

    /// Adds the same composition offset, in ticks, for `count` samples.
    #[inline]
    pub(super) fn push_composition_offsets(&mut self, count: u32, composition_offset: i32) {
        if count > 0 {
            let number = self.intern_composition_offset(composition_offset);
            self.composition_offset_numbers
                .push_run(count, number, self.expected_samples);
        }
    }

    /// The column of sample sizes.
    pub(super) fn sizes_mut(&mut self) -> &mut ColumnBuilder {
        &mut self.sizes
    }

    /// Sets the numbers of the sync samples, in ascending order. Without this call, all samples are
    /// sync samples.
    pub(super) fn set_sync_samples(&mut self, numbers: Vec<u32>) {
        self.sync_samples = Some(numbers);
    }

    /// Reserves memory for `more` chunks.
    pub(super) fn reserve_chunks(&mut self, more: usize) {
        self.chunks.reserve(more);
    }

    /// Places the samples `first..first + count` contiguously in the file, from `offset` on.
    /// Returns the offset at which the last sample ends. The sizes of the samples must have been
    /// added before.
    #[inline]
    pub(super) fn push_chunk(&mut self, first: u32, count: u32, offset: u64) -> u64 {
        let (mut next, mut at) = (first, offset);
        let end = first + count;
        while next < end {
            let chunk_first = self.chunks.last_chunk_first_sample();
            let chunk_first = chunk_first.filter(|first| next - first < CHUNK_SAMPLES_MAX);
            let chunk_first = chunk_first
                .filter(|_| at == self.next_offset)
                .unwrap_or_else(|| {
                    self.chunks.push(next, at);
                    next
                });
            let count_in_chunk = (chunk_first + CHUNK_SAMPLES_MAX).min(end) - next;
            at = at.saturating_add(self.sizes.sum_range(next, count_in_chunk));
            next += count_in_chunk;
            self.next_offset = at;
        }
        at
    }

    /// Returns the index of a composition offset in the list of distinct offsets.
    fn intern_composition_offset(&mut self, composition_offset: i32) -> u32 {
        // Most tracks have only a few different offsets. A linear search finds them faster than a
        // hash map.
        let first_values = self.composition_offset_values.iter().take(8);
        if let Some(known) = first_values
            .enumerate()
            .find(|(_, value)| **value == composition_offset)
        {
            return known.0 as u32;
        }
        let new_number = self.composition_offset_values.len() as u32;
        let number = *self
            .number_by_composition_offset
            .entry(composition_offset)
            .or_insert(new_number);
        if number == new_number {
            self.composition_offset_values.push(composition_offset);
        }
        number
    }

    /// Returns the duration of the last sample, in ticks.
    pub fn last_duration(&self) -> Option<u32> {
        self.durations.last()
    }

    /// Changes the duration of the last sample, to remove a gap or an overlap before the next
    /// sample.
    pub fn set_last_duration(&mut self, duration: u32) {
        if let Some(last) = self.durations.last() {
            self.total_duration = self.total_duration - u64::from(last) + u64::from(duration);
            self.durations.set_last(duration);
        }
    }

    /// Marks every sample as a sync sample.
    pub fn set_all_sync(&mut self) {
        self.sync_samples = None;
    }

    /// Packs the samples into a table.
    pub fn finish(self) -> SampleTable {
        SampleTable::new(
            (&self.durations, self.total_duration),
            &self.sizes,
            (
                &self.composition_offset_numbers,
                self.composition_offset_values,
            ),
            self.sync_samples,
            self.chunks,
        )
    }
}
