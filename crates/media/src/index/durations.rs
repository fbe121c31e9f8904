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
        let durations = match column.values() {
            Ok(durations) => durations,
            Err((_, 0)) => return Durations::Runs(Box::default()),
            Err((duration, _)) => return Durations::Runs(Box::new([(0, 0, duration)])),
        };
        let mut runs: Vec<(u32, u64, u32)> = Vec::new();
        let mut dts = 0;
        for (n, duration) in durations.iter().enumerate() {
            if runs.last().is_none_or(|run| run.2 != *duration) {
                runs.push((n as u32, dts, *duration));
            }
            dts += u64::from(*duration);
            // Some 20 bytes a run: more than a duration each.
            if runs.len() > 16 + durations.len() / 8 {
                return Durations::each(durations);
            }
        }
        let packed = Packed::new(durations);
        let each_bytes = packed.heap_bytes() + durations.len() / BLOCK as usize * 8;
        if size_of_val(&*runs) <= each_bytes || runs.len() < 16 {
            return Durations::Runs(runs.into());
        }
        Durations::each(durations)
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
        // Mostly there is but one.
        match runs.len() {
            1 => 0,
            _ => runs.partition_point(|run| run.0 <= n) - 1,
        }
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

    fn each(durations: &[u32]) -> Durations {
        let mut blocks = Vec::with_capacity(durations.len() / BLOCK as usize + 1);
        let mut dts = 0;
        for block in durations.chunks(BLOCK as usize) {
            blocks.push(dts);
            dts += block
                .iter()
                .map(|duration| u64::from(*duration))
                .sum::<u64>();
        }
        Durations::Each {
            blocks: blocks.into(),
            durations: Packed::new(durations),
        }
    }
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
