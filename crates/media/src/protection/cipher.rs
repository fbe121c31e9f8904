//! Encryption of the samples of a fragment, in place (ISO/IEC 23001-7, 9.4 to 9.7 and 10).

use super::subsample_map::BLOCK_BYTES;
use super::{ProtectionScheme, SubsampleMap, TrackProtection};
use crate::codec::Codec;
use crate::error::{Error, Result};

/// A keyed AES-128 of the caller. `blocks` are always whole blocks of 16 bytes, except for the last
/// bytes of a sample in [`SampleCipher::encrypt_ctr`].
pub trait SampleCipher {
    /// Encrypts `blocks` in cipher block chaining mode.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn encrypt_cbc(&self, iv: [u8; BLOCK_BYTES], blocks: &mut [u8]) -> Result<()>;

    /// Encrypts `bytes` in counter mode.
    ///
    /// # Errors
    /// An error if the cipher fails.
    fn encrypt_ctr(&self, counter: [u8; BLOCK_BYTES], bytes: &mut [u8]) -> Result<()>;
}

/// Distance of encrypted blocks in the pattern 1:9, in bytes.
const PATTERN_BYTES: usize = 10 * BLOCK_BYTES;

/// Encrypts the samples in `payload`, whose sizes are given. `first` is the number of the first
/// sample in its track. Without `map`, samples are protected as a whole.
///
/// # Errors
/// `Malformed` if sizes, map and payload do not match, or an error of the cipher.
pub fn encrypt_samples(
    payload: &mut [u8],
    (first, sizes): (u32, impl Iterator<Item = u32>),
    map: Option<&SubsampleMap>,
    (codec, protection): (&Codec, &TrackProtection),
    cipher: &impl SampleCipher,
) -> Result<()> {
    let mut encryptor = SampleEncryptor {
        protection,
        cipher,
        has_pattern: codec.video().is_some(),
        gathered: Vec::new(),
    };
    let mut maps = map.map(SubsampleMap::samples);
    let mut rest = payload;
    for (number, size) in (first..).zip(sizes) {
        let (sample, after) = rest
            .split_at_mut_checked(size as usize)
            .ok_or_else(mismatch)?;
        let mut stream = SampleStream::new(protection.sample_iv(number));
        match &mut maps {
            None => encryptor.encrypt_run(sample, &mut stream)?,
            Some(maps) => {
                let mut rest = sample;
                for subsample in maps.next().ok_or_else(mismatch)? {
                    let (clear, protected) = (subsample.clear.into(), subsample.protected as usize);
                    let (_, after) = rest.split_at_mut_checked(clear).ok_or_else(mismatch)?;
                    let (run, after) =
                        after.split_at_mut_checked(protected).ok_or_else(mismatch)?;
                    encryptor.encrypt_run(run, &mut stream)?;
                    rest = after;
                }
            }
        }
        rest = after;
    }
    Ok(())
}

fn mismatch() -> Error {
    Error::malformed("the samples do not match their subsamples")
}

/// The counter of one sample in `cenc`. All protected bytes of a sample form one stream.
struct SampleStream {
    counter: u128,
}

impl SampleStream {
    fn new(iv: [u8; 8]) -> SampleStream {
        SampleStream {
            counter: u128::from(u64::from_be_bytes(iv)) << 64,
        }
    }

    /// Returns the counter block, and moves on by `len` bytes. Runs before the last are whole
    /// blocks.
    fn advance(&mut self, len: usize) -> [u8; BLOCK_BYTES] {
        let block = self.counter.to_be_bytes();
        self.counter += len.div_ceil(BLOCK_BYTES) as u128;
        block
    }
}

struct SampleEncryptor<'a, C> {
    protection: &'a TrackProtection,
    cipher: &'a C,
    /// Whether `cbcs` encrypts one block of ten, as for video.
    has_pattern: bool,
    /// The blocks to encrypt, reused between runs.
    gathered: Vec<u8>,
}

impl<C: SampleCipher> SampleEncryptor<'_, C> {
    fn encrypt_run(&mut self, run: &mut [u8], stream: &mut SampleStream) -> Result<()> {
        match self.protection.scheme {
            ProtectionScheme::Cenc => self.cipher.encrypt_ctr(stream.advance(run.len()), run),
            ProtectionScheme::Cbcs if self.has_pattern => self.encrypt_pattern(run),
            ProtectionScheme::Cbcs => {
                let whole = run.len() - run.len() % BLOCK_BYTES;
                let blocks = run.get_mut(..whole).unwrap_or_default();
                self.cipher.encrypt_cbc(self.protection.iv, blocks)
            }
        }
    }

    /// Gathers the blocks of the pattern, encrypts them in one call, and scatters them.
    fn encrypt_pattern(&mut self, run: &mut [u8]) -> Result<()> {
        self.gathered.clear();
        for stripe in run.chunks(PATTERN_BYTES) {
            if let Some(block) = stripe.first_chunk::<BLOCK_BYTES>() {
                self.gathered.extend_from_slice(block);
            }
        }
        self.cipher
            .encrypt_cbc(self.protection.iv, &mut self.gathered)?;
        let stripes = run.chunks_mut(PATTERN_BYTES);
        for (stripe, block) in stripes.zip(self.gathered.chunks_exact(BLOCK_BYTES)) {
            if let Some(place) = stripe.first_chunk_mut::<BLOCK_BYTES>() {
                place.copy_from_slice(block);
            }
        }
        Ok(())
    }
}
