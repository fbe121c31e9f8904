//! Assigns the places of a document to agents.

use super::errors::PlacementError;
use super::protocol::AgentIdentity;
use crate::experiment::ExperimentDocument;
use crate::experiment::distributed::{
    AgentShare, DEFAULT_PLACE, place_name, place_or_default_if_unlinked,
};
use std::collections::{BTreeMap, BTreeSet};

/// The share of the run that each agent executes. The key is the agent's index in the list of
/// agents.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AgentPlacement {
    pub(super) shares: BTreeMap<usize, AgentShare>,
}

/// Places that are assigned to the same agents. A group contains either one place, or several
/// places that are connected by links, directly or through other places.
#[derive(Debug, Default)]
struct PlaceGroup {
    places: BTreeSet<String>,
    on: Option<String>,
    agents: usize,
}

/// Assigns every place to agents. If the document requires a name or label for a place, only agents
/// with this name or label are used. Agents with fewer places are preferred.
///
/// # Errors
/// No agent has the required name or label, or links connect places that require different names or
/// labels.
pub(super) fn place_on_agents(
    document: &ExperimentDocument,
    agents: &[AgentIdentity],
) -> Result<AgentPlacement, PlacementError> {
    let mut units = group_linked_places(document)?;
    // Groups that require a name or label are assigned before all other groups.
    units.sort_by_key(|unit| unit.on.is_none());
    let mut spread = AgentPlacement::default();
    for unit in units {
        let fits = |who: &AgentIdentity| match &unit.on {
            Some(on) => who.name == *on || who.labels.contains(on),
            None => true,
        };
        let mut fit: Vec<usize> = (0..agents.len())
            .filter(|n| agents.get(*n).is_some_and(fits))
            .collect();
        if fit.is_empty() {
            return Err(PlacementError::NoAgent {
                wanted: unit.on.unwrap_or_default(),
                available: agents.iter().map(|who| who.name.clone()).collect(),
            });
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
    spread.assign_addresses(document, agents);
    Ok(spread)
}

impl AgentPlacement {
    /// Returns the agents to which a place is assigned.
    pub(super) fn agents_at(&self, place: Option<&str>) -> Vec<usize> {
        let place = place.unwrap_or(DEFAULT_PLACE);
        let shares = self.shares.iter();
        let with_place = shares.filter(|(_, share)| share.places.contains_key(place));
        with_place.map(|(agent, _)| *agent).collect()
    }

    /// Determines the addresses of the functions whose places have no link.
    fn assign_addresses(&mut self, document: &ExperimentDocument, agents: &[AgentIdentity]) {
        for (name, function) in &document.function {
            let place = place_name(function.at.as_ref());
            if place_or_default_if_unlinked(document, place) != DEFAULT_PLACE {
                continue;
            }
            let at = self.agents_at(place).first().copied();
            let who = at.and_then(|at| agents.get(at));
            for (agent, share) in &mut self.shares {
                let host = match (at == Some(*agent), who) {
                    (false, Some(who)) => who.address.as_str(),
                    _ => "127.0.0.1",
                };
                let port = function.port.get_ref();
                let address = match host.contains(':') && !host.starts_with('[') {
                    // An IPv6 address before a port needs brackets (RFC 3986 section 3.2.2).
                    true => format!("[{host}]:{port}"),
                    false => format!("{host}:{port}"),
                };
                share.addresses.insert(name.get_ref().clone(), address);
            }
        }
    }
}

/// Groups all places in use. Places that links connect, directly or through other places, are in
/// the same group.
fn group_linked_places(document: &ExperimentDocument) -> Result<Vec<PlaceGroup>, PlacementError> {
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
    for place in used.map(|at| place_name(at.as_ref()).unwrap_or(DEFAULT_PLACE)) {
        if !groups.iter().any(|group| group.contains(place)) {
            groups.push(BTreeSet::from([place.to_owned()]));
        }
    }
    groups.sort();
    groups
        .into_iter()
        .map(|places| create_place_group(document, places))
        .collect()
}

fn create_place_group(
    document: &ExperimentDocument,
    places: BTreeSet<String>,
) -> Result<PlaceGroup, PlacementError> {
    let tables = places
        .iter()
        .filter_map(|place| document.place.get(place.as_str()));
    let (mut on, mut agents) = (None, 1);
    for table in tables {
        agents = agents.max(table.agents.as_ref().map_or(1, |n| *n.get_ref() as usize));
        let requested = table.on.as_ref().map(|on| on.get_ref().clone());
        if on.is_some() && requested.is_some() && on != requested {
            return Err(PlacementError::Conflict(places.into_iter().collect()));
        }
        on = on.or(requested);
    }
    Ok(PlaceGroup { places, on, agents })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str, labels: &[&str]) -> AgentIdentity {
        AgentIdentity {
            id: format!("id-{name}"),
            name: name.into(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            address: format!("10.0.0.{}", name.len()),
            version: "1".into(),
        }
    }

    fn parse_document(tables: &str) -> ExperimentDocument {
        let head = "name='x'\nquestion='x'\nrounds=1\n";
        let sinks = "[sink.s]\nrun='x'\nat='viewers'\nmeasure.x='sum /x'\n";
        let functions = "[function.f]\nrun='x'\nport=80\nat='origin'\n";
        ExperimentDocument::parse_toml(&format!("{head}{functions}{sinks}{tables}")).unwrap()
    }

    fn places_of(spread: &AgentPlacement, agent: usize) -> Vec<(&str, (u32, u32))> {
        let share = spread.shares.get(&agent);
        let places = share.into_iter().flat_map(|share| &share.places);
        places.map(|(name, part)| (name.as_str(), *part)).collect()
    }

    #[test]
    fn places_are_assigned_by_label_and_then_evenly() {
        let agents = [
            identity("a", &[]),
            identity("bb", &["load"]),
            identity("ccc", &["load"]),
        ];
        let document = parse_document("[place.origin]\n[place.viewers]\non='load'\nagents=9\n");
        let spread = place_on_agents(&document, &agents).unwrap();
        assert_eq!(places_of(&spread, 0), [("origin", (0, 1))]);
        assert_eq!(places_of(&spread, 1), [("viewers", (0, 2))]);
        assert_eq!(places_of(&spread, 2), [("viewers", (1, 2))]);
        assert_eq!(spread.shares[&0].addresses["f"], "127.0.0.1:80");
        assert_eq!(spread.shares[&2].addresses["f"], "10.0.0.1:80");
    }

    #[test]
    fn ipv6_addresses_are_in_brackets() {
        let six = |address: &str, name| AgentIdentity {
            address: address.to_owned(),
            ..identity(name, &[name])
        };
        let apart = parse_document("[place.origin]\non='a'\n[place.viewers]\non='b'\n");
        for address in ["fd00::1", "[fd00::1]"] {
            let spread = place_on_agents(&apart, &[six(address, "a"), identity("b", &[])]).unwrap();
            assert_eq!(spread.shares[&1].addresses["f"], "[fd00::1]:80");
        }
    }

    #[test]
    fn linked_places_share_an_agent_and_one_agent_takes_all() {
        let agents = [identity("a", &[]), identity("bb", &[])];
        let linked = parse_document("[link.l]\nbetween=['viewers', 'origin']\n");
        let spread_out = place_on_agents(&linked, &agents).unwrap();
        let together = [("origin", (0, 1)), ("viewers", (0, 1))];
        assert_eq!(places_of(&spread_out, 0), together);
        assert!(places_of(&spread_out, 1).is_empty() && spread_out.shares[&0].addresses.is_empty());
        let apart = parse_document("[place.origin]\n[place.viewers]\n");
        let alone = place_on_agents(&apart, &agents[..1]).unwrap();
        assert_eq!(places_of(&alone, 0), together);
        assert_eq!(alone.shares[&0].addresses["f"], "127.0.0.1:80");
    }

    #[test]
    fn missing_agents_are_reported() {
        let agents = [identity("a", &[])];
        let choosy = parse_document("[place.origin]\non='z'\n[place.viewers]\n");
        let error = |document| place_on_agents(document, &agents).unwrap_err().to_string();
        assert!(error(&choosy).contains("\"z\""));
        let torn = parse_document(
            "[place.origin]\non='a'\n[place.viewers]\non='b'\n[link.l]\nbetween=['viewers', 'origin']\n",
        );
        assert!(error(&torn).contains("different agents"));
    }
}
