//! The ages of the sessions of each network. If a client invents sessions, sessions of the client's
//! own network are evicted.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::client_network::ClientNetwork;

/// The ages of all sessions by network. The age of a session is the sequence number of its latest
/// report, so the oldest session has the lowest number.
#[derive(Debug, Default)]
pub(super) struct SessionAgesByNetwork {
    ages: HashMap<ClientNetwork, BTreeSet<u64>>,
    by_size: BTreeSet<EvictionRank>,
}

/// Rank of a network for eviction. The network with the highest rank loses its oldest session. This
/// network has the most sessions. Among networks with equally many sessions, the network with the
/// oldest session has the highest rank.
type EvictionRank = (usize, Reverse<u64>, ClientNetwork);

impl SessionAgesByNetwork {
    pub(super) fn insert(&mut self, network: ClientNetwork, age: u64) {
        self.edit_ages(network, |ages| ages.insert(age));
    }

    pub(super) fn remove(&mut self, network: ClientNetwork, age: u64) {
        self.edit_ages(network, |ages| ages.remove(&age));
    }

    /// Returns the age of the session to evict, which is the oldest session of the network with the
    /// most sessions.
    pub(super) fn find_evictable(&self) -> Option<u64> {
        self.by_size.last().map(|(_, Reverse(age), _)| *age)
    }

    fn edit_ages(&mut self, network: ClientNetwork, edit: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let ages = self.ages.entry(network).or_default();
        if let Some(rank) = rank_network(network, ages) {
            self.by_size.remove(&rank);
        }
        edit(ages);
        match rank_network(network, ages) {
            Some(rank) => {
                self.by_size.insert(rank);
            }
            None => {
                self.ages.remove(&network);
            }
        }
    }
}

fn rank_network(network: ClientNetwork, ages: &BTreeSet<u64>) -> Option<EvictionRank> {
    let oldest = ages.first()?;
    Some((ages.len(), Reverse(*oldest), network))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn network(last: u8) -> ClientNetwork {
        IpAddr::from([192, 0, last, 1]).into()
    }

    #[test]
    fn the_oldest_session_of_the_largest_network_is_evicted() {
        let mut sessions = SessionAgesByNetwork::default();
        assert_eq!(sessions.find_evictable(), None);
        for (age, of) in [(1, 1), (2, 2), (3, 3)] {
            sessions.insert(network(of), age);
        }
        assert_eq!(sessions.find_evictable(), Some(1), "the oldest of equals");
        sessions.insert(network(3), 4);
        assert_eq!(sessions.find_evictable(), Some(3));
        sessions.remove(network(3), 3);
        assert_eq!(sessions.find_evictable(), Some(1));
        for (age, of) in [(1, 1), (2, 2), (4, 3)] {
            sessions.remove(network(of), age);
        }
        assert_eq!(sessions.find_evictable(), None);
        assert!(sessions.ages.is_empty() && sessions.by_size.is_empty());
    }
}
