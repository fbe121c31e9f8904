//! Named networks: addresses to names.

use std::net::IpAddr;

use net::Cidr;

/// Networks in the order written; of those that hold an address, the narrowest names it.
#[derive(Debug, Default)]
pub struct Networks(Vec<(String, Cidr)>);

impl Networks {
    pub fn add(&mut self, name: &str, network: Cidr) {
        self.0.push((name.to_owned(), network));
    }

    /// The network's name; empty: none.
    pub fn name(&self, address: IpAddr) -> &str {
        let holding = self.0.iter().filter(|(_, network)| network.holds(address));
        let narrowest = holding.max_by_key(|(_, network)| network.bits());
        narrowest.map_or("", |(name, _)| name)
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
    }
}
