//! A link of a run, by whoever emulates it.

use crate::link::{Link, Netem};
use std::net::Ipv4Addr;

/// A link.
pub(super) enum Joint {
    Ours(Box<Link>),
    Netem(Box<Netem>),
}

impl Joint {
    /// Of the first place's end, and of the second's.
    pub(super) fn addresses(&self) -> [Ipv4Addr; 2] {
        match self {
            Joint::Ours(link) => link.addresses(),
            Joint::Netem(link) => link.addresses(),
        }
    }

    /// What it has done so far, in the order of [`super::check::OF_LINKS`].
    pub(super) fn counts(&self) -> Result<[u64; 4], String> {
        match self {
            Joint::Ours(link) => {
                let report = link.report();
                let (down, up) = (&report.down, &report.up);
                let lost = [down.lost + up.lost, down.dropped + up.dropped];
                Ok([lost[0], lost[1], down.delivered_bytes, up.delivered_bytes])
            }
            Joint::Netem(link) => {
                let [up, down] = link.sent().map_err(|error| error.to_string())?;
                let lost = [down.lost + up.lost, down.dropped + up.dropped];
                Ok([lost[0], lost[1], down.bytes, up.bytes])
            }
        }
    }

    /// 99th percentile of its lateness, in microseconds; the kernel does not say its own.
    pub(super) fn late_us(&self) -> Option<u64> {
        match self {
            Joint::Ours(link) => Some(link.report().lateness_us.p99),
            Joint::Netem(_) => None,
        }
    }
}
