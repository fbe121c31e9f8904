//! Why each request ended as it did: one name each, in the record, the metric and `Cache-Status`.

/// Why an answer was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKept {
    /// Only answers to GET are.
    Method,
    /// Its status says nothing about caching, or is not one that can be kept.
    Status,
    /// `no-store`.
    NoStore,
    /// `private`.
    Private,
    /// The request was authorized, and the answer does not say that it is for all.
    Authorization,
    /// `Set-Cookie`.
    SetCookie,
    /// `Vary: *`.
    VaryStar,
    /// It varies by more text than a variant is named with.
    VaryLong,
    /// Stale at once, and nothing to ask the origin with later.
    NoLifetime,
    /// Longer than an object may be.
    TooLarge,
    /// The origin broke off.
    Cut,
    /// Purged while it was fetched.
    Purged,
}

impl NotKept {
    /// As written down.
    pub fn name(self) -> &'static str {
        match self {
            NotKept::Method => "method",
            NotKept::Status => "status",
            NotKept::NoStore => "no-store",
            NotKept::Private => "private",
            NotKept::Authorization => "authorization",
            NotKept::SetCookie => "set-cookie",
            NotKept::VaryStar => "vary-star",
            NotKept::VaryLong => "vary-long",
            NotKept::NoLifetime => "no-lifetime",
            NotKept::TooLarge => "too-large",
            NotKept::Cut => "cut",
            NotKept::Purged => "purged",
        }
    }
}

/// Why a kept answer was not used without asking the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// It is stale.
    Expired,
    /// It is stale, and must not be used so.
    MustRevalidate,
    /// It says `no-cache`.
    NoCache,
    /// The client says `no-cache`.
    RequestNoCache,
    /// It is older than the client wants.
    RequestMaxAge,
    /// It is not fresh for as long as the client wants.
    RequestMinFresh,
    /// It was purged softly.
    Purged,
}

impl Asking {
    /// As written down.
    pub fn name(self) -> &'static str {
        match self {
            Asking::Expired => "expired",
            Asking::MustRevalidate => "must-revalidate",
            Asking::NoCache => "no-cache",
            Asking::RequestNoCache => "request-no-cache",
            Asking::RequestMaxAge => "request-max-age",
            Asking::RequestMinFresh => "request-min-fresh",
            Asking::Purged => "purged",
        }
    }
}

/// Why a request is passed on without the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Not GET, and nothing kept answers it.
    Method,
    /// The client says `no-store`.
    RequestNoStore,
    /// An answer to the same URL was not to be shared a moment ago.
    Apart,
    /// The fetch that this request followed was not to be shared.
    NotShared,
    /// A range of something that is longer than what is kept.
    TooLarge,
    /// A rule says so.
    Rule,
}

impl Passing {
    /// As written down.
    pub fn name(self) -> &'static str {
        match self {
            Passing::Method => "method",
            Passing::RequestNoStore => "request-no-store",
            Passing::Apart => "apart",
            Passing::NotShared => "not-shared",
            Passing::TooLarge => "too-large",
            Passing::Rule => "rule",
        }
    }
}

/// Why something stale was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// It is being asked for anew meanwhile (RFC 5861 section 3).
    WhileRevalidate,
    /// The origin failed (RFC 5861 section 4).
    IfError,
    /// The client said that it is good enough.
    Request,
}

impl Stale {
    /// As written down.
    pub fn name(self) -> &'static str {
        match self {
            Stale::WhileRevalidate => "stale-while-revalidate",
            Stale::IfError => "stale-if-error",
            Stale::Request => "request-max-stale",
        }
    }
}

/// Why the origin was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nothing is kept for this URL.
    Absent,
    /// Something is, but for other values of the headers it varies by.
    Variant,
    /// What is kept could not be used unasked.
    Kept(Asking),
}

impl Why {
    /// As written down.
    pub fn name(self) -> &'static str {
        match self {
            Why::Absent => "absent",
            Why::Variant => "variant",
            Why::Kept(asking) => asking.name(),
        }
    }
}

/// How a request ended, as far as the cache goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Kept and fresh.
    Hit,
    /// The same, its body on disk.
    Disk,
    /// Kept, and stale.
    Stale(Stale),
    /// Kept, and the origin said that it is still so.
    Revalidated(Asking),
    /// Somebody else's fetch.
    Follow(Why),
    /// Fetched; and why it is not kept, if it is not.
    Miss(Why, Option<NotKept>),
    /// Passed on.
    Pass(Passing),
    /// A rule denies it.
    Denied,
    /// Answered by the edge itself.
    Own,
}

