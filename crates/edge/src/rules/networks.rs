//! Named networks: addresses to names.

use std::net::IpAddr;

/// Networks in the order written; of those that hold an address, the narrowest names it.
#[derive(Debug, Default)]
pub struct Networks(Vec<(String, Cidr)>);

/// An address and how many of its first bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Networks {
    pub fn add(&mut self, name: &str, network: Cidr) {
        self.0.push((name.to_owned(), network));
    }

    /// The network's name; empty: none.
    pub fn name(&self, address: IpAddr) -> &str {
        let holding = self.0.iter().filter(|(_, network)| network.holds(address));
        let narrowest = holding.max_by_key(|(_, network)| network.bits);
        narrowest.map_or("", |(name, _)| name)
    }
}

impl Cidr {
    /// `10.0.0.0/8`, `2001:db8::/32`, or one address.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_network_names_an_address() {
        let mut networks = Networks::default();
        for (name, text) in [
            ("all", "0.0.0.0/0"),
            ("ten", "10.0.0.0/8"),
            ("one", "10.1.2.3"),
            ("six", "2001:db8::/32"),
        ] {
            networks.add(name, Cidr::parse(text).unwrap());
        }
        for (address, name) in [
            ("10.1.2.3", "one"),
            ("10.1.2.4", "ten"),
            ("11.0.0.0", "all"),
            ("::ffff:10.9.9.9", "ten"),
            ("2001:db8:ffff::1", "six"),
            ("2001:db9::1", ""),
        ] {
            assert_eq!(networks.name(address.parse().unwrap()), name, "{address}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "a", "::/129", "10.0.0.0/-1"] {
            assert!(Cidr::parse(wrong).is_err(), "{wrong}");
        }
    }
}
