//! RFC 9111 as pure functions: may a response be stored, how long is it fresh, and may a stored one
//! be used?
//!
//! The functions take headers and times, and return a decision with its reason. Where the standard
//! allows several behaviors, the tests document our choice.

mod dictionary;
mod directives;
mod reuse;
mod storage;

pub use directives::CacheDirectives;
pub use reuse::{ReuseDecision, allows_stale_on_error, judge_reuse};
pub use storage::{
    ExchangeFacts, FreshnessLifetime, FreshnessPolicy, LifetimeSource, judge_storage,
};

#[cfg(test)]
mod tests;
