//! Keeps one used header map per thread, for a later request of the thread.

use std::cell::Cell;

use http::HeaderMap;

/// Limit on the capacity of a pooled map, in fields.
const FIELDS_MAX: usize = 64;

thread_local! {
    /// The pooled map, which is empty but keeps its capacity.
    static SPARE: Cell<HeaderMap> = Cell::default();
}

/// Puts a used map back into this thread's pool, so that the next request need not allocate a map.
pub fn recycle_map(mut map: HeaderMap) {
    if (1..=FIELDS_MAX).contains(&map.capacity()) {
        map.clear();
        SPARE.set(map);
    }
}

/// Takes the empty map from the pool, or creates a map.
pub(crate) fn take_map() -> HeaderMap {
    SPARE.take()
}
