//! What runs where: places to agents.

use super::protocol::Who;
use crate::experiment::{Document, ONLY, Share, joined, place_of};
use std::collections::{BTreeMap, BTreeSet};

/// What each agent, by its place in the list, has to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) shares: BTreeMap<usize, Share>,
}

/// Places that are on one agent whatever happens: those that links join, or one alone.
#[derive(Debug, Default)]
struct Unit {
    places: BTreeSet<String>,
    on: Option<String>,
    agents: usize,
}

/// Gives every place its agent: by the name or label that the document asks for, else to whoever has
/// least to do.
///
/// # Errors
/// That nobody has the name or label, or two are asked for of places that a link joins.
pub(super) fn spread(document: &Document, agents: &[Who]) -> Result<Spread, String> {
    let mut units = units(document)?;
    // Those that are choosy first.
    units.sort_by_key(|unit| unit.on.is_none());
    let mut spread = Spread::default();
    for unit in units {
        let fits = |who: &Who| match &unit.on {
            Some(on) => who.name == *on || who.labels.contains(on),
            None => true,
        };
        let mut fit: Vec<usize> = (0..agents.len())
            .filter(|n| agents.get(*n).is_some_and(fits))
            .collect();
        if fit.is_empty() {
            let there: Vec<&str> = agents.iter().map(|who| who.name.as_str()).collect();
            let on = unit.on.unwrap_or_default();
            return Err(format!(
                "no agent is named or labelled {on:?}; there are {there:?}"
            ));
        }
        fit.sort_by_key(|n| spread.shares.get(n).map_or(0, |share| share.places.len()));
        fit.truncate(unit.agents);
        let parts = fit.len() as u32;
        for (part, agent) in (0..).zip(fit) {
            let share = spread.shares.entry(agent).or_default();
            for place in &unit.places {
                share.places.insert(place.clone(), (part, parts));
            }
        }
    }
    spread.addresses(document, agents);
    Ok(spread)
}

impl Spread {
    /// Agents at a place, with the part that each has.
    pub(super) fn at(&self, place: Option<&str>) -> Vec<usize> {
        let place = place.unwrap_or(ONLY);
        let shares = self.shares.iter();
        let there = shares.filter(|(_, share)| share.places.contains_key(place));
        there.map(|(agent, _)| *agent).collect()
    }

    /// How each agent reaches the functions that no link leads to.
    fn addresses(&mut self, document: &Document, agents: &[Who]) {
        for (name, function) in &document.function {
            let place = place_of(function.at.as_ref());
            if joined(document, place) != ONLY {
                continue;
            }
            let at = self.at(place).first().copied();
            let who = at.and_then(|at| agents.get(at));
            for (agent, share) in &mut self.shares {
                let host = match (at == Some(*agent), who) {
                    (false, Some(who)) => who.address.as_str(),
                    _ => "127.0.0.1",
                };
                let port = function.port.get_ref();
                let address = match host.contains(':') && !host.starts_with('[') {
                    // RFC 3986, section 3.2.2.
                    true => format!("[{host}]:{port}"),
                    false => format!("{host}:{port}"),
                };
                share.addresses.insert(name.get_ref().clone(), address);
            }
        }
    }
}

/// All places that something is at, put together where links join them.
fn units(document: &Document) -> Result<Vec<Unit>, String> {
    let mut groups: Vec<BTreeSet<String>> = Vec::new();
    for link in document.link.values() {
        let ends = link.between.get_ref();
        let mut group: BTreeSet<String> = ends.iter().cloned().collect();
        groups.retain(|other| {
            let apart = other.is_disjoint(&group);
            if !apart {
                group.extend(other.iter().cloned());
            }
            apart
        });
        groups.push(group);
    }
    let functions = document.function.values().map(|function| &function.at);
    let used = functions.chain(document.sink.values().map(|sink| &sink.at));
    for place in used.map(|at| place_of(at.as_ref()).unwrap_or(ONLY)) {
        if !groups.iter().any(|group| group.contains(place)) {
            groups.push(BTreeSet::from([place.to_owned()]));
        }
    }
    groups.sort();
    groups
        .into_iter()
        .map(|places| unit(document, places))
        .collect()
}

