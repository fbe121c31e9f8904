//! A table of chunks, which are contiguous byte ranges of consecutive samples.

use super::packed_integers::{PackedIntegers, PackedIntegersBuilder, SAMPLES_PER_BLOCK};

/// The chunks of a track. Each chunk is a contiguous byte range of consecutive samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkTable {
    /// Runs of chunks with the same number of samples. Each run has the number of its first chunk,
    /// the number of that chunk's first sample, and the samples per chunk.
    runs: Box<[(u32, u32, u32)]>,
    /// Lowest offset in each block of [`SAMPLES_PER_BLOCK`] chunks.
    block_base_offsets: Box<[u64]>,
    /// Offset of each chunk, relative to the lowest offset in its block.
    offset_deltas: PackedIntegers,
    /// Absolute offsets of all chunks, used if any relative offset exceeds 32 bits.
    /// `block_base_offsets` and `offset_deltas` are then empty.
    absolute_offsets: Box<[u64]>,
}

/// Collects chunks and packs each block as soon as it is full.
#[derive(Debug, Default)]
pub(super) struct ChunkTableBuilder {
    runs: Vec<(u32, u32, u32)>,
    /// Number of chunks. The last chunk is still open.
    count: u32,
    /// First sample of the last chunk.
    first: u32,
    /// Offsets of the chunks in the last block, which is not packed yet.
    block: Vec<u64>,
    blocks: Vec<u64>,
    deltas: PackedIntegersBuilder,
    /// Absolute offsets of the chunks in all packed blocks. `None` until a relative offset exceeds
    /// 32 bits.
    wide: Option<Vec<u64>>,
}

impl ChunkTableBuilder {
    /// Reserves room for `more` chunks.
    pub fn reserve(&mut self, more: usize) {
        self.blocks.reserve(more / SAMPLES_PER_BLOCK as usize + 1);
        self.deltas.reserve(more);
    }

    /// Returns the first sample of the last chunk.
    pub fn last_chunk_first_sample(&self) -> Option<u32> {
        (self.count > 0).then_some(self.first)
    }

    /// Closes the previous chunk, and adds a chunk that starts with sample `first`.
    pub fn push(&mut self, first: u32, offset: u64) {
        self.close_last_chunk(first);
        self.first = first;
        self.count += 1;
        if self.block.len() == SAMPLES_PER_BLOCK as usize {
            self.pack_block();
        }
        self.block.push(offset);
    }

    /// Closes the last chunk. `end` is the first sample after the chunk.
    fn close_last_chunk(&mut self, end: u32) {
        let Some(number) = self.count.checked_sub(1) else {
            return;
        };
        let samples = end - self.first;
        if self.runs.last().is_none_or(|run| run.2 != samples) {
            self.runs.push((number, self.first, samples));
        }
    }

    fn pack_block(&mut self) {
        let lowest = self.block.iter().copied().min().unwrap_or(0);
        let mut deltas = [0; SAMPLES_PER_BLOCK as usize];
        let mut any = 0;
        for (delta, at) in deltas.iter_mut().zip(&self.block) {
            any |= at - lowest;
            *delta = (at - lowest) as u32;
        }
        if any > u64::from(u32::MAX) {
            self.store_absolute_offsets();
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

    /// Switches from relative to absolute offsets.
    fn store_absolute_offsets(&mut self) {
        if self.wide.is_none() {
            let deltas = std::mem::take(&mut self.deltas).finish();
            let block = |n: u32| {
                self.blocks
                    .get((n / SAMPLES_PER_BLOCK) as usize)
                    .copied()
                    .unwrap_or(0)
            };
            let wide = (0..deltas.len()).map(|n| block(n) + u64::from(deltas.get(n)));
            self.wide = Some(wide.collect());
            self.blocks = Vec::new();
        }
    }

    /// Packs all chunks. The track has `samples` samples, and the last chunk ends with the last
    /// sample.
    pub fn finish(mut self, samples: u32) -> ChunkTable {
        self.close_last_chunk(samples);
        self.pack_block();
        ChunkTable {
            runs: self.runs.into(),
            block_base_offsets: self.blocks.into(),
            offset_deltas: self.deltas.finish(),
            absolute_offsets: self.wide.unwrap_or_default().into(),
        }
    }
}

/// One chunk, which contains the samples `first..end`.
pub(super) struct ChunkSampleRange {
    pub number: u32,
    pub first: u32,
    pub end: u32,
    run: usize,
}

impl ChunkTable {
    pub fn chunk_offset(&self, number: u32) -> u64 {
        if let Some(offset) = self.absolute_offsets.get(number as usize) {
            return *offset;
        }
        let block = self
            .block_base_offsets
            .get((number / SAMPLES_PER_BLOCK) as usize)
            .copied()
            .unwrap_or(0);
        block + u64::from(self.offset_deltas.get(number))
    }

    pub fn find_chunk(&self, sample: u32) -> ChunkSampleRange {
        let Some(run) = self
            .runs
            .partition_point(|run| run.1 <= sample)
            .checked_sub(1)
        else {
            return ChunkSampleRange {
                number: 0,
                first: 0,
                end: 0,
                run: 0,
            };
        };
        let (number, first, each) = self.runs[run];
        let chunk = (sample - first) / each;
        let first = first + chunk * each;
        ChunkSampleRange {
            number: number + chunk,
            first,
            end: first + each,
            run,
        }
    }

    pub fn next_chunk(&self, chunk: &ChunkSampleRange) -> ChunkSampleRange {
        let number = chunk.number + 1;
        let next = self.runs.get(chunk.run + 1);
        let run = chunk.run + usize::from(next.is_some_and(|next| next.0 <= number));
        let each = self.runs[run].2;
        ChunkSampleRange {
            number,
            first: chunk.end,
            end: chunk.end + each,
            run,
        }
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.runs)
            + size_of_val(&*self.block_base_offsets)
            + size_of_val(&*self.absolute_offsets)
            + self.offset_deltas.heap_bytes()
    }
}
