//! Finds cycles of connections that are not `breakable`.

use super::super::json_path::{JsonPath, NbmpFault};
use super::elements::GraphConnection;
use std::collections::{BTreeMap, BTreeSet};

/// Considers only connections that are not `breakable`. Reports each of these connections that is
/// on a cycle, or on a path between two cycles.
pub(super) fn check_cycles(connections: &[GraphConnection<'_>], found: &mut Vec<NbmpFault>) {
    let firm = connections
        .iter()
        .filter(|connection| !connection.breakable);
    let edges: Vec<(usize, &str, &str)> = firm
        .filter_map(|one| Some((one.number, one.from.instance?, one.to.instance?)))
        .collect();
    let circling = find_circular(&edges);
    let at = JsonPath::root().at("processing").at("connection-map");
    for (number, from, to) in edges {
        if circling.contains(from) && circling.contains(to) {
            let what = "the connections form a cycle; make one of them breakable, or remove one";
            found.push(at.element(number).fault_here(what));
        }
    }
}

/// Returns the nodes on cycles or on paths between two cycles. Repeatedly removes nodes without
/// incoming edges, as in Kahn's algorithm. Does the same for nodes without outgoing edges, and
/// returns the nodes that remain in both cases.
fn find_circular<'a>(edges: &[(usize, &'a str, &'a str)]) -> BTreeSet<&'a str> {
    let forth = remove_acyclic_ends(edges.iter().map(|(_, from, to)| (*from, *to)));
    let back = remove_acyclic_ends(edges.iter().map(|(_, from, to)| (*to, *from)));
    forth.intersection(&back).copied().collect()
}

/// Returns the nodes that have no place in a topological order, because they are on a cycle or can
/// be reached from a cycle.
fn remove_acyclic_ends<'a>(edges: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeSet<&'a str> {
    let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        waits.entry(from).or_default();
        *waits.entry(to).or_default() += 1;
        next.entry(from).or_default().push(to);
    }
    let free = waits.iter().filter(|(_, n)| **n == 0);
    let mut ready: Vec<&str> = free.map(|(name, _)| *name).collect();
    while let Some(name) = ready.pop() {
        waits.remove(name);
        for to in next.get(name).into_iter().flatten() {
            if let Some(n) = waits.get_mut(to) {
                *n -= 1;
                if *n == 0 {
                    ready.push(to);
                }
            }
        }
    }
    waits.into_keys().collect()
}
