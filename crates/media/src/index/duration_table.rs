//! A table of sample durations. The table stores runs if many durations repeat, and single
//! durations otherwise.

use super::column_builder::ColumnBuilder;
use super::packed_integers::{PackedIntegers, SAMPLES_PER_BLOCK};
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DurationTable {
    /// Runs of equal durations, as (first sample, decode time of the first sample, duration).
    Runs(Box<[(u32, u64, u32)]>),
    /// One duration per sample, and the decode time of the first sample in each block.
    Single {
        blocks: Box<[u64]>,
        durations: PackedIntegers,
    },
}

impl DurationTable {
    pub fn new(column: &ColumnBuilder) -> DurationTable {
        let Some(runs) = column.equal_runs() else {
            return DurationTable::from_packed(column.to_packed());
        };
        // A run takes 16 bytes, so many short runs can take more memory than packed durations.
        let bytes = runs.len() * size_of::<(u32, u64, u32)>();
        let largest = runs.iter().map(|run| run.1).max().unwrap_or(0);
        let each_bytes = PackedIntegers::compute_packed_size(largest, column.len())
            + (column.len() / SAMPLES_PER_BLOCK) as usize * 8;
        if bytes > each_bytes && runs.len() >= 16 {
            return DurationTable::from_packed(column.to_packed());
        }
        let (mut dts, mut last) = (0, (0, 0));
        let runs = runs.into_iter().map(|(first, duration)| {
            dts += u64::from(first - last.0) * u64::from(last.1);
            last = (first, duration);
            (first, dts, duration)
        });
        DurationTable::Runs(runs.collect())
    }

    /// Returns the decode time of sample `n` in ticks. The sample must exist.
    pub fn dts(&self, n: u32) -> u64 {
        match self {
            DurationTable::Runs(runs) => {
                let (first, dts, duration) = runs[DurationTable::run_index(runs, n)];
                dts + u64::from(n - first) * u64::from(duration)
            }
            DurationTable::Single { blocks, durations } => {
                let block = n / SAMPLES_PER_BLOCK;
                blocks[block as usize] + durations.sum_range(block * SAMPLES_PER_BLOCK..n)
            }
        }
    }

    /// Returns the duration of sample `n` in ticks. The sample must exist.
    pub fn get(&self, n: u32) -> u32 {
        match self {
            DurationTable::Runs(runs) => runs[DurationTable::run_index(runs, n)].2,
            DurationTable::Single { durations, .. } => durations.get(n),
        }
    }

    /// Returns the duration that all samples of a non-empty `range` share, if their durations are
    /// equal.
    pub fn shared_duration(&self, range: Range<u32>) -> Option<u32> {
        match self {
            DurationTable::Runs(runs) => {
                let run = DurationTable::run_index(runs, range.start);
                (run == DurationTable::run_index(runs, range.end - 1)).then(|| runs[run].2)
            }
            DurationTable::Single { durations, .. } => durations.shared_value(range),
        }
    }

    /// Returns the index of the run that contains sample `n`. The first run must start at sample 0.
    fn run_index(runs: &[(u32, u64, u32)], n: u32) -> usize {
        // Usually, there is one run, or the runs have similar lengths. The search therefore starts
        // at an estimated run.
        let [_, .., last] = runs else {
            return 0;
        };
        let guess = u64::from(n) * runs.len() as u64 / (u64::from(last.0) + 1);
        partition_point_near(runs, guess as usize, |run| run.0 <= n) - 1
    }