impl Outcome {
    /// The metric's `result`, and the record's `cache`.
    pub fn result(self) -> &'static str {
        match self {
            Outcome::Hit | Outcome::Disk => "hit",
            Outcome::Stale(_) => "stale",
            Outcome::Revalidated(_) => "revalidated",
            Outcome::Follow(_) => "follow",
            Outcome::Miss(..) => "miss",
            Outcome::Pass(_) => "pass",
            Outcome::Denied => "denied",
            Outcome::Own => "own",
        }
    }

    /// The record's `reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Outcome::Hit => "fresh",
            Outcome::Disk => "disk",
            Outcome::Stale(stale) => stale.name(),
            Outcome::Revalidated(asking) => asking.name(),
            Outcome::Follow(why) | Outcome::Miss(why, _) => why.name(),
            Outcome::Pass(passing) => passing.name(),
            Outcome::Denied => "rule",
            Outcome::Own => "own",
        }
    }

    /// The member that we add to `Cache-Status` (RFC 9211); `ttl_s` is the freshness left, `status`
    /// what the origin said.
    pub fn cache_status(self, ttl_s: Option<i64>, status: Option<u16>) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(64);
        text.push_str(NAME);
        let forward = match self {
            Outcome::Hit | Outcome::Disk | Outcome::Stale(_) => {
                text.push_str("; hit");
                None
            }
            Outcome::Revalidated(asking) => Some(forward_of(Why::Kept(asking))),
            Outcome::Follow(why) | Outcome::Miss(why, _) => Some(forward_of(why)),
            Outcome::Pass(Passing::Method) => Some("method"),
            Outcome::Pass(Passing::RequestNoStore) => Some("request"),
            Outcome::Pass(_) => Some("bypass"),
            Outcome::Denied | Outcome::Own => None,
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
            Outcome::Follow(_) => text.push_str("; collapsed"),
            Outcome::Miss(_, None) | Outcome::Revalidated(_) => text.push_str("; stored"),
            _ => {}
        }
        let detail = match self {
            Outcome::Miss(_, Some(not_kept)) => not_kept.name(),
            _ => self.reason(),
        };
        let _ = write!(text, "; detail={detail}");
        text
    }
}

/// This cache's name in `Cache-Status` and `Via`.
pub const NAME: &str = "headwater";

/// RFC 9211 section 2.2.
fn forward_of(why: Why) -> &'static str {
    match why {
        Why::Absent => "uri-miss",
        Why::Variant => "vary-miss",
        Why::Kept(Asking::RequestNoCache | Asking::RequestMaxAge | Asking::RequestMinFresh) => {
            "request"
        }
        Why::Kept(_) => "stale",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_status_says_what_happened_in_the_standards_words() {
        for (outcome, ttl, status, expected) in [
            (
                Outcome::Hit,
                Some(30),
                None,
                "headwater; hit; ttl=30; detail=fresh",
            ),
            (
                Outcome::Stale(Stale::IfError),
                Some(-3),
                None,
                "headwater; hit; ttl=-3; detail=stale-if-error",
            ),
            (
                Outcome::Miss(Why::Absent, None),
                Some(60),
                Some(200),
                "headwater; fwd=uri-miss; fwd-status=200; ttl=60; stored; detail=absent",
            ),
            (
                Outcome::Miss(Why::Variant, Some(NotKept::Private)),
                None,
                Some(200),
                "headwater; fwd=vary-miss; fwd-status=200; detail=private",
            ),
            (
                Outcome::Follow(Why::Absent),
                Some(60),
                None,
                "headwater; fwd=uri-miss; ttl=60; collapsed; detail=absent",
            ),
            (
                Outcome::Revalidated(Asking::Expired),
                Some(9),
                Some(304),
                "headwater; fwd=stale; fwd-status=304; ttl=9; stored; detail=expired",
            ),
            (
                Outcome::Pass(Passing::Method),
                None,
                Some(204),
                "headwater; fwd=method; fwd-status=204; detail=method",
            ),
        ] {
            assert_eq!(outcome.cache_status(ttl, status), expected);
        }
    }
}
