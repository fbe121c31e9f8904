//! Durations of samples: in runs where they repeat, else one by one.

use super::column::Column;
use super::packed::Packed;
use super::samples::BLOCK;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Durations {
    /// Runs of equal durations: first sample, its dts, the duration.
    Runs(Box<[(u32, u64, u32)]>),
    /// A duration a sample, and the dts of each [`BLOCK`]'s first sample.
    Each {
        blocks: Box<[u64]>,
        durations: Packed,
    },
}

impl Durations {
    pub fn new(column: &Column) -> Durations {
        let Some(runs) = column.runs() else {
            return Durations::each(column.pack());
        };
        // Some 20 bytes a run: more than a duration each.
        let bytes = runs.len() * size_of::<(u32, u64, u32)>();
        let largest = runs.iter().map(|run| run.1).max().unwrap_or(0);
        let each_bytes =
            Packed::bytes_of(largest, column.len()) + (column.len() / BLOCK) as usize * 8;
        if bytes > each_bytes && runs.len() >= 16 {
            return Durations::each(column.pack());
        }
        let (mut dts, mut last) = (0, (0, 0));
        let runs = runs.into_iter().map(|(first, duration)| {
            dts += u64::from(first - last.0) * u64::from(last.1);
            last = (first, duration);
            (first, dts, duration)
        });
        Durations::Runs(runs.collect())
    }

    /// Decode time of sample `n`, which must exist.
    pub fn before(&self, n: u32) -> u64 {
        match self {
            Durations::Runs(runs) => {
                let (first, dts, duration) = runs[Durations::run(runs, n)];
                dts + u64::from(n - first) * u64::from(duration)
            }
            Durations::Each { blocks, durations } => {
                let block = n / BLOCK;
                blocks[block as usize] + durations.sum(block * BLOCK..n)
            }
        }
    }

    /// Ticks of sample `n`, which must exist.
    pub fn get(&self, n: u32) -> u32 {
        match self {
            Durations::Runs(runs) => runs[Durations::run(runs, n)].2,
            Durations::Each { durations, .. } => durations.get(n),
        }
    }

    /// The duration that all of `range`, which is not empty, share, if they do.
    pub fn shared(&self, range: Range<u32>) -> Option<u32> {
        match self {
            Durations::Runs(runs) => {
                let run = Durations::run(runs, range.start);
                (run == Durations::run(runs, range.end - 1)).then(|| runs[run].2)
            }
            Durations::Each { durations, .. } => durations.shared(range),
        }
    }

    /// Which run sample `n` is in. The first begins at 0, so there is one.
    fn run(runs: &[(u32, u64, u32)], n: u32) -> usize {
        // Mostly there is but one, or they are of about the same length.
        let [_, .., last] = runs else {
            return 0;
        };
        let guess = u64::from(n) * runs.len() as u64 / (u64::from(last.0) + 1);
        near(runs, guess as usize, |run| run.0 <= n) - 1
    }

    /// Bytes of heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Durations::Runs(runs) => size_of_val(&**runs),
            Durations::Each { blocks, durations } => {
                size_of_val(&**blocks) + durations.heap_bytes()
            }
        }
    }

    fn each(durations: Packed) -> Durations {
        let mut blocks = Vec::with_capacity((durations.len() / BLOCK) as usize + 1);
        let mut dts = 0;
        for first in (0..durations.len()).step_by(BLOCK as usize) {
            blocks.push(dts);
            dts += durations.sum(first..first.saturating_add(BLOCK));
        }
        Durations::Each {
            blocks: blocks.into(),
            durations,
        }
    }

    /// The last of the first `len` samples that begins at or before `dts`; 0 before the first.
    pub fn at(&self, dts: u64, len: u32) -> u32 {
        let last = len.saturating_sub(1);
        match self {
            Durations::Runs(runs) => {
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
            Durations::Each { blocks, durations } => {
                let after = blocks.partition_point(|begin| *begin <= dts);
                let Some(block) = after.checked_sub(1) else {
                    return 0;
                };
                let (mut n, mut end) = (block as u32 * BLOCK, blocks[block]);
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

/// How many of `values` come first for which `before` holds, looking near `guess` first and at twice
/// the distance each time.
fn near<T>(values: &[T], guess: usize, before: impl Fn(&T) -> bool) -> usize {
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

/// Durations of samples in order, without a search for each.
pub(super) struct Cursor<'a> {
    durations: &'a Durations,
    run: usize,
    /// Duration of the run, and the first sample after it.
    current: (u32, u32),
}

impl<'a> Cursor<'a> {
    pub fn new(durations: &'a Durations, from: u32) -> Cursor<'a> {
        let run = match durations {
            Durations::Runs(runs) => runs.partition_point(|run| run.0 <= from),
            Durations::Each { .. } => 0,
        };
        Cursor {
            durations,
            run: run.saturating_sub(1),
            current: (0, 0),
        }
    }

    pub fn get(&mut self, n: u32) -> u32 {
        match self.durations {
            Durations::Each { durations, .. } => durations.get(n),
            Durations::Runs(runs) => {
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
        fn what_is_near_is_found(
            mut values in proptest::collection::vec(0u32..99, 0..40), guess in 0usize..50, at in 0u32..99
        ) {
            values.sort_unstable();
            let before = |value: &u32| *value < at;
            prop_assert_eq!(near(&values, guess, before), values.partition_point(before));
        }

        #[test]
        fn samples_are_found_by_their_times(
            durations in proptest::collection::vec((1u32..40, 0u32..4), 1..60), dts in 0u64..3000
        ) {
            let mut column = Column::default();
            durations.iter().for_each(|(count, ticks)| column.push_run(*count, *ticks, 0));
            let durations = Durations::new(&column);
            let is_after = |n: &u32| durations.before(*n) > dts;
            let after = (0..column.len()).find(is_after).unwrap_or(column.len());
            prop_assert_eq!(durations.at(dts, column.len()), after - 1);
        }
    }
}
