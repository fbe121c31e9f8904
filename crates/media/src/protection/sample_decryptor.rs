//! Decrypts the samples of an encrypted source in place (ISO/IEC 23001-7, 9.2 to 9.7 and 10).

use super::precomputed_subsamples::read_clear_and_protected_runs;
use super::subsample_map::BLOCK_BYTES;
use super::{ProtectedEntry, ProtectionScheme, SourceProtection};
use crate::error::{Error, Result};
use std::ops::Range;

/// AES-128 decryption with one content key. The scheme of the source selects the mode. Callers
/// implement this trait.
pub trait SampleDecipher {
    /// Decrypts `blocks`, which are whole blocks of 16 bytes, in cipher block chaining mode.
    ///
    /// # Errors
    /// Returns an error if the cipher fails.
    fn decrypt_cbc(&self, iv: [u8; BLOCK_BYTES], blocks: &mut [u8]) -> Result<()>;

    /// Decrypts `bytes` in counter mode.
    ///
    /// # Errors
    /// Returns an error if the cipher fails.
    fn decrypt_ctr(&self, counter: [u8; BLOCK_BYTES], bytes: &mut [u8]) -> Result<()>;
}

impl SourceProtection {
    /// Decrypts consecutive samples in place. `payload` contains exactly these samples, and `sizes`
    /// are the sizes of the samples in bytes.
    ///
    /// # Errors
    /// `Malformed` if sizes, subsamples and payload do not match. Errors of the cipher are returned
    /// unchanged.
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
            let (sample, after) = split.ok_or_else(encrypted_subsamples_mismatch_error)?;
            decryptor.decrypt_sample(sample, information)?;
            rest = after;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(encrypted_subsamples_mismatch_error()),
        }
    }
}

fn encrypted_subsamples_mismatch_error() -> Error {
    Error::malformed("the encrypted samples do not match their subsamples")
}

struct SampleDecryptor<'a, C> {
    entry: &'a ProtectedEntry,
    has_subsamples: bool,
    cipher: &'a C,
    /// Encrypted byte ranges of the current sample. The memory is reused for the next sample.
    runs: Vec<Range<usize>>,
    /// Encrypted bytes of the current sample (`cenc`) or subsample (`cbcs`), without the
    /// unencrypted bytes between them. The memory is reused.
    gathered: Vec<u8>,
}

