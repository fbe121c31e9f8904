//! Limits on the requests per second of one client address and of one network.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;

use super::Limits;
use crate::Error;
use crate::metrics::{CounterFamily, MetricSpec, Metrics};

const REFUSED: MetricSpec = MetricSpec {
    name: "requests_refused",
    unit: "",
    help: "Requests refused with 429, by the limit reached",
};

/// Prefix lengths for IPv4 and IPv6. `ADDRESS_BITS` identifies a client, and `NETWORK_BITS`
/// identifies a network. One IPv6 client owns all addresses of a /64.
const ADDRESS_BITS: (u32, u32) = (32, 64);
const NETWORK_BITS: (u32, u32) = (24, 48);

/// Measures the request rates of a server's clients and enforces the limits.
#[derive(Debug)]
pub(super) struct RequestRateLimiter {
    start: Instant,
    addresses: Option<RateTable>,
    networks: Option<RateTable>,
    refused: CounterFamily,
}

impl RequestRateLimiter {
    pub(super) fn new(limits: &Limits, metrics: &Metrics) -> RequestRateLimiter {
        let table = |per_s| RateTable::new(per_s, limits.request_burst);
        RequestRateLimiter {
            start: Instant::now(),
            addresses: table(limits.requests_per_address_max),
            networks: table(limits.requests_per_network_max),
            refused: metrics
                .counter_family(&REFUSED, &["limit"])
                .with_initialized_counters(&["address", "network"]),
        }
    }

    /// Counts a request of a client. Returns an error if the client or the client's network exceeds
    /// its rate limit.
    pub(super) fn admit_request(&self, client: IpAddr) -> Option<Error> {
        if self.addresses.is_none() && self.networks.is_none() {
            return None;
        }
        let now = self.start.elapsed();
        let exceeds = |table: &Option<RateTable>, bits| {
            let table = table.as_ref()?;
            (!table.take_token(network_prefix(client, bits), now)).then_some(table.per_s)
        };
        let (limit, per_s) = match exceeds(&self.addresses, ADDRESS_BITS) {
            Some(per_s) => ("address", per_s),
            None => ("network", exceeds(&self.networks, NETWORK_BITS)?),
        };
        self.refused.with_labels(&[limit]).inc();
        let what = format_args!("more than {per_s} requests per second from one {limit}");
        // The client may retry after one second, because each rate is at least one request per
        // second.
        Some(Error::new_client_error(StatusCode::TOO_MANY_REQUESTS, what).with_retryable(true))
    }
}

/// Number of sets in a table. With eight buckets in each set, a table has 65,536 buckets and needs
/// 2.2 MB.
const SETS: usize = 8192;
const BUCKETS_PER_SET: usize = 8;

/// Token buckets in a table of fixed size.
///
/// If all buckets of a set are in use, a new client takes over the fullest bucket. The former
/// client of this bucket gets a new bucket later. The table therefore never refuses a client
/// because of other clients.
#[derive(Debug)]
struct RateTable {
    per_s: u32,
    /// Time after which one token is added.
    interval: Duration,
    /// Time after which an empty bucket is full.
    fill_time: Duration,
    hasher: RandomState,
    sets: Box<[Mutex<[TokenBucket; BUCKETS_PER_SET]>]>,
}

/// One client's bucket.
#[derive(Debug, Default, Clone, Copy)]
struct TokenBucket {
    client: u128,
    /// Time at which the bucket is full again, measured from the start of the limiter. An unused
    /// bucket is full.
    full_at: Duration,
}

impl RateTable {
    fn new(per_s: u32, burst: Duration) -> Option<RateTable> {
        let interval = Duration::from_secs(1).checked_div(per_s)?;
        let sets = (0..SETS).map(|_| Mutex::default());
        Some(RateTable {
            per_s,
            interval,
            fill_time: burst.max(interval),
            hasher: RandomState::new(),
            sets: sets.collect(),
        })
    }

