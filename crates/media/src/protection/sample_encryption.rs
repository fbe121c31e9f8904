//! Encryption of the samples of a fragment, in place (ISO/IEC 23001-7, 9.4 to 9.7 and 10).

use super::cbc_chains::encrypt_chains;
use super::subsample_map::BLOCK_BYTES;
use super::{ProtectionParameters, ProtectionScheme, Subsample, SubsampleMap};
use crate::codec::Codec;
use crate::error::{Error, Result};
use std::ops::Range;

/// AES-128 with a content key, implemented by the caller.
pub trait Aes128Cipher {
    /// Encrypts `bytes` in counter mode.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn encrypt_ctr(&self, counter: [u8; BLOCK_BYTES], bytes: &mut [u8]) -> Result<()>;

    /// Returns the cipher for single blocks. This crate implements the CBC chaining of the blocks.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn block_cipher(&self) -> Result<impl BlockCipher>;
}

/// Encrypts blocks of 16 bytes independently of each other.
pub trait BlockCipher {
    /// Encrypts whole blocks. `out` has the same length as `blocks`.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn encrypt_blocks(&mut self, blocks: &[u8], out: &mut [u8]) -> Result<()>;
}

/// Distance between the starts of encrypted blocks in the pattern 1:9, in bytes.
const PATTERN_BYTES: usize = 10 * BLOCK_BYTES;

/// Encrypts the samples in `payload`. `sizes` are the sizes of the samples in bytes. `first` is the
/// number of the payload's first sample, counted from the start of the track. Without `map`,
/// samples are encrypted as a whole.
///
/// # Errors
/// `Malformed` if sizes, map and payload do not match, and the cipher's error if the cipher fails.
pub fn encrypt_samples(
    payload: &mut [u8],
    (first, sizes): (u32, impl Iterator<Item = u32>),
    map: Option<&SubsampleMap>,
    (codec, protection): (&Codec, &ProtectionParameters),
    cipher: &impl Aes128Cipher,
) -> Result<()> {
    let runs = locate_protected_runs(payload.len(), sizes, map)?;
    match protection.scheme {
        ProtectionScheme::Cenc => encrypt_samples_ctr(payload, &runs, (first, protection), cipher),
        ProtectionScheme::Cbcs => {
            let stride = match codec.video() {
                Some(_) => PATTERN_BYTES,
                None => BLOCK_BYTES,
            };
            let runs = runs.into_iter().map(|run| run.bytes);
            let chains = (stride, protection.iv);
            encrypt_chains(payload, runs, chains, &mut cipher.block_cipher()?)
        }
    }
}

/// A run of protected bytes.
struct ProtectedRun {
    /// Index of the sample in the payload.
    sample: u32,
    /// Position in the payload.
    bytes: Range<usize>,
}

/// Returns the protected runs of the samples in a payload of `payload_len` bytes, which contains
/// the samples one after the other.
fn locate_protected_runs(
    payload_len: usize,
    sizes: impl Iterator<Item = u32>,
    map: Option<&SubsampleMap>,
) -> Result<Vec<ProtectedRun>> {
    let mut maps = map.map(SubsampleMap::samples);
    let (mut runs, mut position) = (Vec::new(), 0usize);
    for (sample, size) in (0..).zip(sizes) {
        let end = position.saturating_add(size as usize);
        let whole = [Subsample {
            clear: 0,
            protected: size,
        }];
        let subsamples = match &mut maps {
            None => &whole[..],
            Some(maps) => maps.next().ok_or_else(subsamples_mismatch_error)?,
        };
        for subsample in subsamples {
            let start = position.saturating_add(subsample.clear.into());
            position = start.saturating_add(subsample.protected as usize);
            let bytes = start..position;
            runs.push(ProtectedRun { sample, bytes });
        }
        if position > end || end > payload_len {
            return Err(subsamples_mismatch_error());
        }
        position = end;
    }
    Ok(runs)
}

/// Encrypts each sample's runs as one stream, in counter mode.
fn encrypt_samples_ctr(
    payload: &mut [u8],
    runs: &[ProtectedRun],
    (first, protection): (u32, &ProtectionParameters),
    cipher: &impl Aes128Cipher,
) -> Result<()> {
    for runs in runs.chunk_by(|one, next| one.sample == next.sample) {
        let number = runs.first().map_or(0, |run| run.sample);
        let iv = protection.sample_iv(first.wrapping_add(number));
        let mut stream = CencCounter::new(iv);
        for run in runs {
            let bytes = payload
                .get_mut(run.bytes.clone())
                .ok_or_else(subsamples_mismatch_error)?;
            cipher.encrypt_ctr(stream.take_counter_block(bytes.len()), bytes)?;
        }
    }
    Ok(())
}

fn subsamples_mismatch_error() -> Error {
    Error::malformed("the samples do not match their subsamples")
}

/// The counter of one sample in `cenc`. All protected bytes of a sample form one stream.
struct CencCounter {
    counter: u128,
}

impl CencCounter {
    fn new(iv: [u8; 8]) -> CencCounter {
        CencCounter {
            counter: u128::from(u64::from_be_bytes(iv)) << 64,
        }
    }

    /// Returns the counter block, and advances the counter by `len` bytes, rounded up to whole
    /// blocks. Only the length of a sample's last run may need rounding, because all other runs
    /// consist of whole blocks.
    fn take_counter_block(&mut self, len: usize) -> [u8; BLOCK_BYTES] {
        let block = self.counter.to_be_bytes();
        self.counter += len.div_ceil(BLOCK_BYTES) as u128;
        block
    }
}
