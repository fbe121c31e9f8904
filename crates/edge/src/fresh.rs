//! RFC 9111 as functions: may an answer be kept, for how long, and may a kept one be used?
//!
//! Pure: headers and times in, a verdict with its reason out. What we decide where the standard
//! leaves a choice is said beside each test.

// Said so that the fuzz target finds them too, which takes this folder alone.
#[path = "fresh/directives.rs"]
mod directives;
#[path = "fresh/keep.rs"]
mod keep;
#[path = "fresh/reuse.rs"]
mod reuse;

pub use directives::Directives;
pub use keep::{Asked, Lifetime, Policy, Source, keep};
pub use reuse::{Use, judge, serves_error};

#[cfg(test)]
mod tests;