    /// Takes a token from the client's bucket. Returns `false` if the bucket is empty.
    fn take_token(&self, client: u128, now: Duration) -> bool {
        // The hash function has a secret key, so a client cannot choose its set.
        let hash = usize::try_from(self.hasher.hash_one(client) % SETS as u64);
        let Some(set) = hash.ok().and_then(|at| self.sets.get(at)) else {
            return true;
        };
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        let fullest = |set: &mut [TokenBucket]| {
            let buckets = set.iter().enumerate();
            buckets
                .min_by_key(|(_, bucket)| bucket.full_at)
                .map(|(at, _)| at)
        };
        let existing = set.iter().position(|bucket| bucket.client == client);
        let Some(bucket) = existing
            .or_else(|| fullest(&mut *set))
            .and_then(|at| set.get_mut(at))
        else {
            return true;
        };
        if bucket.client != client {
            *bucket = TokenBucket {
                client,
                full_at: now,
            };
        }
        let full_at = bucket.full_at.max(now) + self.interval;
        let has_token = full_at - now <= self.fill_time;
        if has_token {
            bucket.full_at = full_at;
        }
        has_token
    }
}

/// Returns the network prefix of an address as a key of the table. IPv4 addresses are mapped to
/// IPv6 addresses.
fn network_prefix(address: IpAddr, (v4_bits, v6_bits): (u32, u32)) -> u128 {
    let mask = |bits: u32, width: u32| u128::MAX.checked_shl(width - bits).unwrap_or(0);
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let mapped = Ipv4Addr::to_ipv6_mapped(&v4);
            Ipv6Addr::to_bits(mapped) & mask(v4_bits, 32)
        }
        IpAddr::V6(v6) => v6.to_bits() & mask(v6_bits, 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_bucket_empties_and_fills() {
        let table = RateTable::new(10, Duration::from_secs(2)).unwrap();
        let at = Duration::from_millis;
        for _ in 0..20 {
            assert!(table.take_token(1, at(0)));
        }
        assert!(!table.take_token(1, at(0)));
        assert!(!table.take_token(1, at(99)));
        assert!(table.take_token(2, at(99)), "others have their own bucket");
        assert!(table.take_token(1, at(100)));
        assert!(!table.take_token(1, at(100)));
        let later = (0..30).filter(|_| table.take_token(1, at(60_000))).count();
        assert_eq!(later, 20, "tokens beyond the burst are lost");
        assert!(RateTable::new(0, Duration::from_secs(2)).is_none());
        let single = RateTable::new(1, Duration::ZERO).unwrap();
        assert!(single.take_token(1, at(0)) && !single.take_token(1, at(0)));
    }

    #[test]
    fn many_clients_do_not_reset_an_exhausted_bucket_nor_share_one() {
        let table = RateTable::new(1, Duration::from_secs(8)).unwrap();
        let now = Duration::from_secs(100);
        for _ in 0..8 {
            assert!(table.take_token(1, now));
        }
        for client in 2..200_000 {
            assert!(table.take_token(client, now), "{client}");
        }
        assert!(!table.take_token(1, now));
    }

    #[test]
    fn prefixes_are_those_of_clients_and_networks() {
        let of = |text, bits| network_prefix(address(text), bits);
        assert_eq!(
            of("2001:db8::1", ADDRESS_BITS),
            of("2001:db8::2:3", ADDRESS_BITS)
        );
        assert_ne!(
            of("2001:db8:0:1::1", ADDRESS_BITS),
            of("2001:db8::1", ADDRESS_BITS)
        );
        assert_eq!(
            of("2001:db8:0:1::1", NETWORK_BITS),
            of("2001:db8::1", NETWORK_BITS)
        );
        assert_ne!(of("10.0.0.1", ADDRESS_BITS), of("10.0.0.2", ADDRESS_BITS));
        assert_eq!(
            of("10.0.0.1", NETWORK_BITS),
            of("::ffff:10.0.0.2", NETWORK_BITS)
        );
        assert_ne!(of("10.0.0.1", NETWORK_BITS), of("10.0.1.1", NETWORK_BITS));
    }
}
