//! Collects samples, one by one or column by column, and packs them into tables.

use super::chunks::ChunksBuilder;
use super::column::Column;
use super::{Sample, Samples};
use std::collections::HashMap;

/// Longer chunks are split: the place of a sample is found by adding up sizes from its chunk's
/// first, and a file of one track may be one chunk.
const CHUNK_SAMPLES_MAX: u32 = 128;

/// Collects samples in decode order and packs them.
#[derive(Debug, Default)]
pub struct SamplesBuilder {
    durations: Column,
    sizes: Column,
    cts: Column,
    cts_values: Vec<i32>,
    /// A map, not a search: a hostile file may give every sample an offset of its own.
    cts_known: HashMap<i32, u32>,
    /// Sync samples, once there is a sample that is none.
    sync: Option<Vec<u32>>,
    chunks: ChunksBuilder,
    end: u64,
    next_offset: u64,
    expected: usize,
}

impl SamplesBuilder {
    /// How many samples so far.
    pub fn len(&self) -> u32 {
        self.sizes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of durations so far, in ticks.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Says that `more` samples are coming, so that tables need not be moved as they grow.
    pub fn reserve(&mut self, more: usize) {
        self.expected = self.len() as usize + more;
    }

    /// Adds the next sample in decode order; its `dts` is not looked at: it is the sum of the
    /// durations before. A sample that starts where the last one ended shares its chunk.
    pub fn push(&mut self, sample: Sample) {
        let n = self.len();
        self.sizes.push(sample.size, self.expected);
        self.push_chunk(n, 1, sample.offset);
        self.push_cts(1, sample.cts);
        self.push_durations(1, sample.duration);
        match &mut self.sync {
            Some(sync) if sample.sync => sync.push(n),
            None if !sample.sync => self.sync = Some((0..n).collect()),
            _ => {}
        }
    }

    /// Adds `count` samples' durations. Columns may be added one after the other, as long as they
    /// are of one length in the end.
    pub(super) fn push_durations(&mut self, count: u32, ticks: u32) {
        self.durations.push_run(count, ticks, self.expected);
        self.end += u64::from(count) * u64::from(ticks);
    }

    /// Adds `count` samples' composition offsets.
    #[inline]
    pub(super) fn push_cts(&mut self, count: u32, cts: i32) {
        if count > 0 {
            let number = self.cts_number(cts);
            self.cts.push_run(count, number, self.expected);
        }
    }

    /// The sizes of all samples, to be added to.
    pub(super) fn sizes(&mut self) -> &mut Column {
        &mut self.sizes
    }

    /// Says which samples are sync samples, where not all are: their numbers, ascending.
    pub(super) fn set_sync(&mut self, numbers: Vec<u32>) {
        self.sync = Some(numbers);
    }

    /// Says that some `more` chunks are coming.
    pub(super) fn reserve_chunks(&mut self, more: usize) {
        self.chunks.reserve(more);
    }

    /// Says that the samples `first..first + count`, whose sizes are there already, lie one after
    /// the other from `offset` on, and tells where they end.
    #[inline]
    pub(super) fn push_chunk(&mut self, first: u32, count: u32, offset: u64) -> u64 {
        let (mut next, mut at) = (first, offset);
        let end = first + count;
        while next < end {
            let begun = self.chunks.last_first();
            let begun = begun.filter(|first| next - first < CHUNK_SAMPLES_MAX);
            let begun = begun.filter(|_| at == self.next_offset).unwrap_or_else(|| {
                self.chunks.push(next, at);
                next
            });
            let some = (begun + CHUNK_SAMPLES_MAX).min(end) - next;
            at = at.saturating_add(self.sizes.sum(next, some));
            next += some;
            self.next_offset = at;
        }
        at
    }

    /// The number of a composition offset among the distinct ones.
    fn cts_number(&mut self, cts: i32) -> u32 {
        // Most tracks have a handful, which a look finds faster than a hash.
        let few = self.cts_values.iter().take(8);
        if let Some(known) = few.enumerate().find(|(_, value)| **value == cts) {
            return known.0 as u32;
        }
        let fresh = self.cts_values.len() as u32;
        let number = *self.cts_known.entry(cts).or_insert(fresh);
        if number == fresh {
            self.cts_values.push(cts);
        }
        number
    }

    /// Duration of the last sample.
    pub fn last_duration(&self) -> Option<u32> {
        self.durations.last()
    }

    /// Changes the duration of the last sample, to close a gap or an overlap before the next.
    pub fn set_last_duration(&mut self, duration: u32) {
        if let Some(last) = self.durations.last() {
            self.end = self.end - u64::from(last) + u64::from(duration);
            self.durations.set_last(duration);
        }
    }

    /// Takes every sample as a sync sample, whatever was said.
    pub fn set_all_sync(&mut self) {
        self.sync = None;
    }

    /// Packs what was pushed.
    pub fn finish(self) -> Samples {
        Samples::new(
            (&self.durations, self.end),
            &self.sizes,
            (&self.cts, self.cts_values),
            self.sync,
            self.chunks,
        )
    }
}
