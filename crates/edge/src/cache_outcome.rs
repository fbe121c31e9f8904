//! Outcomes and reasons, with the names that access records, metrics and `Cache-Status` use.

/// The reason why a response was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncacheableReason {
    /// The request's method is not `GET`. Fetches use `GET` only, so the edge itself never reports
    /// this reason.
    Method,
    /// The status prevents storage, for one of these reasons:
    /// - It is 1xx, 206, 304 or 416.
    /// - The response contains `must-understand`, and the edge does not understand the status.
    /// - The status is not cacheable by default, and the response declares no lifetime.
    Status,
    /// The response contains `no-store`.
    NoStore,
    /// The response contains `private`.
    Private,
    /// The request contains `Authorization`, and the response lacks `public`, `must-revalidate` and
    /// `s-maxage`.
    Authorization,
    /// The response contains `Set-Cookie`.
    SetCookie,
    /// The response contains `Vary: *`.
    VaryStar,
    /// The values of the headers in `Vary` are too long for a cache key.
    VaryLong,
    /// The response is stale on arrival, and has neither a validator for later revalidation nor a
    /// permission for stale use.
    NoLifetime,
    /// The body exceeds the limit on an object's size and cannot be stored in blocks.
    TooLarge,
}

impl UncacheableReason {
    /// Returns whether the reason is a header of the request. Responses to other requests for the
    /// same URL may then be cacheable.
    pub fn depends_on_request(self) -> bool {
        matches!(
            self,
            UncacheableReason::Authorization | UncacheableReason::VaryLong
        )
    }

    /// Returns the name in `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            UncacheableReason::Method => "method",
            UncacheableReason::Status => "status",
            UncacheableReason::NoStore => "no-store",
            UncacheableReason::Private => "private",
            UncacheableReason::Authorization => "authorization",
            UncacheableReason::SetCookie => "set-cookie",
            UncacheableReason::VaryStar => "vary-star",
            UncacheableReason::VaryLong => "vary-long",
            UncacheableReason::NoLifetime => "no-lifetime",
            UncacheableReason::TooLarge => "too-large",
        }
    }
}

/// The reason why a cached response could not be used without revalidation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevalidationReason {
    /// The response is stale.
    Expired,
    /// The response is stale, and `must-revalidate`, `proxy-revalidate` or `s-maxage` forbids its
    /// use.
    MustRevalidate,
    /// The response contains `no-cache`.
    NoCache,
    /// The request contains `no-cache`.
    RequestNoCache,
    /// The response is older than the request's `max-age`.
    RequestMaxAge,
    /// The remaining freshness of the response is shorter than the request's `min-fresh`.
    RequestMinFresh,
    /// A soft purge marked the response for revalidation.
    Purged,
}

impl RevalidationReason {
    /// Returns the name in records, metrics and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            RevalidationReason::Expired => "expired",
            RevalidationReason::MustRevalidate => "must-revalidate",
            RevalidationReason::NoCache => "no-cache",
            RevalidationReason::RequestNoCache => "request-no-cache",
            RevalidationReason::RequestMaxAge => "request-max-age",
            RevalidationReason::RequestMinFresh => "request-min-fresh",
            RevalidationReason::Purged => "purged",
        }
    }
}

/// The reason why a request bypassed the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassReason {
    /// The method is neither `GET` nor `HEAD`, or it is `HEAD` and no cached object can be used.
    Method,
    /// The request contains `no-store`.
    RequestNoStore,
    /// Within the last ten seconds, a response for this URL was not shareable.
    Unshareable,
    /// This request joined a fetch whose response was not shareable, or several lookups in a row
    /// gave no response that this request can use.
    NotShared,
    /// The object is too large to be stored as a whole, and cannot be stored in blocks.
    TooLarge,
    /// A rule with `pass` matched.
    Rule,
    /// The request contains a cookie, and the setting `cookies` is `pass`.
    Cookie,
}

impl PassReason {
    /// Returns the name in records, metrics and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            PassReason::Method => "method",
            PassReason::RequestNoStore => "request-no-store",
            PassReason::Unshareable => "apart",
            PassReason::NotShared => "not-shared",
            PassReason::TooLarge => "too-large",
            PassReason::Rule => "rule",
            PassReason::Cookie => "cookie",
        }
    }
}

