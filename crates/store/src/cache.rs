//! A cache for whole objects in memory, with one fetch per key.
//!
//! This folder imports nothing from the other modules of the crate. A body is a [`GrowingBody`]
//! from its first byte: the fetch appends to it, any number of readers read it meanwhile, and a
//! complete body may be stored in [`MemoryCache`]. [`FetchTable`] makes sure that one key has one
//! fetch.

mod fetch_table;
mod growing_body;
mod memory_cache;

pub use fetch_table::{FetchFollower, FetchLeader, FetchTable, FetchTicket, SharedFetch};
pub use growing_body::{BodyFailure, GrowingBody, GrowingReader};
pub use memory_cache::{EvictionListener, MemoryCache, MemoryWeight};
