//! Limits on open connections, in total and per client address, and counters of connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::Limits;
use crate::metrics::{Counter, CounterFamily, Gauge, MetricSpec, Metrics};

const OPENED: MetricSpec = MetricSpec {
    name: "connections_opened",
    unit: "",
    help: "Connections accepted",
};
const OPEN: MetricSpec = MetricSpec {
    name: "connections_open",
    unit: "",
    help: "Connections open now",
};
const REFUSED: MetricSpec = MetricSpec {
    name: "connections_refused",
    unit: "",
    help: "Connections refused, by the limit reached",
};
const CUT: MetricSpec = MetricSpec {
    name: "connections_cut",
    unit: "",
    help: "Connections cut, by the timeout that their client exceeded",
};

/// Counts the connections of a server and enforces the connection limits.
#[derive(Debug)]
pub(super) struct ConnectionLimits {
    state: Arc<OpenConnectionCounts>,
    opened: Counter,
    refused: CounterFamily,
    pub(super) cut: CounterFamily,
}

#[derive(Debug)]
struct OpenConnectionCounts {
    max: usize,
    max_per_address: usize,
    ids: AtomicU64,
    total: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    open: Gauge,
}

/// The slot of one open connection. Dropping the value frees the slot.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    state: Arc<OpenConnectionCounts>,
    address: IpAddr,
    pub(super) id: u64,
}

impl ConnectionLimits {
    pub(super) fn new(limits: &Limits, metrics: &Metrics) -> ConnectionLimits {
        let state = OpenConnectionCounts {
            max: limits.connections_max,
            max_per_address: limits.connections_per_address_max,
            ids: AtomicU64::new(0),
            total: AtomicUsize::new(0),
            by_address: Mutex::default(),
            open: metrics.gauge(&OPEN),
        };
        ConnectionLimits {
            state: Arc::new(state),
            opened: metrics.counter(&OPENED),
            refused: metrics
                .counter_family(&REFUSED, &["limit"])
                .with_initialized_counters(&["total", "address"]),
            cut: metrics
                .counter_family(&CUT, &["reason"])
                .with_initialized_counters(&["header", "idle", "linger", "slow", "stalled"]),
        }
    }

    /// Takes a slot for a new connection. Returns `None` if a limit is reached.
    ///
    /// A trusted proxy's address represents many clients, so only the total limit applies to this
    /// address.
    pub(super) fn take_slot(
        &self,
        address: IpAddr,
        speaks_for_many: bool,
    ) -> Option<ConnectionSlot> {
        let address = client_network(address);
        let max = if speaks_for_many {
            self.state.max
        } else {
            self.state.max_per_address
        };
        let refused = self.state.count_within_limits(address, max);
        if let Some(limit) = refused {
            self.refused.with_labels(&[limit]).inc();
            return None;
        }
        self.opened.inc();
        self.state.open.inc();
        let id = self.state.ids.fetch_add(1, Relaxed) + 1;
        Some(ConnectionSlot {
            state: Arc::clone(&self.state),
            address,
            id,
        })
    }
}

impl OpenConnectionCounts {
    /// Counts a connection, or returns the name of the limit that the connection would exceed.
    fn count_within_limits(&self, address: IpAddr, max_per_address: usize) -> Option<&'static str> {
        if self.total.fetch_add(1, Relaxed) >= self.max {
            self.total.fetch_sub(1, Relaxed);
            return Some("total");
        }
        let mut by_address = self
            .by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = by_address.get(&address).copied().unwrap_or(0);
        if count >= max_per_address {
            self.total.fetch_sub(1, Relaxed);
            return Some("address");
        }
        by_address.insert(address, count + 1);
        None
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.state.open.dec();
        self.state.total.fetch_sub(1, Relaxed);
        let mut by_address = self
            .state
            .by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// Returns the network that counts as one client. For IPv6, this is a /64, because one client owns
/// all addresses of a /64.
fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_limits(max: usize, per_address: usize) -> ConnectionLimits {
        let limits = Limits {
            connections_max: max,
            connections_per_address_max: per_address,
            ..Limits::default()
        };
        ConnectionLimits::new(&limits, &Metrics::new())
    }

    #[test]
    fn slots_are_limited_and_freed() {
        let limits = test_limits(3, 2);
        let [a, b]: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let held = (
            limits.take_slot(a, false).unwrap(),
            limits.take_slot(a, false).unwrap(),
        );
        assert!(limits.take_slot(a, false).is_none(), "per address");
        let other = limits.take_slot(b, false).unwrap();
        assert!(limits.take_slot(b, false).is_none(), "in all");
        assert!(
            OpenConnectionCounts::count_within_limits(&limits.state, client_network(a), 3)
                .is_some(),
            "the total limit applies to a balancer too"
        );
        drop(held);
        assert!(limits.take_slot(a, false).is_some());
        drop(other);
        assert!(limits.state.by_address.lock().unwrap().is_empty());
        assert_eq!(limits.state.total.load(Relaxed), 0);
    }

    #[test]
    fn a_refused_address_uses_no_memory() {
        let limits = test_limits(3, 0);
        assert!(limits.take_slot([10, 0, 0, 1].into(), false).is_none());
        assert!(limits.state.by_address.lock().unwrap().is_empty());
    }

    #[test]
    fn an_ipv6_network_is_one_party_and_mapped_ipv4_its_own() {
        let of = |text: &str| client_network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
