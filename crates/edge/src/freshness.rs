//! RFC 9111 as pure functions. They decide whether a response may be stored, how long it is fresh,
//! and whether a stored response may be used.
//!
//! The functions take headers and times, and return a decision with its reason. If the standard
//! allows several behaviors, the tests document our choice.

mod dictionary;
mod directives;
mod reuse;
mod storage;

pub use directives::CacheDirectives;
pub use reuse::{ReuseDecision, allows_stale_on_error, judge_reuse};
pub use storage::{
    FreshnessLifetime, FreshnessPolicy, LifetimeSource, StorageFacts, judge_storage,
};

#[cfg(test)]
mod tests;
