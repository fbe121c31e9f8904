//! Remembers which parts of a file were recently found in memory, so that popular parts are not
//! probed for each request.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// Length of a block in bytes. The result of a probe is remembered for whole blocks.
const BLOCK_BYTES: u64 = 1 << 20;
/// Time for which a block is assumed to stay in memory, in milliseconds. If the assumption is
/// wrong, an event loop waits for the storage once.
const TRUST_MS: u32 = 1000;

/// For each block, the time at which the whole block was found in memory. The time is the number of
/// milliseconds since the first probe of the process, plus one. 0 means that the block was never
/// found in memory. The list is allocated at the first probe.
#[derive(Debug, Default)]
pub(crate) struct PageResidency {
    found_ms: OnceLock<Box<[AtomicU32]>>,
}

impl PageResidency {
    /// Returns whether `range` of a file of `len` bytes is in memory, according to an earlier
    /// result or to `probe`.
    pub(crate) fn is_resident(
        &self,
        len: u64,
        range: &Range<u64>,
        probe: impl Fn(&Range<u64>) -> bool,
    ) -> bool {
        if range.is_empty() {
            return true;
        }
        let now = monotonic_ms();
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
            let is_resident = probe(&(start..len.min(start + BLOCK_BYTES)));
            if is_resident {
                found.store(now, Relaxed);
            }
            is_resident
        };
        blocks.into_iter().all(found) || probe(range)
    }
}

fn monotonic_ms() -> u32 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    // The milliseconds overflow after seven weeks. A block may then be trusted for one second too
    // long, or be probed once more than necessary.
    (elapsed.as_millis() as u32).wrapping_add(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_resident_block_is_not_probed_again() {
        let residency = PageResidency::default();
        let looks = RefCell::new(Vec::new());
        let look = |range: &Range<u64>| {
            looks.borrow_mut().push((range.start, range.end));
            true
        };
        let len = BLOCK_BYTES + 10;
        assert!(residency.is_resident(len, &(5..6), look));
        assert!(residency.is_resident(len, &(7..BLOCK_BYTES), look));
        assert_eq!(*looks.borrow(), vec![(0, BLOCK_BYTES)]);
        assert!(residency.is_resident(len, &(BLOCK_BYTES - 1..BLOCK_BYTES + 1), look));
        assert_eq!(looks.borrow()[1..], [(BLOCK_BYTES, len)]);
    }

    #[test]
    fn only_the_range_is_probed_if_its_block_is_not_resident() {
        let residency = PageResidency::default();
        let only = 100..200;
        let look = |range: &Range<u64>| range.start >= only.start && range.end <= only.end;
        assert!(residency.is_resident(BLOCK_BYTES, &(100..200), look));
        assert!(!residency.is_resident(BLOCK_BYTES, &(100..201), look));
    }
}
