//! Maps of fields that are done with, kept for the next requests.

use std::cell::Cell;

use http::HeaderMap;

/// Maps with room for more are not kept.
const FIELDS_MAX: usize = 64;

thread_local! {
    /// An empty map with room in it.
    static SPARE: Cell<HeaderMap> = Cell::default();
}

/// Gives a map that is done with, so that the next request on this thread needs none of its own.
pub fn done_with(mut map: HeaderMap) {
    if (1..=FIELDS_MAX).contains(&map.capacity()) {
        map.clear();
        SPARE.set(map);
    }
}

/// An empty map.
pub(crate) fn spare() -> HeaderMap {
    SPARE.take()
}
