//! The classes of viewers that the metrics distinguish. A class consists of a network name and a
//! title class. The settings define all classes, so clients cannot add classes.

use std::net::IpAddr;

use crate::Cidr;
use crate::config::CmcdCollectorSettings;

/// Default names, one per address family, for networks without a configured name.
const NETWORKS: [&str; 2] = ["ipv4", "ipv6"];
/// Class of titles without a configured class.
const TITLES: [&str; 1] = ["other"];

/// All classes of viewers, as the settings define them.
#[derive(Debug)]
pub(super) struct ViewerClasses {
    networks: ClassNameRules<Cidr>,
    titles: ClassNameRules<String>,
}

/// Names of networks or titles, and the rules that choose a name.
#[derive(Debug)]
struct ClassNameRules<T> {
    /// All names, starting with the default names.
    names: Vec<String>,
    /// Each rule, with the index of the name that the rule chooses.
    rules: Vec<(T, usize)>,
}

/// The class of a viewer, as the indexes of a network name and a title class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ViewerClass {
    network: usize,
    title: usize,
}

impl ViewerClasses {
    pub(super) fn new(settings: &CmcdCollectorSettings) -> ViewerClasses {
        ViewerClasses {
            networks: ClassNameRules::new(&NETWORKS, &settings.networks),
            titles: ClassNameRules::new(&TITLES, &settings.title_classes),
        }
    }

    /// Returns the class of a viewer. If several rules match, the narrowest network and the longest
    /// title prefix are used.
    pub(super) fn classify(&self, client: IpAddr, title: Option<&str>) -> ViewerClass {
        let family = usize::from(client.to_canonical().is_ipv6());
        let width = |network: &Cidr| {
            let contains = network.contains_address(client);
            contains.then(|| usize::from(network.prefix_length()))
        };
        let title = title.unwrap_or_default();
        let length = |prefix: &String| title.starts_with(prefix).then_some(prefix.len());
        ViewerClass {
            network: self.networks.find_narrowest_rule(width).unwrap_or(family),
            title: self.titles.find_narrowest_rule(length).unwrap_or(0),
        }
    }

    /// Returns all classes. A metric has one series per class.
    pub(super) fn all_classes(&self) -> impl Iterator<Item = ViewerClass> + '_ {
        let titles = self.titles.names.len();
        (0..self.networks.names.len() * titles).map(move |index| ViewerClass {
            network: index / titles,
            title: index % titles,
        })
    }

    /// Returns the position of a class in [`ViewerClasses::all_classes`].
    pub(super) fn class_position(&self, class: ViewerClass) -> usize {
        class.network * self.titles.names.len() + class.title
    }

    /// Returns the network name and the title class.
    pub(super) fn network_and_title_names(&self, class: ViewerClass) -> [&str; 2] {
        let network = self.networks.names.get(class.network);
        let title = self.titles.names.get(class.title);
        [network, title].map(|name| name.map_or("", String::as_str))
    }
}

impl<T: Clone> ClassNameRules<T> {
    /// The number of names needs no limit here, because `CmcdCollectorSettings` limits it.
    fn new(defaults: &[&str], rules: &[(String, T)]) -> ClassNameRules<T> {
        let mut names: Vec<String> = defaults.iter().map(|&name| name.to_owned()).collect();
        let mut indexed = Vec::new();
        for (name, rule) in rules {
            let known = names.iter().position(|known| known == name);
            let index = known.unwrap_or(names.len());
            if known.is_none() {
                names.push(name.clone());
            }
            indexed.push((rule.clone(), index));
        }
        ClassNameRules {
            names,
            rules: indexed,
        }
    }

    /// Returns the index of the name that the most specific matching rule chooses. `precision`
    /// returns `None` for a rule that does not match.
    fn find_narrowest_rule(&self, precision: impl Fn(&T) -> Option<usize>) -> Option<usize> {
        let fitting = self.rules.iter();
        let fitting = fitting.filter_map(|(rule, name)| Some((precision(rule)?, *name)));
        let narrowest = fitting.max_by_key(|(precision, _)| *precision);
        narrowest.map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingLayers;

    fn classes() -> ViewerClasses {
        let network = |name: &str, text| (name.to_owned(), Cidr::parse_network(text).unwrap());
        let settings = CmcdCollectorSettings {
            networks: vec![
                network("office", "10.0.0.0/8"),
                network("lab", "10.1.0.0/16"),
                network("office", "2001:db8::/32"),
            ],
            title_classes: vec![
                ("kids".into(), "films/kids/".into()),
                ("films".into(), "films/".into()),
            ],
            ..CmcdCollectorSettings::new(&SettingLayers::default()).unwrap()
        };
        ViewerClasses::new(&settings)
    }

    #[test]
    fn the_narrowest_network_and_the_longest_prefix_name_a_viewer() {
        let classes = classes();
        for (client, title, names) in [
            ("10.9.9.9", Some("films/tos.mp4"), ["office", "films"]),
            ("::ffff:10.1.9.9", Some("films/kids/a"), ["lab", "kids"]),
            ("2001:db8::1", None, ["office", "other"]),
            ("192.0.2.1", Some("series/a"), ["ipv4", "other"]),
            ("2001:db9::1", Some("a/films/"), ["ipv6", "other"]),
        ] {
            let class = classes.classify(client.parse().unwrap(), title);
            assert_eq!(
                classes.network_and_title_names(class),
                names,
                "{client} {title:?}"
            );
        }
    }

    #[test]
    fn every_class_has_a_position_of_its_own() {
        let classes = classes();
        let all: Vec<ViewerClass> = classes.all_classes().collect();
        assert_eq!(all.len(), 4 * 3);
        for (position, class) in all.into_iter().enumerate() {
            assert_eq!(classes.class_position(class), position);
        }
    }
}
