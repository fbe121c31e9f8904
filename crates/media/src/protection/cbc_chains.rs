//! Encryption of many short CBC chains side by side.
//!
//! In one chain, each block needs the ciphertext of the previous block, so the processor's AES unit
//! is mostly idle. `cbcs` starts a chain in every subsample, and a segment has dozens of
//! subsamples. The next blocks of several chains are therefore encrypted in one call. This takes a
//! third of the time of encrypting one chain after the other.

use super::sample_encryption::BlockCipher;
use super::subsample_map::BLOCK_BYTES;
use crate::error::{Error, Result};
use std::ops::Range;

/// Number of chains that are encrypted side by side. A larger number was not faster.
const LANES: usize = 16;

type Block = [u8; BLOCK_BYTES];

/// Encrypts each run as one chain. The chain consists of the first block of each `stride` bytes of
/// the run. Remaining bytes of less than a block stay unencrypted.
///
/// # Errors
/// `Malformed` if a run is not within the payload, or an error of the cipher.
pub(super) fn encrypt_chains(
    payload: &mut [u8],
    runs: impl IntoIterator<Item = Range<usize>>,
    (stride, iv): (usize, Block),
    cipher: &mut impl BlockCipher,
) -> Result<()> {
    let mut chains = runs
        .into_iter()
        .map(|run| CbcLane::new(run, stride, iv))
        .filter(|lane| lane.blocks_left > 0);
    let mut lanes = Vec::with_capacity(LANES);
    loop {
        lanes.extend(chains.by_ref().take(LANES - lanes.len()));
        let Some(steps) = lanes.iter().map(|lane| lane.blocks_left).min() else {
            return Ok(());
        };
        for _ in 0..steps {
            encrypt_next_blocks(payload, &mut lanes, stride, cipher)?;
        }
        lanes.iter_mut().for_each(|lane| lane.blocks_left -= steps);
        lanes.retain(|lane| lane.blocks_left > 0);
    }
}

/// The blocks of a chain that are not encrypted yet.
struct CbcLane {
    /// Position of the next block in the payload.
    position: usize,
    blocks_left: usize,
    /// The previous block's ciphertext, or the IV.
    previous: Block,
}

impl CbcLane {
    fn new(run: Range<usize>, stride: usize, iv: Block) -> CbcLane {
        let whole = run.len() / stride;
        let last = usize::from(run.len() % stride >= BLOCK_BYTES);
        CbcLane {
            position: run.start,
            blocks_left: whole + last,
            previous: iv,
        }
    }

    /// Returns the next block, XORed with the previous ciphertext or the IV.
    fn xor_next_block(&self, payload: &[u8]) -> Option<Block> {
        let block = payload.get(self.position..)?.first_chunk()?;
        let combined = u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(self.previous);
        Some(combined.to_ne_bytes())
    }

    fn store_ciphertext(&mut self, payload: &mut [u8], encrypted: Block, stride: usize) {
        let room = payload.get_mut(self.position..);
        if let Some(block) = room.and_then(<[u8]>::first_chunk_mut) {
            *block = encrypted;
        }
        self.previous = encrypted;
        self.position += stride;
    }
}

/// Encrypts the next block of each lane.
fn encrypt_next_blocks(
    payload: &mut [u8],
    lanes: &mut [CbcLane],
    stride: usize,
    cipher: &mut impl BlockCipher,
) -> Result<()> {
    let (mut combined, mut encrypted) = ([[0; BLOCK_BYTES]; LANES], [[0; BLOCK_BYTES]; LANES]);
    for (lane, combined) in lanes.iter().zip(&mut combined) {
        let outside = || Error::malformed("a subsample lies outside its segment");
        *combined = lane.xor_next_block(payload).ok_or_else(outside)?;
    }
    let count = lanes.len().min(LANES);
    let (from, to) = (&combined[..count], &mut encrypted[..count]);
    cipher.encrypt_blocks(from.as_flattened(), to.as_flattened_mut())?;
    for (lane, encrypted) in lanes.iter_mut().zip(encrypted) {
        lane.store_ciphertext(payload, encrypted, stride);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A test cipher. Each output byte is a weighted sum of the block's input bytes up to the same
    /// position.
    struct SumCipher;

    impl BlockCipher for SumCipher {
        fn encrypt_blocks(&mut self, blocks: &[u8], out: &mut [u8]) -> Result<()> {
            assert_eq!((blocks.len() % BLOCK_BYTES, out.len()), (0, blocks.len()));
            for (block, out) in blocks.chunks(BLOCK_BYTES).zip(out.chunks_mut(BLOCK_BYTES)) {
                let mut sum = 1u8;
                for (byte, out) in block.iter().zip(out) {
                    sum = sum.wrapping_mul(5).wrapping_add(*byte);
                    *out = sum;
                }
            }
            Ok(())
        }
    }

    /// Encrypts one chain after the other, as the standard describes it.
    fn encrypt_one_by_one(payload: &mut [u8], runs: &[Range<usize>], stride: usize, iv: Block) {
        for run in runs {
            let mut previous = iv;
            for stripe in payload[run.clone()].chunks_mut(stride) {
                if let Some(block) = stripe.first_chunk_mut::<BLOCK_BYTES>() {
                    let combined: Vec<u8> =
                        block.iter().zip(previous).map(|(a, b)| a ^ b).collect();
                    SumCipher.encrypt_blocks(&combined, block).unwrap();
                    previous = *block;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn chains_side_by_side_equal_one_after_the_other(
            runs in prop::collection::vec((0usize..20, 0usize..1200), 0..60),
            seed: u8, has_pattern: bool, iv: Block,
        ) {
            let stride = if has_pattern { 10 * BLOCK_BYTES } else { BLOCK_BYTES };
            let mut at = 0;
            let runs: Vec<_> = runs
                .into_iter()
                .map(|(clear, protected)| {
                    let start = at + clear;
                    at = start + protected;
                    start..at
                })
                .collect();
            let payload: Vec<u8> = (0..at).map(|n| (n * 31 % 251) as u8 ^ seed).collect();
            let (mut side_by_side, mut expected) = (payload.clone(), payload);
            encrypt_chains(&mut side_by_side, runs.clone(), (stride, iv), &mut SumCipher).unwrap();
            encrypt_one_by_one(&mut expected, &runs, stride, iv);
            prop_assert_eq!(side_by_side, expected);
        }
    }

    #[test]
    fn a_run_beyond_the_payload_is_an_error() {
        let mut payload = [0; 40];
        let done = encrypt_chains(
            &mut payload,
            std::iter::once(30..50),
            (16, [0; 16]),
            &mut SumCipher,
        );
        assert!(done.is_err());
    }
}
