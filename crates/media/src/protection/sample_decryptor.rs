//! Decryption of the samples of an encrypted source, in place (ISO/IEC 23001-7, 9.2 to 9.7 and 10).

use super::stored_subsamples::list_runs;
use super::subsample_map::BLOCK_BYTES;
use super::{ProtectedEntry, ProtectionScheme, SourceProtection};
use crate::error::{Error, Result};
use std::ops::Range;

/// A keyed AES-128 of the caller, in the mode of the source's scheme.
pub trait SampleDecipher {
    /// Decrypts `blocks`, which are whole blocks of 16 bytes, in cipher block chaining mode.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn decrypt_cbc(&self, iv: [u8; BLOCK_BYTES], blocks: &mut [u8]) -> Result<()>;

    /// Decrypts `bytes` in counter mode.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn decrypt_ctr(&self, counter: [u8; BLOCK_BYTES], bytes: &mut [u8]) -> Result<()>;
}

impl SourceProtection {
    /// Decrypts consecutive samples in place. `payload` starts at the first of them, and `sizes` are
    /// their sizes.
    ///
    /// # Errors
    /// `Malformed` if sizes, subsamples and payload do not match, or an error of the cipher.
    pub(crate) fn decrypt_samples(
        &self,
        payload: &mut [u8],
        (samples, sizes): (Range<u32>, impl Iterator<Item = u32>),
        cipher: &impl SampleDecipher,
    ) -> Result<()> {
        let mut decryptor = SampleDecryptor {
            entry: &self.entry,
            has_subsamples: self.auxiliary.has_subsamples(),
            cipher,
            runs: Vec::new(),
            gathered: Vec::new(),
        };
        let mut rest = payload;
        for (information, size) in self.auxiliary.list_entries(samples).zip(sizes) {
            let split = rest.split_at_mut_checked(size as usize);
            let (sample, after) = split.ok_or_else(mismatch)?;
            decryptor.decrypt_sample(sample, information)?;
            rest = after;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(mismatch()),
        }
    }
}

fn mismatch() -> Error {
    Error::malformed("the encrypted samples do not match their subsamples")
}

struct SampleDecryptor<'a, C> {
    entry: &'a ProtectedEntry,
    has_subsamples: bool,
    cipher: &'a C,
    /// Encrypted byte ranges of the sample, reused between samples.
    runs: Vec<Range<usize>>,
    /// Encrypted bytes of the sample or subsample, reused.
    gathered: Vec<u8>,
}

impl<C: SampleDecipher> SampleDecryptor<'_, C> {
    /// Decrypts a sample with its entry of `senc`.
    fn decrypt_sample(&mut self, sample: &mut [u8], information: &[u8]) -> Result<()> {
        let split = information.split_at_checked(self.entry.iv_bytes);
        let (iv, subsamples) = split.ok_or_else(mismatch)?;
        self.find_runs(sample.len(), subsamples)?;
        let iv = match iv {
            [] => self.entry.protection.iv,
            own => complete_iv(own),
        };
        match self.entry.protection.scheme {
            ProtectionScheme::Cenc => self.decrypt_stream(sample, iv),
            ProtectionScheme::Cbcs => self.decrypt_patterns(sample, iv),
        }
    }

    /// Lists the encrypted runs of a sample. Without subsamples, it is encrypted as a whole.
    fn find_runs(&mut self, len: usize, subsamples: &[u8]) -> Result<()> {
        self.runs.clear();
        let mut at = 0;
        for run in list_runs(subsamples).take_while(|_| self.has_subsamples) {
            let start = at + usize::from(run.clear);
            at = start + run.protected as usize;
            self.runs.push(start..at);
        }
        if self.runs.is_empty() {
            self.runs.push(0..len);
            return Ok(());
        }
        match at == len {
            true => Ok(()),
            false => Err(mismatch()),
        }
    }

    /// Decrypts `cenc`: all encrypted bytes of the sample form one stream, whose runs may share a
    /// cipher block (9.5).
    fn decrypt_stream(&mut self, sample: &mut [u8], iv: [u8; BLOCK_BYTES]) -> Result<()> {
        self.gathered.clear();
        for run in &self.runs {
            let bytes = sample.get(run.clone()).ok_or_else(mismatch)?;
            self.gathered.extend_from_slice(bytes);
        }
        apply_counter_mode(self.cipher, iv, &mut self.gathered)?;
        let mut clear = &self.gathered[..];
        for run in &self.runs {
            let place = sample.get_mut(run.clone()).ok_or_else(mismatch)?;
            let (bytes, rest) = clear.split_at(place.len());
            place.copy_from_slice(bytes);
            clear = rest;
        }
        Ok(())
    }

    /// Decrypts `cbcs`: each run starts with the IV (9.6, 10.4).
    fn decrypt_patterns(&mut self, sample: &mut [u8], iv: [u8; BLOCK_BYTES]) -> Result<()> {
        let (crypt, stripe) = self.entry.pattern_bytes();
        for run in &self.runs {
            let bytes = sample.get_mut(run.clone()).ok_or_else(mismatch)?;
            // Runs without a pattern are one stripe.
            let stripe = stripe.unwrap_or(bytes.len().max(1));
            let crypt = crypt.unwrap_or(bytes.len());
            self.gathered.clear();
            for stripe in bytes.chunks(stripe) {
                self.gathered.extend_from_slice(whole_blocks(stripe, crypt));
            }
            self.cipher.decrypt_cbc(iv, &mut self.gathered)?;
            let mut clear = &self.gathered[..];
            for stripe in bytes.chunks_mut(stripe) {
                let len = whole_blocks(stripe, crypt).len();
                let (blocks, rest) = clear.split_at(len);
                stripe
                    .get_mut(..len)
                    .unwrap_or_default()
                    .copy_from_slice(blocks);
                clear = rest;
            }
        }
        Ok(())
    }
}

/// Returns the whole cipher blocks at the start of a stripe, at most `crypt` bytes.
fn whole_blocks(stripe: &[u8], crypt: usize) -> &[u8] {
    let len = stripe.len().min(crypt);
    stripe.get(..len - len % BLOCK_BYTES).unwrap_or_default()
}

/// Returns an IV of 8 or 16 bytes as a block: a short one is followed by zeros (9.2).
fn complete_iv(iv: &[u8]) -> [u8; BLOCK_BYTES] {
    std::array::from_fn(|at| iv.get(at).copied().unwrap_or_default())
}

/// Decrypts in counter mode. The last eight bytes of the IV count blocks, and become zero after their
/// maximum without a carry into the others (9.3), which AES implementations would add.
fn apply_counter_mode(
    cipher: &impl SampleDecipher,
    iv: [u8; BLOCK_BYTES],
    bytes: &mut [u8],
) -> Result<()> {
    let whole = u128::from_be_bytes(iv);
    let until_wrap = (1u128 << 64) - u128::from(whole as u64);
    let at = until_wrap.saturating_mul(BLOCK_BYTES as u128);
    let at = usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()));
    let (before, after) = bytes.split_at_mut(at);
    cipher.decrypt_ctr(iv, before)?;
    cipher.decrypt_ctr((whole >> 64 << 64).to_be_bytes(), after)
}