/// The reason why a stale response was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// The response allows stale use during a revalidation in the background (RFC 5861 section 3).
    WhileRevalidate,
    /// The origin failed. The response, the request or the setting `stale-if-error` allows stale
    /// use in this case (RFC 5861 section 4).
    IfError,
    /// The request accepts this staleness (`max-stale`).
    Request,
}

impl StaleReason {
    /// Returns the name in records, metrics and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            StaleReason::WhileRevalidate => "stale-while-revalidate",
            StaleReason::IfError => "stale-if-error",
            StaleReason::Request => "request-max-stale",
        }
    }
}

/// The reason why a request needed the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissReason {
    /// Nothing is cached for this URL.
    Absent,
    /// The URL is cached, but not for this request's values of the headers in `Vary`.
    Variant,
    /// A cached response exists but needs revalidation.
    Revalidation(RevalidationReason),
}

impl MissReason {
    /// Returns the name in records, metrics and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            MissReason::Absent => "absent",
            MissReason::Variant => "variant",
            MissReason::Revalidation(reason) => reason.name(),
        }
    }
}

/// The way in which the cache handled a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheOutcome {
    /// A fresh object in memory was served.
    Hit,
    /// A fresh object was served, and its body is on disk.
    DiskHit,
    /// A stale object was served.
    Stale(StaleReason),
    /// The origin confirmed the cached object with a 304. If the 304 forbade further storage of the
    /// object, the second field contains the reason.
    Revalidated(RevalidationReason, Option<UncacheableReason>),
    /// The request joined another request's fetch.
    Follow(MissReason),
    /// The request led a fetch. If the response was not stored, the second field contains the
    /// reason.
    Miss(MissReason, Option<UncacheableReason>),
    /// The request bypassed the cache.
    Pass(PassReason),
    /// A rule with `deny` matched.
    Denied,
    /// The edge generated the response itself, for example for a health check or a rejected
    /// request.
    Local,
}

/// Name of the result for responses that the edge generates itself.
pub const LOCAL_RESULT: &str = "own";

/// The names of all results, in the order of [`CacheOutcome::result_index`].
pub const CACHE_RESULTS: &[&str] = &[
    "hit",
    "stale",
    "revalidated",
    "follow",
    "miss",
    "pass",
    "denied",
    LOCAL_RESULT,
];

