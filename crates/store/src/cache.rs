//! A cache for whole objects in memory, with at most one running fetch per key.
//!
//! The modules in this folder import nothing from the other modules of the crate. Each body is a
//! [`GrowingBody`], both while its bytes are being received and after it is complete. The fetch
//! appends bytes to the body, and any number of readers can read these bytes at the same time. A
//! complete body may be stored in [`MemoryCache`]. [`FetchTable`] ensures that a key has at most
//! one running fetch.

mod fetch_table;
mod growing_body;
mod memory_cache;

pub use fetch_table::{FetchFollower, FetchLeader, FetchTable, LeadOrFollow};
pub use growing_body::{BodyFailure, GrowingBody, GrowingReader};
pub use memory_cache::{EvictionListener, MemoryCache, MemoryWeight};
