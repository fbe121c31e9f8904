//! The division of a large object into blocks (RFC 9111 sections 3.3 and 3.4).
//!
//! An object that is too large for the memory tier is cached as aligned blocks that share one
//! strong validator. A block's cache key contains the validator, so that blocks of an older version
//! of the object are never found.

use std::ops::Range;

use http::HeaderMap;
use http::header;
use net::conditional::Validators;

use crate::cache_key::CacheKey;

/// Maximum size of a block. A larger block would cost more origin traffic, because the origin has
/// to send a whole block even if a client requests a small range.
const BLOCK_BYTES_MAX: u64 = 1 << 20;

/// Keys and byte ranges of an object's blocks.
#[derive(Debug, Clone)]
pub struct BlockLayout {
    /// Key of the object.
    pub object_key: CacheKey,
    /// Strong validator that all blocks share, quotes included.
    pub etag: Box<str>,
    /// Length of each block. The last block may be shorter.
    pub block_bytes: u64,
}

impl BlockLayout {
    /// Returns the key of block `n`. The key is the object's key and one more line, which starts
    /// with a space. The lines that identify a variant start with a header name, so the two kinds
    /// of lines cannot be confused.
    pub fn block_key(&self, n: u64) -> CacheKey {
        let BlockLayout {
            object_key,
            etag,
            block_bytes,
        } = self;
        CacheKey::from(format!("{}\n {block_bytes} {n} {etag}", object_key.as_str()).as_str())
    }

    /// Returns the byte range of block `n` in an object of length `len`.
    pub fn block_range(&self, n: u64, len: u64) -> Range<u64> {
        let start = n.saturating_mul(self.block_bytes).min(len);
        start..start.saturating_add(self.block_bytes).min(len)
    }
}

/// Returns the block length for a cache whose objects have at most `object_bytes_max` bytes.
pub fn choose_cache_block_bytes(object_bytes_max: u64) -> u64 {
    let half = (object_bytes_max / 2).max(1);
    BLOCK_BYTES_MAX.min(1 << half.ilog2())
}

/// Returns the strong entity tag that blocks need (RFC 9111 section 3.4). Returns `None` if there
/// is no such tag, or if the origin declares that it does not support ranges.
pub fn strong_etag(headers: &HeaderMap) -> Option<Box<str>> {
    let ranges = headers.get(header::ACCEPT_RANGES);
    if ranges.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"none")) {
        return None;
    }
    let etag = Validators::from_headers(headers).etag?;
    let text = etag.to_str().ok()?;
    text.starts_with('"').then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_the_last_is_shorter() {
        let layout = BlockLayout {
            object_key: CacheKey::from("/a"),
            etag: "\"e\"".into(),
            block_bytes: 10,
        };
        assert_eq!(layout.block_range(0, 25), 0..10);
        assert_eq!(layout.block_range(2, 25), 20..25);
        assert_eq!(layout.block_range(3, 25), 25..25);
        assert_eq!(layout.block_key(3).as_str(), "/a\n 10 3 \"e\"");
    }

    #[test]
    fn block_length_is_a_power_of_two_that_fits_the_cache() {
        for (most, block) in [(512 << 10, 256 << 10), (1 << 30, 1 << 20), (3, 1), (0, 1)] {
            assert_eq!(choose_cache_block_bytes(most), block);
        }
    }

    #[test]
    fn blocks_need_a_strong_validator_and_range_support() {
        for (lines, found) in [
            (&[("etag", "\"a\"")][..], Some("\"a\"")),
            (&[("etag", "W/\"a\"")], None),
            (&[("etag", "a")], None),
            (&[("etag", "\"a\""), ("accept-ranges", "none")], None),
            (
                &[("etag", "\"a\""), ("accept-ranges", "bytes")],
                Some("\"a\""),
            ),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(strong_etag(&headers).as_deref(), found, "{lines:?}");
        }
    }
}
