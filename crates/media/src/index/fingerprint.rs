//! A hash of a file's metadata that is the same on every machine and in every run.

use std::ops::Range;

/// Hashes boxes with their places, eight bytes at a time. Not for adversaries: who can write
/// the file can write another film anyway.
#[derive(Debug)]
pub(super) struct Fingerprint(u64);

/// Odd, with well-spread bits (the golden ratio's).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Fingerprint {
    /// Begins with the length of the file.
    pub fn new(file_len: u64) -> Fingerprint {
        let mut hash = Fingerprint(FACTOR);
        hash.word(file_len);
        hash
    }

    /// Adds a box that lies at `at`.
    pub fn add(&mut self, at: u64, bytes: &[u8]) {
        self.begin(at, bytes.len());
        let words = self.words(bytes);
        self.end(bytes.get(words..).unwrap_or_default());
    }

    /// Begins with a box of `len` bytes at `at`, which come in parts.
    pub fn begin(&mut self, at: u64, len: usize) {
        self.word(at);
        self.word(len as u64);
    }

    /// Adds as much of a part as fills words, and tells how many bytes that are.
    pub fn words(&mut self, bytes: &[u8]) -> usize {
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        words.len() * 8
    }

    /// Adds what is left of the last part.
    pub fn end(&mut self, rest: &[u8]) {
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.word(u64::from_le_bytes(last));
    }

    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(FACTOR);
        self.0 = mixed ^ (mixed >> 29);
    }

    /// The hash of all that was added.
    pub fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(FACTOR);
        mixed ^ (mixed >> 32)
    }
}

/// A hash of a part of what comes, taken while it does.
#[derive(Debug)]
pub(super) struct Hashing {
    hash: Fingerprint,
    range: Range<usize>,
    done: usize,
}

impl Hashing {
    /// Goes on with `hash`, which is that of all before `range`.
    pub fn new(hash: Fingerprint, range: Range<usize>) -> Hashing {
        let done = range.start;
        Hashing { hash, range, done }
    }

    /// Adds what of the range has come.
    pub fn add(&mut self, came: &[u8]) {
        let end = self.range.end.min(came.len());
        let fresh = came.get(self.done..end).unwrap_or_default();
        self.done += self.hash.words(fresh);
    }

    /// The hash with all of `range`, if it was begun for that.
    pub fn finish(mut self, came: &[u8], range: &Range<usize>) -> Option<Fingerprint> {
        self.add(came);
        let rest = came.get(self.done..self.range.end)?;
        self.hash.end(rest);
        (self.range == *range).then_some(self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn hash(file_len: u64, at: u64, bytes: &[u8]) -> u64 {
        let mut hash = Fingerprint::new(file_len);
        hash.add(at, bytes);
        hash.finish()
    }

    #[test]
    fn any_bit_place_or_length_changes_it() {
        let bytes = *b"moov and all that is in it";
        let mut seen = HashSet::from([hash(9, 0, &bytes), hash(8, 0, &bytes), hash(9, 1, &bytes)]);
        assert_eq!(seen.len(), 3);
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(hash(9, 0, &other)), "bit {bit}");
        }
        assert!(seen.insert(hash(9, 0, &bytes[..25])));
    }

    #[test]
    fn parts_are_the_whole() {
        let bytes = *b"moov and all that is in it";
        for range in [0..26, 0..16, 8..25] {
            let part = &bytes[range.clone()];
            let mut begun = Fingerprint::new(9);
            begun.begin(3, part.len());
            let mut hashing = Hashing::new(begun, range.clone());
            [0, 9, 12, 12, 20]
                .iter()
                .for_each(|end| hashing.add(&bytes[..*end]));
            let hash = hashing.finish(&bytes, &range).map(Fingerprint::finish);
            assert_eq!(hash, Some(super::tests::hash(9, 3, part)), "{range:?}");
        }
        let hashing = Hashing::new(Fingerprint::new(9), 0..20);
        assert!(hashing.finish(&bytes, &(0..21)).is_none());
    }

    #[test]
    fn it_is_the_same_everywhere() {
        assert_eq!(hash(9, 0, b"moov"), hash(9, 0, b"moov"));
        assert_eq!(hash(1000, 32, b"a moov box"), GOLDEN);
    }

    /// Segment URLs hold it: if this changes, every cache goes cold.
    const GOLDEN: u64 = 0xc7f8b329a4b5fc4e;
}
