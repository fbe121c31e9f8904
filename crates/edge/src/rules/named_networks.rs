//! Named networks for `client.net`.

use std::net::IpAddr;

use net::Cidr;

/// Networks with their names, in the order of the settings file. An address gets the name of the
/// narrowest network that contains it.
#[derive(Debug, Default)]
pub struct NamedNetworks(Vec<(String, Cidr)>);

impl NamedNetworks {
    pub fn add_network(&mut self, name: &str, network: Cidr) {
        self.0.push((name.to_owned(), network));
    }

    /// Returns the name of the narrowest network that contains the address, or an empty string.
    pub fn find_network_name(&self, address: IpAddr) -> &str {
        let holding = self
            .0
            .iter()
            .filter(|(_, network)| network.contains_address(address));
        let narrowest = holding.max_by_key(|(_, network)| network.prefix_length());
        narrowest.map_or("", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_network_names_an_address() {
        let mut networks = NamedNetworks::default();
        for (name, text) in [
            ("all", "0.0.0.0/0"),
            ("ten", "10.0.0.0/8"),
            ("one", "10.1.2.3"),
            ("six", "2001:db8::/32"),
        ] {
            networks.add_network(name, Cidr::parse_network(text).unwrap());
        }
        for (address, name) in [
            ("10.1.2.3", "one"),
            ("10.1.2.4", "ten"),
            ("11.0.0.0", "all"),
            ("::ffff:10.9.9.9", "ten"),
            ("2001:db8:ffff::1", "six"),
            ("2001:db9::1", ""),
        ] {
            assert_eq!(
                networks.find_network_name(address.parse().unwrap()),
                name,
                "{address}"
            );
        }
    }
}