    /// Returns the heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        match self {
            DurationTable::Runs(runs) => size_of_val(&**runs),
            DurationTable::Single { blocks, durations } => {
                size_of_val(&**blocks) + durations.heap_bytes()
            }
        }
    }

    fn from_packed(durations: PackedIntegers) -> DurationTable {
        let mut blocks = Vec::with_capacity((durations.len() / SAMPLES_PER_BLOCK) as usize + 1);
        let mut dts = 0;
        for first in (0..durations.len()).step_by(SAMPLES_PER_BLOCK as usize) {
            blocks.push(dts);
            dts += durations.sum_range(first..first.saturating_add(SAMPLES_PER_BLOCK));
        }
        DurationTable::Single {
            blocks: blocks.into(),
            durations,
        }
    }

    /// Among the first `len` samples, returns the last sample that starts at or before `dts`.
    /// Returns 0 if all samples start after `dts`.
    pub fn sample_at(&self, dts: u64, len: u32) -> u32 {
        let last = len.saturating_sub(1);
        match self {
            DurationTable::Runs(runs) => {
                let after = runs.partition_point(|run| run.1 <= dts);
                let Some((first, begin, duration)) = after.checked_sub(1).map(|run| runs[run])
                else {
                    return 0;
                };
                let end = runs.get(after).map_or(len, |next| next.0);
                let steps = (dts - begin).checked_div(duration.into());
                let steps = u32::try_from(steps.unwrap_or(u64::MAX)).unwrap_or(u32::MAX);
                first.saturating_add(steps).min(end.saturating_sub(1))
            }
            DurationTable::Single { blocks, durations } => {
                let after = blocks.partition_point(|begin| *begin <= dts);
                let Some(block) = after.checked_sub(1) else {
                    return 0;
                };
                let (mut n, mut end) = (block as u32 * SAMPLES_PER_BLOCK, blocks[block]);
                while n < last {
                    end += u64::from(durations.get(n));
                    if end > dts {
                        break;
                    }
                    n += 1;
                }
                n
            }
        }
    }
}

/// Returns the partition point of `before`. The search starts at `guess`, and the step size doubles
/// with each step.
fn partition_point_near<T>(values: &[T], guess: usize, before: impl Fn(&T) -> bool) -> usize {
    let guess = guess.min(values.len());
    let (mut low, mut high, mut step) = (guess, guess, 1);
    while low > 0 && !before(&values[low - 1]) {
        (high, low) = (low - 1, low.saturating_sub(step));
        step *= 2;
    }
    while high < values.len() && before(&values[high]) {
        (low, high) = (high + 1, values.len().min(high + step));
        step *= 2;
    }
    low + values[low..high].partition_point(before)
}

/// Returns the durations of consecutive samples, without a search for each sample.
pub(super) struct DurationCursor<'a> {
    durations: &'a DurationTable,
    run: usize,
    /// Duration of the current run, and the first sample after the run.
    current: (u32, u32),
}

impl<'a> DurationCursor<'a> {
    pub fn new(durations: &'a DurationTable, from: u32) -> DurationCursor<'a> {
        let run = match durations {
            DurationTable::Runs(runs) => runs.partition_point(|run| run.0 <= from),
            DurationTable::Single { .. } => 0,
        };
        DurationCursor {
            durations,
            run: run.saturating_sub(1),
            current: (0, 0),
        }
    }

    pub fn get(&mut self, n: u32) -> u32 {
        match self.durations {
            DurationTable::Single { durations, .. } => durations.get(n),
            DurationTable::Runs(runs) => {
                if n >= self.current.1 {
                    let duration = runs.get(self.run).map_or(0, |run| run.2);
                    self.run += 1;
                    self.current = (duration, runs.get(self.run).map_or(u32::MAX, |run| run.0));
                }
                self.current.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_search_near_a_guess_finds_the_partition_point(
            mut values in proptest::collection::vec(0u32..99, 0..40), guess in 0usize..50, at in 0u32..99
        ) {
            values.sort_unstable();
            let before = |value: &u32| *value < at;
            prop_assert_eq!(partition_point_near(&values, guess, before), values.partition_point(before));
        }

        #[test]
        fn samples_are_found_by_their_times(
            durations in proptest::collection::vec((1u32..40, 0u32..4), 1..60), dts in 0u64..3000
        ) {
            let mut column = ColumnBuilder::default();
            durations.iter().for_each(|(count, ticks)| column.push_run(*count, *ticks, 0));
            let durations = DurationTable::new(&column);
            let is_after = |n: &u32| durations.dts(*n) > dts;
            let after = (0..column.len()).find(is_after).unwrap_or(column.len());
            prop_assert_eq!(durations.sample_at(dts, column.len()), after - 1);
        }
    }
}
