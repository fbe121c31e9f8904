//! Results of a fetch: one for all waiting requests, and one for the client that leads it.

use std::sync::Arc;

use net::Error;
use store::cache::GrowingReader;

use crate::cache_outcome::UncacheableReason;
use crate::cached_object::CachedObject;
use crate::object_body::ObjectBody;
use crate::origins::OriginResponse;

/// The result of a fetch, given to every request that waits for it.
#[derive(Clone)]
pub enum FetchOutcome {
    /// The origin sent a response that all waiting requests may share. Its body may still be
    /// growing. For an error response that must not be stored, the second field contains the
    /// reason; the response is still delivered to the waiting requests.
    Stored(Arc<CachedObject>, Option<UncacheableReason>),
    /// The origin confirmed the cached object with a 304.
    Revalidated(Arc<CachedObject>),
    /// The origin failed (no response, or a 5xx), and the cached object may be served stale.
    StaleOnError(Arc<CachedObject>),
    /// The response is for one client, or too large for the cache: each follower has to send a
    /// request of its own.
    Private(UncacheableReason),
    /// The origin sent no response, or one that violates HTTP.
    Failed(Arc<Error>),
    /// The requested block of a large object. Its body may still be growing.
    Block(Arc<ObjectBody>),
    /// The block is unavailable because the object changed at the origin, or because the origin
    /// ignored the range.
    ValidatorChanged,
}

/// The result of a fetch for the client that leads it.
pub enum LeaderReply {
    /// The same outcome as for the followers.
    Shared {
        outcome: FetchOutcome,
        /// Time to the response head of the origin; absent if there was none.
        upstream_us: Option<u64>,
        /// Keeps the first bytes of the body in memory until this client reads them itself.
        first_bytes: Option<GrowingReader>,
    },
    /// The response itself, which followers do not get.
    Private(Box<OriginResponse>, UncacheableReason),
}
