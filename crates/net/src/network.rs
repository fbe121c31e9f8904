//! Networks of addresses, and whose word about a client counts.

use std::net::IpAddr;

use http::HeaderMap;

/// An address and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// `10.0.0.0/8`, `2001:db8::/32`, or one address.
    ///
    /// # Errors
    /// In words, when it is neither.
    pub fn parse(text: &str) -> Result<Cidr, String> {
        let wrong = || format!("{text:?} is no network such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().map_err(|_| wrong())?,
            None => most,
        };
        if bits > most {
            return Err(wrong());
        }
        Ok(Cidr { address, bits })
    }

    /// The address is one of the network's; an IPv4 address in IPv6's clothes counts as IPv4.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differ = u32::from(ours) ^ u32::from(theirs);
                differ.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differ = u128::from(ours) ^ u128::from(theirs);
                differ.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }

    /// How many first bits count: of two networks that hold an address, the greater is narrower.
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

/// Networks whose machines are believed about whom they speak for. Everybody else's word is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// They begin each connection with a PROXY header, version 2.
    pub proxy: Vec<Cidr>,
    /// They say in `X-Forwarded-For` whom they forward a request of.
    pub forwarded: Vec<Cidr>,
}

/// Entries of `X-Forwarded-For` that are looked at, from the last.
const HOPS_MAX: usize = 32;

impl Trust {
    /// The connection's other end begins with a PROXY header.
    pub(crate) fn proxies(&self, peer: IpAddr) -> bool {
        holds(&self.proxy, peer)
    }

    /// Whose request it is: going back from the connection's other end, the first that is not
    /// ours, or the last that can be read.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if self.forwarded.is_empty() {
            return client;
        }
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let said = lines.flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
        for hop in said.take(HOPS_MAX) {
            let Some(before) = address(hop).filter(|_| holds(&self.forwarded, client)) else {
                break;
            };
            client = before;
        }
        client
    }
}

fn holds(networks: &[Cidr], address: IpAddr) -> bool {
    networks.iter().any(|network| network.holds(address))
}

/// `192.0.2.1`, `2001:db8::1`, and what some put around them: brackets and a port.
fn address(text: &str) -> Option<IpAddr> {
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
            let cidr = Cidr::parse(network).unwrap();
            assert_eq!(
                cidr.holds(address.parse().unwrap()),
                inside,
                "{network} {address}"
            );
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "a", "::/129", "10.0.0.0/-1"] {
            assert!(Cidr::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_those_who_are_trusted_speak_for_others() {
        let trust = Trust {
            forwarded: ["10.0.0.0/8", "2001:db8::/32"]
                .map(|n| Cidr::parse(n).unwrap())
                .into(),
            ..Trust::default()
        };
        let client = |peer: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            trust.client(peer.parse().unwrap(), &headers).to_string()
        };
        for (peer, lines, expected) in [
            ("192.0.2.9", &["198.51.100.1"][..], "192.0.2.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            // What the client itself claims lies before what our own relay says of it.
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
