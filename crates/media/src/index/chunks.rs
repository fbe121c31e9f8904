//! Contiguous pieces of the file, and which samples lie in them.

use super::packed::{Packed, PackedBuilder};
use super::samples::BLOCK;

/// Contiguous pieces of the file that hold consecutive samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunks {
    /// Runs of chunks with the same number of samples: first chunk, its first sample, samples each.
    runs: Box<[(u32, u32, u32)]>,
    /// Offset of the lowest chunk of each [`BLOCK`] of chunks.
    blocks: Box<[u64]>,
    /// Offset of each chunk, from its block's.
    deltas: Packed,
    /// Offsets as they are, where a delta would not fit in 32 bits; then the two above are empty.
    wide: Box<[u64]>,
}

/// Collects chunks, and packs them as they come.
#[derive(Debug, Default)]
pub(super) struct ChunksBuilder {
    runs: Vec<(u32, u32, u32)>,
    /// How many chunks, and the first sample of the last one, whose end is not known yet.
    count: u32,
    first: u32,
    /// Offsets of the block that is not full yet.
    block: Vec<u64>,
    blocks: Vec<u64>,
    deltas: PackedBuilder,
    /// All offsets of full blocks, once there is a delta that does not fit.
    wide: Option<Vec<u64>>,
}

impl ChunksBuilder {
    /// Says that some `more` are coming.
    pub fn reserve(&mut self, more: usize) {
        self.blocks.reserve(more / BLOCK as usize + 1);
        self.deltas.expect(more);
    }

    /// The first sample of the last chunk.
    pub fn last_first(&self) -> Option<u32> {
        (self.count > 0).then_some(self.first)
    }

    /// Adds a chunk that begins with sample `first`, which the last one does not hold.
    pub fn push(&mut self, first: u32, offset: u64) {
        self.end_last(first);
        self.first = first;
        self.count += 1;
        if self.block.len() == BLOCK as usize {
            self.pack();
        }
        self.block.push(offset);
    }

    /// The last chunk ends before sample `end`.
    fn end_last(&mut self, end: u32) {
        let Some(number) = self.count.checked_sub(1) else {
            return;
        };
        let samples = end - self.first;
        if self.runs.last().is_none_or(|run| run.2 != samples) {
            self.runs.push((number, self.first, samples));
        }
    }

    fn pack(&mut self) {
        let lowest = self.block.iter().copied().min().unwrap_or(0);
        let mut deltas = [0; BLOCK as usize];
        let mut any = 0;
        for (delta, at) in deltas.iter_mut().zip(&self.block) {
            any |= at - lowest;
            *delta = (at - lowest) as u32;
        }
        if any > u64::from(u32::MAX) {
            self.widen();
        }
        match &mut self.wide {
            Some(wide) => wide.extend_from_slice(&self.block),
            None => {
                self.blocks.push(lowest);
                self.deltas.extend(&deltas[..self.block.len()]);
            }
        }
        self.block.clear();
    }

    /// From now on offsets are kept as they are.
    fn widen(&mut self) {
        if self.wide.is_none() {
            let deltas = std::mem::take(&mut self.deltas).finish();
            let block = |n: u32| self.blocks.get((n / BLOCK) as usize).copied().unwrap_or(0);
            let wide = (0..deltas.len()).map(|n| block(n) + u64::from(deltas.get(n)));
            self.wide = Some(wide.collect());
            self.blocks = Vec::new();
        }
    }

    /// All chunks; the last one ends with sample `samples`.
    pub fn finish(mut self, samples: u32) -> Chunks {
        self.end_last(samples);
        self.pack();
        Chunks {
            runs: self.runs.into(),
            blocks: self.blocks.into(),
            deltas: self.deltas.finish(),
            wide: self.wide.unwrap_or_default().into(),
        }
    }
}

/// One chunk: its number, and the samples `first..end` in it.
pub(super) struct Chunk {
    pub number: u32,
    pub first: u32,
    pub end: u32,
    run: usize,
}

impl Chunks {
    pub fn offset(&self, number: u32) -> u64 {
        if let Some(offset) = self.wide.get(number as usize) {
            return *offset;
        }
        let block = self
            .blocks
            .get((number / BLOCK) as usize)
            .copied()
            .unwrap_or(0);
        block + u64::from(self.deltas.get(number))
    }

    pub fn locate(&self, sample: u32) -> Chunk {
        let Some(run) = self
            .runs
            .partition_point(|run| run.1 <= sample)
            .checked_sub(1)
        else {
            return Chunk {
                number: 0,
                first: 0,
                end: 0,
                run: 0,
            };
        };
        let (number, first, each) = self.runs[run];
        let chunk = (sample - first) / each;
        let first = first + chunk * each;
        Chunk {
            number: number + chunk,
            first,
            end: first + each,
            run,
        }
    }

    pub fn after(&self, chunk: &Chunk) -> Chunk {
        let number = chunk.number + 1;
        let next = self.runs.get(chunk.run + 1);
        let run = chunk.run + usize::from(next.is_some_and(|next| next.0 <= number));
        let each = self.runs[run].2;
        Chunk {
            number,
            first: chunk.end,
            end: chunk.end + each,
            run,
        }
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.runs)
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.wide)
            + self.deltas.heap_bytes()
    }
}
