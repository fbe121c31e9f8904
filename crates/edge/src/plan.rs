//! What to do with a request, from what is kept and what the request says. Pure.

use std::time::{Duration, Instant};

use http::Method;

use crate::entry::Entry;
use crate::fresh::{Directives, Use, judge};
use crate::reason::{Asking, Passing, Stale, Why};

/// What to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Use what is kept.
    Hit,
    /// Use what is kept though it is stale; and ask for it anew meanwhile, if so.
    Stale(Stale),
    /// Ask the origin, together with whoever else asks.
    Fetch(Why),
    /// The same, but alone if somebody else asks already: answers were not to be shared lately. One
    /// that may be kept ends that.
    FetchApart,
    /// Ask the origin for this request alone.
    Pass(Passing),
    /// The client wants only what is kept, and it is not: 504 (RFC 9111 section 5.2.1.7).
    Refuse,
}

/// Decides. `found` is what is kept for the key, `variants` whether there are other variants of it,
/// `resident` how long it has been here.
pub fn plan(
    method: &Method,
    said: &Directives,
    found: Option<&Entry>,
    variants: bool,
    resident: impl Fn(&crate::object::Object) -> Duration,
) -> Plan {
    let absent = match found {
        Some(Entry::Object(object)) => {
            let soft = object.purged.load(std::sync::atomic::Ordering::Relaxed);
            match judge(&object.lifetime, resident(object), said) {
                _ if soft => Plan::Fetch(Why::Kept(Asking::Purged)),
                Use::Fresh => return Plan::Hit,
                Use::WhileRevalidate => return Plan::Stale(Stale::WhileRevalidate),
                Use::Stale => return Plan::Stale(Stale::Request),
                Use::Ask(asking) => Plan::Fetch(Why::Kept(asking)),
            }
        }
        Some(Entry::Apart { until, wholly }) if *until > Instant::now() => {
            if *wholly {
                Plan::Pass(Passing::Apart)
            } else {
                Plan::FetchApart
            }
        }
        _ if variants => Plan::Fetch(Why::Variant),
        _ => Plan::Fetch(Why::Absent),
    };
    if said.only_if_cached {
        Plan::Refuse
    } else if method != Method::GET {
        Plan::Pass(Passing::Method)
    } else if said.no_store {
        Plan::Pass(Passing::RequestNoStore)
    } else {
        absent
    }
}
