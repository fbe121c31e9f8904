//! A link of a run, emulated by this process or by the kernel.

use crate::link::{NetemLink, TunLink};
use std::io;
use std::net::Ipv4Addr;

/// A link of one of the two emulators.
pub(super) enum RunLink {
    Tun(Box<TunLink>),
    Netem(Box<NetemLink>),
}

impl RunLink {
    /// Returns the addresses of the first and the second end.
    pub(super) fn addresses(&self) -> [Ipv4Addr; 2] {
        match self {
            RunLink::Tun(link) => link.addresses(),
            RunLink::Netem(link) => link.addresses(),
        }
    }

    /// Reads the counters, in the order of [`super::check::LINK_QUANTITIES`].
    pub(super) fn counts(&self) -> io::Result<[u64; 4]> {
        match self {
            RunLink::Tun(link) => {
                let report = link.report();
                let (down, up) = (&report.down, &report.up);
                let lost = [down.lost + up.lost, down.dropped + up.dropped];
                Ok([lost[0], lost[1], down.delivered_bytes, up.delivered_bytes])
            }
            RunLink::Netem(link) => {
                let [up, down] = link.read_sent_counters()?;
                let lost = [down.lost + up.lost, down.dropped + up.dropped];
                Ok([lost[0], lost[1], down.bytes, up.bytes])
            }
        }
    }

    /// Returns the 99th percentile of the lateness in microseconds. Returns `None` for netem, which
    /// does not report its lateness.
    pub(super) fn late_us(&self) -> Option<u64> {
        match self {
            RunLink::Tun(link) => Some(link.report().lateness_us.p99),
            RunLink::Netem(_) => None,
        }
    }
}
