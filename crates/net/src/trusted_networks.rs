//! IP networks, and the proxies that are trusted to report a client's address.

use std::net::IpAddr;

use http::HeaderMap;

/// An IP network, given by an address and a prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Parses `10.0.0.0/8`, `2001:db8::/32`, or a single address.
    ///
    /// # Errors
    /// A message for the user when the text is neither a network nor an address.
    pub fn parse_network(text: &str) -> Result<Cidr, String> {
        let wrong = || format!("invalid network {text:?}; expected a form such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().map_err(|_| wrong())?,
            None => bits_max,
        };
        if bits > bits_max {
            return Err(wrong());
        }
        Ok(Cidr { address, bits })
    }

    /// Returns whether the network contains the address. An IPv4-mapped IPv6 address is treated as
    /// an IPv4 address.
    pub fn contains_address(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address_bits)) => {
                let differ = u32::from(network) ^ u32::from(address_bits);
                differ.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address_bits)) => {
                let differ = u128::from(network) ^ u128::from(address_bits);
                differ.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }

    /// Returns the prefix length in bits. If two networks contain an address, the network with the
    /// longer prefix is more specific.
    pub fn prefix_length(&self) -> u8 {
        self.bits
    }
}

/// Networks of proxies that are trusted to report the client's address. Addresses that other peers
/// report are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedNetworks {
    /// Networks of proxies that start each connection with a PROXY header, version 2.
    pub proxy: Vec<Cidr>,
    /// Networks of proxies whose `X-Forwarded-For` is trusted.
    pub forwarded: Vec<Cidr>,
}

/// Limit on the number of `X-Forwarded-For` entries that are read. Reading starts with the last
/// entry.
const HOPS_MAX: usize = 32;

impl TrustedNetworks {
    /// Returns whether this peer starts its connections with a PROXY header.
    pub(crate) fn sends_proxy_header(&self, peer: IpAddr) -> bool {
        any_network_contains(&self.proxy, peer)
    }

    /// Returns whether this address is a proxy whose `X-Forwarded-For` is trusted.
    pub(crate) fn is_forwarder(&self, address: IpAddr) -> bool {
        any_network_contains(&self.forwarded, address)
    }

    /// Returns the client's address.
    ///
    /// Starts with the connection's peer and reads `X-Forwarded-For` from the last entry to the
    /// first. Stops at the first address that is not a trusted proxy, or before an entry that is
    /// not an address.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if self.forwarded.is_empty() {
            return client;
        }
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let hops = lines.flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
        for hop in hops.take(HOPS_MAX) {
            let Some(before) =
                parse_address(hop).filter(|_| any_network_contains(&self.forwarded, client))
            else {
                break;
            };
            client = before;
        }
        client
    }
}

fn any_network_contains(networks: &[Cidr], address: IpAddr) -> bool {
    networks
        .iter()
        .any(|network| network.contains_address(address))
}

/// Parses an address such as `192.0.2.1` or `2001:db8::1`. Brackets and a port are allowed.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let plain = text.parse().ok();
    let with_port = || {
        text.parse()
            .ok()
            .map(|socket: std::net::SocketAddr| socket.ip())
    };
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    plain
        .or_else(with_port)
        .or_else(bracketed)
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_a_network_or_not() {
        for (network, address, inside) in [
            ("0.0.0.0/0", "192.0.2.1", true),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3", "::ffff:10.1.2.3", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "10.0.0.1", false),
        ] {
            let cidr = Cidr::parse_network(network).unwrap();
            assert_eq!(
                cidr.contains_address(address.parse().unwrap()),
                inside,
                "{network} {address}"
            );
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "a", "::/129", "10.0.0.0/-1"] {
            assert!(Cidr::parse_network(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_trusted_proxies_name_other_clients() {
        let trust = TrustedNetworks {
            forwarded: ["10.0.0.0/8", "2001:db8::/32"]
                .map(|n| Cidr::parse_network(n).unwrap())
                .into(),
            ..TrustedNetworks::default()
        };
        let client = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            trust
                .client_address(peer.parse().unwrap(), &headers)
                .to_string()
        };
        for (peer, lines, expected) in [
            ("192.0.2.9", &["198.51.100.1"][..], "192.0.2.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            // The client itself sent the entry 1.1.1.1, and the trusted proxy appended the client's
            // real address.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            (
                "10.0.0.1",
                &["1.1.1.1", "198.51.100.1, 10.0.0.2"],
                "198.51.100.1",
            ),
            ("10.0.0.1", &["198.51.100.1, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["[2001:db8::5]:443"], "2001:db8::5"),
            (
                "10.0.0.1",
                &["198.51.100.1:5000, [2001:db8::5]"],
                "198.51.100.1",
            ),
        ] {
            assert_eq!(client(peer, lines), expected, "{peer} {lines:?}");
        }
        let long = vec!["10.0.0.7"; 1000].join(",");
        assert_eq!(
            client("10.0.0.1", &[&format!("1.1.1.1,{long}")]),
            "10.0.0.7"
        );
    }
}
