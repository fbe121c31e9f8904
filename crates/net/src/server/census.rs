//! Who is connected: bounds in all and per address, and the counters.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::Limits;
use crate::metrics::{Counter, Family, Gauge, Metrics, Row};

const OPENED: Row = Row {
    name: "connections_opened",
    unit: "",
    help: "Connections accepted",
};
const OPEN: Row = Row {
    name: "connections_open",
    unit: "",
    help: "Connections open now",
};
const REFUSED: Row = Row {
    name: "connections_refused",
    unit: "",
    help: "Connections refused, by the limit reached",
};
const CUT: Row = Row {
    name: "connections_cut",
    unit: "",
    help: "Connections cut, by what their client was too slow for",
};

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Census {
    state: Arc<State>,
    opened: Counter,
    refused: Family,
    pub(super) cut: Family,
}

#[derive(Debug)]
struct State {
    max: usize,
    max_per_address: usize,
    ids: AtomicU64,
    total: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    open: Gauge,
}

/// One connection's place; dropping it makes room.
#[derive(Debug)]
pub(super) struct Seat {
    state: Arc<State>,
    address: IpAddr,
    pub(super) id: u64,
}

impl Census {
    pub(super) fn new(limits: &Limits, metrics: &Metrics) -> Census {
        let state = State {
            max: limits.connections_max,
            max_per_address: limits.connections_per_address_max,
            ids: AtomicU64::new(0),
            total: AtomicUsize::new(0),
            by_address: Mutex::default(),
            open: metrics.gauge(&OPEN),
        };
        Census {
            state: Arc::new(state),
            opened: metrics.counter(&OPENED),
            refused: metrics.family(&REFUSED, &["limit"]),
            cut: metrics.family(&CUT, &["reason"]),
        }
    }

    /// A place for one more, unless a limit is reached. A trusted balancer's address speaks for
    /// many clients: only the limit in all holds for it.
    pub(super) fn seat(&self, address: IpAddr, speaks_for_many: bool) -> Option<Seat> {
        let address = party(address);
        let max = if speaks_for_many {
            self.state.max
        } else {
            self.state.max_per_address
        };
        let refused = self.state.take(address, max);
        if let Some(limit) = refused {
            self.refused.of(&[limit]).inc();
            return None;
        }
        self.opened.inc();
        self.state.open.inc();
        let id = self.state.ids.fetch_add(1, Relaxed) + 1;
        Some(Seat {
            state: Arc::clone(&self.state),
            address,
            id,
        })
    }
}

impl State {
    /// Takes a place, or says which limit forbids it.
    fn take(&self, address: IpAddr, max_per_address: usize) -> Option<&'static str> {
        if self.total.fetch_add(1, Relaxed) >= self.max {
            self.total.fetch_sub(1, Relaxed);
            return Some("total");
        }
        let mut by_address = self
            .by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_insert(0);
        if *count >= max_per_address {
            self.total.fetch_sub(1, Relaxed);
            return Some("address");
        }
        *count += 1;
        None
    }
}

impl Drop for Seat {
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

/// Whom an address counts for: an IPv6 client owns a whole /64.
fn party(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(max: usize, per_address: usize) -> Census {
        let limits = Limits {
            connections_max: max,
            connections_per_address_max: per_address,
            ..Limits::default()
        };
        Census::new(&limits, &Metrics::new())
    }

    #[test]
    fn seats_are_bounded_and_come_free_again() {
        let census = census(3, 2);
        let [a, b]: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let held = (
            census.seat(a, false).unwrap(),
            census.seat(a, false).unwrap(),
        );
        assert!(census.seat(a, false).is_none(), "per address");
        let other = census.seat(b, false).unwrap();
        assert!(census.seat(b, false).is_none(), "in all");
        assert!(
            State::take(&census.state, party(a), 3).is_some(),
            "in all, even for a balancer"
        );
        drop(held);
        assert!(census.seat(a, false).is_some());
        drop(other);
        assert!(census.state.by_address.lock().unwrap().is_empty());
        assert_eq!(census.state.total.load(Relaxed), 0);
    }

    #[test]
    fn an_ipv6_network_is_one_party_and_mapped_ipv4_its_own() {
        let of = |text: &str| party(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