fn unit(document: &Document, places: BTreeSet<String>) -> Result<Unit, String> {
    let tables = places
        .iter()
        .filter_map(|place| document.place.get(place.as_str()));
    let (mut on, mut agents) = (None, 1);
    for table in tables {
        agents = agents.max(table.agents.as_ref().map_or(1, |n| *n.get_ref() as usize));
        let asked = table.on.as_ref().map(|on| on.get_ref().clone());
        if on.is_some() && asked.is_some() && on != asked {
            return Err(format!(
                "links join {places:?}, which ask for different agents"
            ));
        }
        on = on.or(asked);
    }
    Ok(Unit { places, on, agents })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str, labels: &[&str]) -> Who {
        Who {
            id: format!("id-{name}"),
            name: name.into(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            address: format!("10.0.0.{}", name.len()),
            version: "1".into(),
        }
    }

    fn document(tables: &str) -> Document {
        let head = "name='x'\nquestion='x'\nrounds=1\n";
        let sinks = "[sink.s]\nrun='x'\nat='viewers'\nmeasure.x='sum /x'\n";
        let functions = "[function.f]\nrun='x'\nport=80\nat='origin'\n";
        Document::read(&format!("{head}{functions}{sinks}{tables}")).unwrap()
    }

    fn places(spread: &Spread, agent: usize) -> Vec<(&str, (u32, u32))> {
        let share = spread.shares.get(&agent);
        let places = share.into_iter().flat_map(|share| &share.places);
        places.map(|(name, part)| (name.as_str(), *part)).collect()
    }

    #[test]
    fn places_go_by_label_and_then_evenly() {
        let agents = [who("a", &[]), who("bb", &["load"]), who("ccc", &["load"])];
        let document = document("[place.origin]\n[place.viewers]\non='load'\nagents=9\n");
        let spread = spread(&document, &agents).unwrap();
        assert_eq!(places(&spread, 0), [("origin", (0, 1))]);
        assert_eq!(places(&spread, 1), [("viewers", (0, 2))]);
        assert_eq!(places(&spread, 2), [("viewers", (1, 2))]);
        assert_eq!(spread.shares[&0].addresses["f"], "127.0.0.1:80");
        assert_eq!(spread.shares[&2].addresses["f"], "10.0.0.1:80");
    }

    #[test]
    fn an_address_of_version_6_stands_in_brackets() {
        let six = |address: &str, name| Who {
            address: address.to_owned(),
            ..who(name, &[name])
        };
        let apart = document("[place.origin]\non='a'\n[place.viewers]\non='b'\n");
        for address in ["fd00::1", "[fd00::1]"] {
            let spread = spread(&apart, &[six(address, "a"), who("b", &[])]).unwrap();
            assert_eq!(spread.shares[&1].addresses["f"], "[fd00::1]:80");
        }
    }

    #[test]
    fn what_links_join_stays_together_and_alone_it_all_does() {
        let agents = [who("a", &[]), who("bb", &[])];
        let linked = document("[link.l]\nbetween=['viewers', 'origin']\n");
        let spread_out = spread(&linked, &agents).unwrap();
        let together = [("origin", (0, 1)), ("viewers", (0, 1))];
        assert_eq!(places(&spread_out, 0), together);
        assert!(places(&spread_out, 1).is_empty() && spread_out.shares[&0].addresses.is_empty());
        let apart = document("[place.origin]\n[place.viewers]\n");
        let alone = spread(&apart, &agents[..1]).unwrap();
        assert_eq!(places(&alone, 0), together);
        assert_eq!(alone.shares[&0].addresses["f"], "127.0.0.1:80");
    }

    #[test]
    fn who_is_not_there_is_missed() {
        let agents = [who("a", &[])];
        let choosy = document("[place.origin]\non='z'\n[place.viewers]\n");
        assert!(spread(&choosy, &agents).unwrap_err().contains("\"z\""));
        let torn = document(
            "[place.origin]\non='a'\n[place.viewers]\non='b'\n[link.l]\nbetween=['viewers', 'origin']\n",
        );
        assert!(
            spread(&torn, &agents)
                .unwrap_err()
                .contains("different agents")
        );
    }
}