impl CacheOutcome {
    /// Returns the value of the metric label `result` and of the record field `cache`.
    pub fn result_label(self) -> &'static str {
        CACHE_RESULTS
            .get(self.result_index())
            .copied()
            .unwrap_or(LOCAL_RESULT)
    }

    /// Returns the index of the result in [`CACHE_RESULTS`].
    pub fn result_index(self) -> usize {
        match self {
            CacheOutcome::Hit | CacheOutcome::DiskHit => 0,
            CacheOutcome::Stale(_) => 1,
            CacheOutcome::Revalidated(..) => 2,
            CacheOutcome::Follow(_) => 3,
            CacheOutcome::Miss(..) => 4,
            CacheOutcome::Pass(_) => 5,
            CacheOutcome::Denied => 6,
            CacheOutcome::Local => 7,
        }
    }

    /// Returns the value of the metric label `reason` and of the record field `reason`.
    pub fn reason_label(self) -> &'static str {
        match self {
            CacheOutcome::Hit => "fresh",
            CacheOutcome::DiskHit => "disk",
            CacheOutcome::Stale(reason) => reason.name(),
            CacheOutcome::Revalidated(reason, _) => reason.name(),
            CacheOutcome::Follow(reason) | CacheOutcome::Miss(reason, _) => reason.name(),
            CacheOutcome::Pass(reason) => reason.name(),
            CacheOutcome::Denied => "rule",
            CacheOutcome::Local => "own",
        }
    }

    /// Formats the edge's member of `Cache-Status` (RFC 9211). `ttl_s` is the remaining freshness
    /// in seconds, and `status` is the status that the origin sent.
    pub fn cache_status(self, ttl_s: Option<i64>, status: Option<u16>) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(64);
        text.push_str(NAME);
        let forward = match self {
            CacheOutcome::Hit | CacheOutcome::DiskHit | CacheOutcome::Stale(_) => {
                text.push_str("; hit");
                None
            }
            CacheOutcome::Revalidated(reason, _) => {
                Some(forward_reason(MissReason::Revalidation(reason)))
            }
            CacheOutcome::Follow(reason) | CacheOutcome::Miss(reason, _) => {
                Some(forward_reason(reason))
            }
            CacheOutcome::Pass(PassReason::Method) => Some("method"),
            CacheOutcome::Pass(PassReason::RequestNoStore) => Some("request"),
            CacheOutcome::Pass(_) => Some("bypass"),
            CacheOutcome::Denied | CacheOutcome::Local => None,
        };
        // Writing to a string cannot fail.
        if let Some(forward) = forward {
            let _ = write!(text, "; fwd={forward}");
            if let Some(status) = status {
                let _ = write!(text, "; fwd-status={status}");
            }
        }
        if let Some(ttl) = ttl_s {
            let _ = write!(text, "; ttl={ttl}");
        }
        match self {
            CacheOutcome::Follow(_) => text.push_str("; collapsed"),
            CacheOutcome::Miss(_, None) | CacheOutcome::Revalidated(_, None) => {
                text.push_str("; stored");
            }
            _ => {}
        }
        let detail = match self {
            CacheOutcome::Miss(_, Some(uncacheable))
            | CacheOutcome::Revalidated(_, Some(uncacheable)) => uncacheable.name(),
            _ => self.reason_label(),
        };
        let _ = write!(text, "; detail={detail}");
        text
    }
}

/// The edge's name in `Cache-Status` and `Via`.
pub const NAME: &str = "headwater";

/// Returns the value of the `fwd` parameter (RFC 9211 section 2.2).
fn forward_reason(reason: MissReason) -> &'static str {
    match reason {
        MissReason::Absent => "uri-miss",
        MissReason::Variant => "vary-miss",
        MissReason::Revalidation(
            RevalidationReason::RequestNoCache
            | RevalidationReason::RequestMaxAge
            | RevalidationReason::RequestMinFresh,
        ) => "request",
        MissReason::Revalidation(_) => "stale",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_status_follows_the_standard() {
        for (outcome, ttl, status, expected) in [
            (
                CacheOutcome::Hit,
                Some(30),
                None,
                "headwater; hit; ttl=30; detail=fresh",
            ),
            (
                CacheOutcome::Stale(StaleReason::IfError),
                Some(-3),
                None,
                "headwater; hit; ttl=-3; detail=stale-if-error",
            ),
            (
                CacheOutcome::Miss(MissReason::Absent, None),
                Some(60),
                Some(200),
                "headwater; fwd=uri-miss; fwd-status=200; ttl=60; stored; detail=absent",
            ),
            (
                CacheOutcome::Miss(MissReason::Variant, Some(UncacheableReason::Private)),
                None,
                Some(200),
                "headwater; fwd=vary-miss; fwd-status=200; detail=private",
            ),
            (
                CacheOutcome::Follow(MissReason::Absent),
                Some(60),
                None,
                "headwater; fwd=uri-miss; ttl=60; collapsed; detail=absent",
            ),
            (
                CacheOutcome::Revalidated(RevalidationReason::Expired, None),
                Some(9),
                Some(304),
                "headwater; fwd=stale; fwd-status=304; ttl=9; stored; detail=expired",
            ),
            // The object was removed from the cache, so it is not reported as stored (RFC 9211
            // section 2.5).
            (
                CacheOutcome::Revalidated(
                    RevalidationReason::Expired,
                    Some(UncacheableReason::SetCookie),
                ),
                None,
                Some(304),
                "headwater; fwd=stale; fwd-status=304; detail=set-cookie",
            ),
            (
                CacheOutcome::Pass(PassReason::Method),
                None,
                Some(204),
                "headwater; fwd=method; fwd-status=204; detail=method",
            ),
        ] {
            assert_eq!(outcome.cache_status(ttl, status), expected);
        }
    }
}
