//! Experiments on several hosts: agents that meet on an ordinary NATS server.
//!
//! `headwater lab agent` is one of them (`serve.rs` listens, `work.rs` does what it is told), and
//! `headwater lab run --nats` tells them what to do (`fleet.rs` knows who is there, `conduct.rs`
//! carries one run out, `spread.rs` decides what runs where). They say to each other what is in
//! `protocol.rs`; NATS is only in `bus.rs`.
//!
//! An agent runs the commands of whoever may publish on its NATS: that is who may use it.

mod bus;
mod clock;
mod conduct;
mod fleet;
mod protocol;
mod serve;
mod spread;
mod work;

pub use bus::Meeting;
pub(crate) use bus::is_plain;
pub(crate) use conduct::conduct;
pub(crate) use fleet::Fleet;
pub(crate) use serve::{Myself, serve};