impl<C: SampleDecipher> SampleDecryptor<'_, C> {
    /// Decrypts a sample. `information` is the sample's entry in `senc`.
    fn decrypt_sample(&mut self, sample: &mut [u8], information: &[u8]) -> Result<()> {
        let split = information.split_at_checked(self.entry.iv_bytes);
        let (iv, subsamples) = split.ok_or_else(encrypted_subsamples_mismatch_error)?;
        self.find_encrypted_runs(sample.len(), subsamples)?;
        let iv = match iv {
            [] => self.entry.protection.iv,
            own => complete_iv(own),
        };
        match self.entry.protection.scheme {
            ProtectionScheme::Cenc => self.decrypt_cenc_sample(sample, iv),
            ProtectionScheme::Cbcs => self.decrypt_cbcs_sample(sample, iv),
        }
    }

    /// Finds the encrypted byte ranges of a sample of `len` bytes. A sample without subsamples is
    /// encrypted as a whole.
    fn find_encrypted_runs(&mut self, len: usize, subsamples: &[u8]) -> Result<()> {
        self.runs.clear();
        let mut at = 0;
        for run in read_clear_and_protected_runs(subsamples).take_while(|_| self.has_subsamples) {
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
            false => Err(encrypted_subsamples_mismatch_error()),
        }
    }

    /// Decrypts a `cenc` sample. All encrypted bytes of the sample form one cipher stream, so a
    /// cipher block may extend over several subsamples (9.5).
    fn decrypt_cenc_sample(&mut self, sample: &mut [u8], iv: [u8; BLOCK_BYTES]) -> Result<()> {
        self.gathered.clear();
        for run in &self.runs {
            let bytes = sample
                .get(run.clone())
                .ok_or_else(encrypted_subsamples_mismatch_error)?;
            self.gathered.extend_from_slice(bytes);
        }
        apply_counter_mode(self.cipher, iv, &mut self.gathered)?;
        let mut clear = &self.gathered[..];
        for run in &self.runs {
            let place = sample
                .get_mut(run.clone())
                .ok_or_else(encrypted_subsamples_mismatch_error)?;
            let (bytes, rest) = clear.split_at(place.len());
            place.copy_from_slice(bytes);
            clear = rest;
        }
        Ok(())
    }

    /// Decrypts a `cbcs` sample. The cipher starts again with the IV at each encrypted range (9.6,
    /// 10.4).
    fn decrypt_cbcs_sample(&mut self, sample: &mut [u8], iv: [u8; BLOCK_BYTES]) -> Result<()> {
        let (crypt, stripe) = self.entry.crypt_and_stripe_len();
        for run in &self.runs {
            let bytes = sample
                .get_mut(run.clone())
                .ok_or_else(encrypted_subsamples_mismatch_error)?;
            // Without a pattern, the whole range is one stripe.
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

/// Returns the whole cipher blocks within the first `crypt` bytes of a stripe. A stripe is one
/// repetition of the pattern.
fn whole_blocks(stripe: &[u8], crypt: usize) -> &[u8] {
    let len = stripe.len().min(crypt);
    stripe.get(..len - len % BLOCK_BYTES).unwrap_or_default()
}

/// Returns an IV of 8 or 16 bytes as a block of 16 bytes. Zeros follow an IV of 8 bytes (9.2).
fn complete_iv(iv: &[u8]) -> [u8; BLOCK_BYTES] {
    std::array::from_fn(|at| iv.get(at).copied().unwrap_or_default())
}

/// Decrypts in counter mode. The last eight bytes of the IV are the block counter. After its
/// maximum, the counter becomes zero without a carry into the first eight bytes (9.3).
/// Implementations of AES-CTR carry into these bytes. The payload is therefore split where the
/// counter becomes zero, and the second part is decrypted in a call of its own.
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

#[cfg(test)]
mod tests {
    use super::super::SencTable;
    use super::*;
    use crate::bytes::{write_box, write_full_box};

    /// A test cipher that overwrites the decrypted bytes with bytes of the IV or of the counter.
    struct MarkingDecipher;

    impl SampleDecipher for MarkingDecipher {
        fn decrypt_cbc(&self, iv: [u8; 16], blocks: &mut [u8]) -> Result<()> {
            assert_eq!(blocks.len() % 16, 0);
            let first_and_last = [iv[0], iv[15]];
            blocks
                .iter_mut()
                .zip((0..2).cycle())
                .for_each(|(byte, n): (_, usize)| *byte = first_and_last[n]);
            Ok(())
        }

        /// Overwrites each block with its counter.
        fn decrypt_ctr(&self, counter: [u8; 16], bytes: &mut [u8]) -> Result<()> {
            let mut counter = u128::from_be_bytes(counter);
            for block in bytes.chunks_mut(16) {
                block.copy_from_slice(&counter.to_be_bytes()[..block.len()]);
                counter = counter.wrapping_add(1);
            }
            Ok(())
        }
    }

    /// Creates the protection of a source with one sample. `tenc` contains the fields after version
    /// and flags, and `senc` is the entry of the sample.
    fn source(scheme: &[u8; 4], tenc: &[u8], senc: Option<&[u8]>) -> SourceProtection {
        let mut entry = Vec::new();
        write_box(&mut entry, b"encv", |out| {
            out.extend_from_slice(&[0; 78]);
            write_box(out, b"sinf", |out| {
                write_box(out, b"frma", |out| out.extend_from_slice(b"avc1"));
                write_full_box(out, b"schm", 0, 0, |out| {
                    out.extend_from_slice(scheme);
                    out.extend_from_slice(&[0, 1, 0, 0]);
                });
                write_box(out, b"schi", |out| {
                    write_full_box(out, b"tenc", 1, 0, |out| out.extend_from_slice(tenc));
                });
            });
        });
        let (_, entry) = ProtectedEntry::split_protected_entry(&entry).expect("a legal entry");
        let mut auxiliary = SencTable::default();
        let body = senc.map(|senc| [&[0, 0, 0, 2, 0, 0, 0, 1], senc].concat());
        auxiliary
            .add_samples(body.as_deref(), 1, entry.iv_bytes)
            .expect("a legal senc");
        SourceProtection {
            entry,
            auxiliary,
            pssh_boxes: Vec::new(),
        }
    }

    fn fields(pattern: u8, iv_bytes: u8, constant_iv: &[u8]) -> Vec<u8> {
        [&[0, pattern, 1, iv_bytes][..], &[0xaa; 16], constant_iv].concat()
    }

    /// Returns an entry of `senc`. Each of `runs` contains the unencrypted and the encrypted bytes
    /// of a subsample.
    fn entry(iv: &[u8], runs: &[(u16, u32)]) -> Vec<u8> {
        let mut out = iv.to_vec();
        out.extend_from_slice(&(runs.len() as u16).to_be_bytes());
        for (clear, protected) in runs {
            out.extend_from_slice(&clear.to_be_bytes());
            out.extend_from_slice(&protected.to_be_bytes());
        }
        out
    }

    fn decrypt(source: &SourceProtection, len: usize) -> Result<Vec<u8>> {
        let mut sample = vec![0x77; len];
        let sizes = std::iter::once(len as u32);
        source.decrypt_samples(&mut sample, (0..1, sizes), &MarkingDecipher)?;
        Ok(sample)
    }

    #[test]
    fn the_block_counter_wraps_without_carry() {
        let iv = [[5; 8], (u64::MAX - 1).to_be_bytes()].concat();
        let source = source(b"cenc", &fields(0, 16, &[]), Some(&entry(&iv, &[])));
        let counters = [u64::MAX - 1, u64::MAX, 0, 1];
        let expected: Vec<u8> = counters
            .iter()
            .flat_map(|counter| [[5; 8], counter.to_be_bytes()].concat())
            .collect();
        assert_eq!(decrypt(&source, 64).expect("a legal sample"), expected);
    }

    #[test]
    fn runs_of_cenc_share_cipher_blocks() {
        let runs = [(3, 10), (2, 0), (0, 30)];
        let source = source(b"cenc", &fields(0, 8, &[]), Some(&entry(&[9; 8], &runs)));
        let stream: Vec<u8> = (0..3u64)
            .flat_map(|counter| [[9; 8], counter.to_be_bytes()].concat())
            .collect();
        let clear = |len| vec![0x77; len];
        let expected = [&clear(3), &stream[..10], &clear(2), &stream[10..40]].concat();
        assert_eq!(decrypt(&source, 45).expect("a legal sample"), expected);
    }

    #[test]
    fn patterns_and_short_ivs_of_cbcs_are_those_of_tenc() {
        let constant = [&[16][..], &[1; 16]].concat();
        let marks = |source: &SourceProtection, len| {
            let sample = decrypt(source, len).expect("a legal sample");
            let name = |byte: &u8| match byte {
                0x77 => '.',
                0 => '0',
                _ => '#',
            };
            let blocks = sample.chunks(16).map(|block| block.iter().map(name));
            blocks
                .map(|block| block.collect::<String>())
                .collect::<Vec<_>>()
        };
        let (all, none) = ("#".repeat(16), ".".repeat(16));
        let (all, none) = (all.as_str(), none.as_str());
        let two_of_five = source(b"cbcs", &fields(0x23, 0, &constant), Some(&entry(&[], &[])));
        let expected = [all, all, none, none, none, all, all, none, "....."];
        assert_eq!(marks(&two_of_five, 133), expected);
        // The pattern starts again at each encrypted range.
        let runs = entry(&[], &[(16, 53), (11, 16)]);
        let two_runs = source(b"cbcs", &fields(0x19, 0, &constant), Some(&runs));
        assert_eq!(marks(&two_runs, 96), [none, all, none, none, none, all]);
        // Audio has neither a pattern nor entries in `senc`.
        let whole = source(b"cbcs", &fields(0, 0, &constant), None);
        assert_eq!(marks(&whole, 37), [all, all, "....."]);
        let short = source(b"cbcs", &fields(0, 8, &[]), Some(&entry(&[2; 8], &[])));
        assert_eq!(marks(&short, 17), ["#0".repeat(8).as_str(), "."]);
    }

    #[test]
    fn subsamples_that_do_not_fill_their_sample_are_refused() {
        for runs in [&[(3, 10)][..], &[(3, 17), (0, 1)], &[(0, u32::MAX)]] {
            for scheme in [b"cenc", b"cbcs"] {
                let source = source(scheme, &fields(0, 8, &[]), Some(&entry(&[9; 8], runs)));
                let error = decrypt(&source, 20).expect_err("a mismatch").to_string();
                assert!(error.contains("do not match"), "{error}");
            }
        }
        let source = source(b"cenc", &fields(0, 8, &[]), Some(&entry(&[9; 8], &[])));
        let mut payload = [0; 21];
        for sizes in [&[20][..], &[22], &[]] {
            let samples = (0..1, sizes.iter().copied());
            assert!(
                source
                    .decrypt_samples(&mut payload, samples, &MarkingDecipher)
                    .is_err()
            );
        }
    }
}
