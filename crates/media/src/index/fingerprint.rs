//! A hash of a file's metadata that is the same on every machine and in every run.

use std::ops::Range;

/// Hashes boxes and their offsets, eight bytes at a time. The hash is not cryptographic, because an
/// attacker who can write the file can replace the film anyway.
#[derive(Debug)]
pub(super) struct FingerprintHasher(u64);

/// An odd multiplier with well-distributed bits, derived from the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl FingerprintHasher {
    /// Creates a hash that starts with the length of the file.
    pub fn new(file_len: u64) -> FingerprintHasher {
        let mut hash = FingerprintHasher(FACTOR);
        hash.add_word(file_len);
        hash
    }

    /// Adds the box at offset `at`.
    pub fn add_box(&mut self, at: u64, bytes: &[u8]) {
        self.begin_box(at, bytes.len());
        let words = self.add_words(bytes);
        self.add_partial_word(bytes.get(words..).unwrap_or_default());
    }

    /// Starts a box of `len` bytes at offset `at`. The caller then adds the bytes of the box in
    /// parts.
    pub fn begin_box(&mut self, at: u64, len: usize) {
        self.add_word(at);
        self.add_word(len as u64);
    }

    /// Adds those bytes of a part that fill whole 8-byte words. Returns the number of added bytes.
    pub fn add_words(&mut self, bytes: &[u8]) -> usize {
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            self.add_word(u64::from_le_bytes(*word));
        }
        words.len() * 8
    }

    /// Adds the bytes of the last part that do not fill a whole word.
    pub fn add_partial_word(&mut self, rest: &[u8]) {
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.add_word(u64::from_le_bytes(last));
    }

    fn add_word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(FACTOR);
        self.0 = mixed ^ (mixed >> 29);
    }

    /// Returns the hash of everything that was added.
    pub fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 32)
    }
}

/// A hash of a byte range that is computed while the bytes arrive.
#[derive(Debug)]
pub(super) struct IncrementalHash {
    hash: FingerprintHasher,
    range: Range<usize>,
    hashed_bytes: usize,
}

impl IncrementalHash {
    /// Creates a hash that continues `hash` with the bytes of `range`.
    pub fn new(hash: FingerprintHasher, range: Range<usize>) -> IncrementalHash {
        let done = range.start;
        IncrementalHash {
            hash,
            range,
            hashed_bytes: done,
        }
    }

    /// Adds the bytes of the range that have arrived since the last call.
    pub fn add_available(&mut self, available: &[u8]) {
        let end = self.range.end.min(available.len());
        let new_bytes = available.get(self.hashed_bytes..end).unwrap_or_default();
        self.hashed_bytes += self.hash.add_words(new_bytes);
    }

    /// Adds the rest of the range and returns the hash. Returns `None` if the hash was started for
    /// a range other than `range`, or if bytes are missing.
    pub fn finish(mut self, available: &[u8], range: &Range<usize>) -> Option<FingerprintHasher> {
        self.add_available(available);
        let rest = available.get(self.hashed_bytes..self.range.end)?;
        self.hash.add_partial_word(rest);
        (self.range == *range).then_some(self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn hash_of(file_len: u64, at: u64, bytes: &[u8]) -> u64 {
        let mut hash = FingerprintHasher::new(file_len);
        hash.add_box(at, bytes);
        hash.finish()
    }

    #[test]
    fn any_change_of_bit_offset_or_length_changes_the_hash() {
        let bytes = *b"a moov box with everything";
        let mut seen = HashSet::from([
            hash_of(9, 0, &bytes),
            hash_of(8, 0, &bytes),
            hash_of(9, 1, &bytes),
        ]);
        assert_eq!(seen.len(), 3);
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(hash_of(9, 0, &other)), "bit {bit}");
        }
        assert!(seen.insert(hash_of(9, 0, &bytes[..25])));
    }

    #[test]
    fn a_hash_taken_in_parts_equals_the_whole() {
        let bytes = *b"a moov box with everything";
        for range in [0..26, 0..16, 8..25] {
            let part = &bytes[range.clone()];
            let mut hasher = FingerprintHasher::new(9);
            hasher.begin_box(3, part.len());
            let mut hashing = IncrementalHash::new(hasher, range.clone());
            [0, 9, 12, 12, 20]
                .iter()
                .for_each(|end| hashing.add_available(&bytes[..*end]));
            let hash = hashing
                .finish(&bytes, &range)
                .map(FingerprintHasher::finish);
            assert_eq!(hash, Some(super::tests::hash_of(9, 3, part)), "{range:?}");
        }
        let hashing = IncrementalHash::new(FingerprintHasher::new(9), 0..20);
        assert!(hashing.finish(&bytes, &(0..21)).is_none());
    }

    #[test]
    fn the_hash_has_its_pinned_value() {
        assert_eq!(hash_of(9, 0, b"moov"), hash_of(9, 0, b"moov"));
        assert_eq!(hash_of(1000, 32, b"a moov box"), GOLDEN);
    }

    /// Segment URLs depend on this hash. A change of the hash function therefore invalidates every
    /// cache.
    const GOLDEN: u64 = 0xc7f8b329a4b5fc4e;
}
