//! Results of a fetch, for the waiting requests and for the client that leads the fetch.

use std::sync::Arc;

use net::Error;
use store::cache::GrowingReader;

use crate::cache_outcome::UncacheableReason;
use crate::cached_object::CachedObject;
use crate::object_body::SharedObjectBody;
use crate::origins::OriginResponse;

/// The result of a fetch, which every waiting request gets.
#[derive(Clone)]
pub enum FetchOutcome {
    /// The origin sent a response that all waiting requests for the same variant may share. The
    /// body may still be growing. If the response is an error that must not be stored, the second
    /// field contains the reason. Such an error is still delivered to the waiting requests.
    Stored(Arc<CachedObject>, Option<UncacheableReason>),
    /// The origin confirmed the cached object with a 304.
    Revalidated(Arc<CachedObject>),
    /// The origin sent no response or a 5xx, and the cached object may be served stale.
    StaleOnError(Arc<CachedObject>),
    /// The response is only for one client, or too large for the cache. Each follower has to send
    /// its own request.
    Private(UncacheableReason),
    /// The origin sent no valid response.
    Failed(Arc<Error>),
    /// The requested block of a large object. The block may still be growing.
    Block(Arc<SharedObjectBody>),
    /// The block is unavailable because the object changed at the origin, or because the origin
    /// ignored the range.
    ValidatorChanged,
}

/// The result of a fetch for the client that leads the fetch.
pub enum FetchResultForLeader {
    /// The outcome that the followers also get.
    Shared {
        outcome: FetchOutcome,
        /// Time from the request to the origin's response head. `None` if no response head arrived.
        upstream_us: Option<u64>,
        /// Keeps the first bytes of the body in memory until the leader's response has its own
        /// reader.
        first_bytes: Option<GrowingReader>,
    },
    /// The origin's response, which only the leader gets.
    Private(Box<OriginResponse>, UncacheableReason),
}
