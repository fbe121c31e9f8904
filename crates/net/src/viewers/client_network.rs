//! The network of a client. Viewers are grouped by network, so that the server need not store
//! client addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A client's network, which is an IPv4 /24 or an IPv6 /48. The limits on request rates use the
/// same networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClientNetwork(IpAddr);

impl From<IpAddr> for ClientNetwork {
    fn from(client: IpAddr) -> ClientNetwork {
        ClientNetwork(match client.to_canonical() {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & 0xffff_ff00).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 80)).into(),
        })
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.0.is_ipv4() { 24 } else { 48 };
        write!(f, "{}/{bits}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_does_not_contain_the_address() {
        for (client, network) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ] {
            let client: IpAddr = client.parse().unwrap();
            assert_eq!(ClientNetwork::from(client).to_string(), network);
        }
    }
}
