//! A hash of a file's metadata that is the same on every machine and in every run.

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
        self.word(at);
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
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
    fn it_is_the_same_everywhere() {
        assert_eq!(hash(9, 0, b"moov"), hash(9, 0, b"moov"));
        assert_eq!(hash(1000, 32, b"a moov box"), GOLDEN);
    }

    /// Segment URLs hold it: if this changes, every cache goes cold.
    const GOLDEN: u64 = 0xc7f8b329a4b5fc4e;
}
