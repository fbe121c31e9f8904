//! A pool of used header maps for later requests.

use std::cell::Cell;

use http::HeaderMap;

/// Largest capacity of a pooled map.
const FIELDS_MAX: usize = 64;

thread_local! {
    /// An empty map with capacity.
    static SPARE: Cell<HeaderMap> = Cell::default();
}

/// Returns a used map to this thread's pool, so that the next request need not allocate one.
pub fn recycle_map(mut map: HeaderMap) {
    if (1..=FIELDS_MAX).contains(&map.capacity()) {
        map.clear();
        SPARE.set(map);
    }
}

/// Takes an empty map from the pool.
pub(crate) fn take_map() -> HeaderMap {
    SPARE.take()
}
