//! What was lately found in memory of a file, so that hot parts are not looked at each time.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// Bytes of a file that are looked at together.
const BLOCK_BYTES: u64 = 1 << 20;
/// How long a block found in memory is taken to be there still, in milliseconds. The price of
/// being wrong is one wait of an event loop for the storage.
const TRUST_MS: u32 = 1000;

/// Per block, when all of it was found in memory: milliseconds since the process's first look,
/// and one; 0: never. Made at the first look.
#[derive(Debug, Default)]
pub(crate) struct Residence {
    found_ms: OnceLock<Box<[AtomicU32]>>,
}

impl Residence {
    /// Whether `range` of a file of `len` bytes is in memory, by trust or by `probe`.
    pub(crate) fn holds(
        &self,
        len: u64,
        range: &Range<u64>,
        probe: impl Fn(&Range<u64>) -> bool,
    ) -> bool {
        if range.is_empty() {
            return true;
        }
        let now = now_ms();
        let all = self.found_ms.get_or_init(|| {
            let blocks = len.div_ceil(BLOCK_BYTES) as usize;
            (0..blocks).map(|_| AtomicU32::new(0)).collect()
        });
        let blocks = range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES);
        let found = |block: u64| {
            let Some(found) = all.get(block as usize) else {
                return false;
            };
            let at = found.load(Relaxed);
            if at != 0 && now.wrapping_sub(at) < TRUST_MS {
                return true;
            }
            let start = block * BLOCK_BYTES;
            let whole = probe(&(start..len.min(start + BLOCK_BYTES)));
            if whole {
                found.store(now, Relaxed);
            }
            whole
        };
        blocks.into_iter().all(found) || probe(range)
    }
}

fn now_ms() -> u32 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    // Wraps after seven weeks; then a block is trusted a second too long, or looked at once more.
    (elapsed.as_millis() as u32).wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_block_found_whole_is_not_looked_at_again() {
        let residence = Residence::default();
        let looks = RefCell::new(Vec::new());
        let look = |range: &Range<u64>| {
            looks.borrow_mut().push((range.start, range.end));
            true
        };
        let len = BLOCK_BYTES + 10;
        assert!(residence.holds(len, &(5..6), look));
        assert!(residence.holds(len, &(7..BLOCK_BYTES), look));
        assert_eq!(*looks.borrow(), vec![(0, BLOCK_BYTES)]);
        assert!(residence.holds(len, &(BLOCK_BYTES - 1..BLOCK_BYTES + 1), look));
        assert_eq!(looks.borrow()[1..], [(BLOCK_BYTES, len)]);
    }

    #[test]
    fn where_a_block_is_not_whole_the_range_itself_decides() {
        let residence = Residence::default();
        let only = 100..200;
        let look = |range: &Range<u64>| range.start >= only.start && range.end <= only.end;
        assert!(residence.holds(BLOCK_BYTES, &(100..200), look));
        assert!(!residence.holds(BLOCK_BYTES, &(100..201), look));
    }
}
