//! Emulated links between network namespaces, in this process: no netem, no qdisc, no `ip`.
//!
//! A packet's journey: a program in a [`Namespace`] sends it into a TUN device; the link's thread
//! ([`Link`]) reads it, asks the direction's [`Pipe`] when and whether it arrives, and writes it
//! into the TUN device of the other namespace at that time. What the thread wrote late is in
//! [`Lateness`]: a measurement is as good as that. [`Guard`] ends whatever runs in the namespaces
//! when this process is gone, however it went; the namespaces end with their last process.
//!
//! `shape.rs`, `rate.rs`, `chance.rs` and `pipe.rs` only compute; all `unsafe` is in `kernel.rs`.

mod asked;
mod chance;
mod engine;
mod flow;
mod guard;
mod kernel;
mod lateness;
mod namespace;
mod netem;
mod pipe;
mod rate;
mod shape;
mod units;

pub use engine::{Link, Report};
pub use flow::Flow;
pub use guard::{Guard, stand};
pub use lateness::Lateness;
pub(crate) use namespace::enter;
pub(crate) use namespace::marked;
pub use namespace::{Namespace, available};
pub use netem::{Netem, Sent, netem_available};
pub use pipe::{Counts, Pipe};
pub use rate::{Rate, Step, Trace};
pub use shape::{Loss, MTU, Queue, Shape, Way};
pub use units::{fraction, loss, queue, rate};
