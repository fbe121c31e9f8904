//! Keeping what was fetched near: whole objects in memory, and one fetch a key.
//!
//! This folder imports nothing from its neighbours. A body is a [`Growing`] from its first byte:
//! whoever fetches it appends, any number of readers follow, and when it is whole it may enter
//! [`Memory`]. [`Flights`] sees to it that one key has one fetch.

mod flight;
mod growing;
mod memory;

pub use flight::{Flight, Flights, Follow, Joined, Lead};
pub use growing::{Broken, Growing, Reader};
pub use memory::{Memory, Told, Weigh};
