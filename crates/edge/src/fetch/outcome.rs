//! Results of a fetch, for the waiting requests and for the client that leads the fetch.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName};
use net::Error;
use store::cache::GrowingReader;

use crate::cache_key::selecting_value;
use crate::cache_outcome::UncacheableReason;
use crate::cached_object::CachedObject;
use crate::object_body::SharedObjectBody;
use crate::origins::OriginResponse;

/// The result of a fetch, which every waiting request gets.
#[derive(Clone)]
pub enum FetchOutcome {
    /// The origin sent a response that waiting requests may share. The body may still be growing.
    Stored(SharedResponse),
    /// The origin confirmed the cached object with a 304.
    Revalidated(SharedResponse),
    /// The origin sent no response or a 5xx, and the leader may get the cached object stale.
    StaleOnError(Arc<CachedObject>),
    /// The response is only for one client, or too large for the cache. Each follower has to send
    /// its own request. For a block, the origin refused the leader's request.
    Private(UncacheableReason),
    /// The origin sent no valid response.
    Failed(Arc<Error>),
    /// The requested block of a large object. The block may still be growing.
    Block(Arc<SharedObjectBody>),
    /// The block is unavailable because the object changed at the origin, or because the origin
    /// ignored the range.
    ValidatorChanged,
}

/// A response that waiting requests for the same variant may share.
#[derive(Clone)]
pub struct SharedResponse {
    pub object: Arc<CachedObject>,
    /// The reason why the response is not stored; `None` if it is stored.
    pub uncacheable: Option<UncacheableReason>,
    /// Headers of the leader's request that a follower's request must also have, with their values.
    /// `None` if the response does not depend on these headers.
    pub required_headers: Option<Arc<[(HeaderName, String)]>>,
}

impl SharedResponse {
    /// Returns whether a follower with these request headers may get the response.
    pub fn matches_follower(&self, request: &HeaderMap) -> bool {
        let mut required = self.required_headers.iter().flat_map(|all| all.iter());
        self.object.matches_request(request)
            && required.all(|(name, value)| selecting_value(request, name) == *value)
    }
}

impl FetchOutcome {
    /// Returns the outcome that the followers get. A response to a revalidation that forbids the
    /// storage of the object is only for the leader.
    pub(super) fn for_followers(&self) -> FetchOutcome {
        match self {
            FetchOutcome::Revalidated(SharedResponse {
                uncacheable: Some(reason),
                ..
            }) => FetchOutcome::Private(*reason),
            _ => self.clone(),
        }
    }
}

/// The result of a fetch for the client that leads the fetch.
pub enum FetchResultForLeader {
    /// The outcome that the followers usually also get.
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
