//! Emulated links between network namespaces. By default, this process emulates a link itself,
//! without netem, queueing disciplines or `ip`. `netem.rs` uses the kernel's emulator instead.
//!
//! A packet takes the following path. A program in a [`Namespace`](NetworkNamespace) sends the
//! packet into a TUN device. The link's thread ([`TunLink`]) reads the packet. The
//! [`DirectionModel`] decides whether and when the packet arrives. At that time, the thread writes
//! the packet into the TUN device of the other namespace. [`LatenessPercentiles`] reports how late
//! the thread was, which limits the accuracy of a measurement. [`CleanupGuard`] ends all processes
//! in the namespaces when it is dropped or when this process exits.
//!
//! `link_shape.rs`, `rate.rs`, `packet_randomness.rs` and `direction_model.rs` are pure computations
//! without system calls. All `unsafe` is in `system_calls.rs`.

mod cleanup_process;
mod competing_flow;
mod direction_model;
mod lateness;
mod link_settings;
mod link_shape;
mod namespace;
mod netem;
mod packet_randomness;
mod queue_and_loss;
mod rate;
mod system_calls;
mod tun_link;
mod unavailable_error;
mod units;

pub use cleanup_process::{CleanupGuard, run_cleanup_process};
pub use competing_flow::CompetingFlow;
pub use direction_model::{DirectionModel, PacketCounts};
pub use lateness::LatenessPercentiles;
pub use link_settings::{LinkSettingError, LinkSettingFault};
pub use link_shape::{DirectionShape, LinkShape, MTU};
#[cfg(feature = "nats")]
pub(crate) use namespace::check_process_marking_available;
pub(crate) use namespace::enter_network;
pub use namespace::{NetworkNamespace, check_links_available};
pub use netem::{NetemLink, SentCounters, check_netem_available};
pub use queue_and_loss::{LossModel, QueueSize};
pub use rate::{LinkRate, RateStep, RateTrace, RateTraceError, RateTraceLineFault};
pub use tun_link::{LinkReport, TunLink};
pub use unavailable_error::UnavailableError;
pub use units::{UnitError, parse_loss, parse_percentage, parse_queue_size, parse_rate};
