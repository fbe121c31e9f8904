//! The resources of the origin, with their bodies and their caching policies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::random::{SeededRandom, mix};

/// The caching rules that the responses for a resource declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachingPolicy {
    /// Responses stay fresh for longer than a run.
    Lasting,
    /// Responses stay fresh for one second.
    Brief,
    /// Responses stay fresh for one second and have no validator.
    Untagged,
    /// Responses must be revalidated before each use.
    Revalidated,
    /// Responses stay fresh for one second. Stale responses may be used while the origin fails.
    StaleIfError,
    /// Responses stay fresh for longer than a run, and there is a variant for each language.
    Varying,
    /// Responses stay fresh for longer than a run. The edge stores their long bodies in blocks.
    Large,
    Unstored,
    Private,
    /// Responses stay fresh for longer than a run, and each sets a cookie.
    WithCookie,
}

use CachingPolicy::*;

/// Large resources are frequent, because most of the bugs in their handling occur only after
/// requests for several blocks.
pub const POLICIES: [CachingPolicy; 12] = [
    Large,
    Large,
    Lasting,
    Brief,
    Untagged,
    Revalidated,
    StaleIfError,
    Varying,
    Large,
    Unstored,
    Private,
    WithCookie,
];

/// Length of the shortest body. Ranges start below this offset, except in large resources.
pub const BODY_BYTES_MIN: u64 = 200;

/// Length of a resource that is stored in blocks.
pub const LARGE_BYTES: u64 = 2_500_000;

impl CachingPolicy {
    /// Returns the header lines of a response, without the validators.
    pub fn response_lines(self) -> &'static str {
        match self {
            Lasting | Large => "Cache-Control: max-age=600\r\n",
            Varying => "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n",
            Brief | Untagged => "Cache-Control: max-age=1\r\n",
            Revalidated => "Cache-Control: no-cache\r\n",
            StaleIfError => "Cache-Control: max-age=1, stale-if-error=600\r\n",
            Unstored => "Cache-Control: no-store\r\n",
            Private => "Cache-Control: private, max-age=600\r\n",
            WithCookie => "Cache-Control: max-age=600\r\nSet-Cookie: a=b\r\n",
        }
    }

    /// Returns the time for which a response may be used without contacting the origin.
    pub fn lifetime(self) -> Duration {
        match self {
            Lasting | Large | Varying => Duration::from_secs(600),
            Brief | Untagged | StaleIfError => Duration::from_secs(1),
            Revalidated | Unstored | Private | WithCookie => Duration::ZERO,
        }
    }

    /// Returns whether each response may be used for one client only.
    pub fn is_for_one_client(self) -> bool {
        matches!(self, Unstored | Private | WithCookie)
    }

    pub fn has_validator(self) -> bool {
        self != Untagged
    }
}

/// A resource of a run.
#[derive(Debug, Clone)]
pub struct Resource {
    pub path: String,
    pub policy: CachingPolicy,
    bodies: BodyCache,
}

/// Bodies by language and version.
type BodyCache = Arc<Mutex<HashMap<(String, u64), Arc<[u8]>>>>;

impl Resource {
    /// Returns the resource with this number in a run. The paths of resources 2n and 2n + 1 differ
    /// only in the query, if the resources have the same policy.
    pub fn new(number: usize, policy: CachingPolicy) -> Resource {
        Resource {
            path: format!("/{policy:?}/{}?{number}", number / 2),
            policy,
            bodies: BodyCache::default(),
        }
    }

    /// Returns the body of a version. Its bytes differ from the bytes of all other resources,
    /// languages and versions.
    pub fn body(&self, language: &str, version: u64) -> Arc<[u8]> {
        let mut bodies = self.bodies.lock().unwrap();
        let body = bodies.entry((language.to_owned(), version));
        body.or_insert_with(|| self.make_body(language, version))
            .clone()
    }

    fn make_body(&self, language: &str, version: u64) -> Arc<[u8]> {
        let name = format!("{} {language}", self.path);
        let mut random = SeededRandom::for_name(0, &name, version);
        let len = match self.policy {
            // The length is equal for all versions, so that only the validator distinguishes the
            // versions.
            Large => LARGE_BYTES,
            _ => BODY_BYTES_MIN + random.below(50_000),
        };
        let start = random.next();
        let mut body = Vec::new();
        for at in 0..len.div_ceil(8) {
            body.extend_from_slice(&mix(start ^ at).to_le_bytes());
        }
        body.truncate(usize::try_from(len).unwrap());
        body.into()
    }
}
