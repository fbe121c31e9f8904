//! Contiguous pieces of the file, and which samples lie in them.

use super::packed::Packed;
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

/// One chunk: its number, and the samples `first..end` in it.
pub(super) struct Chunk {
    pub number: u32,
    pub first: u32,
    pub end: u32,
    run: usize,
}

impl Chunks {
    pub fn new(firsts: &[u32], offsets: &[u64], samples: u32) -> Chunks {
        let ends = firsts.iter().skip(1).copied().chain([samples]);
        let mut runs: Vec<(u32, u32, u32)> = Vec::new();
        for (number, (first, end)) in firsts.iter().copied().zip(ends).enumerate() {
            if runs.last().is_none_or(|run| run.2 != end - first) {
                runs.push((number as u32, first, end - first));
            }
        }
        let blocks = offsets.chunks(BLOCK as usize);
        let lowest: Vec<u64> = blocks
            .clone()
            .map(|block| block.iter().copied().min().unwrap_or(0))
            .collect();
        let mut deltas = Vec::with_capacity(offsets.len());
        let mut is_wide = false;
        for (block, lowest) in blocks.zip(&lowest) {
            deltas.extend(block.iter().map(|at| {
                let delta = at - lowest;
                is_wide |= delta > u64::from(u32::MAX);
                delta as u32
            }));
        }
        match is_wide {
            false => Chunks {
                runs: runs.into(),
                deltas: Packed::new(&deltas),
                blocks: lowest.into(),
                wide: Box::default(),
            },
            true => Chunks {
                runs: runs.into(),
                deltas: Packed::new(&[]),
                blocks: Box::default(),
                wide: offsets.into(),
            },
        }
    }

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
