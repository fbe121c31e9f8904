//! Checks that the files of a crate do not use each other in cycles of more than two files.
//!
//! A file uses another file if it imports or names an item that the other file declares. Names are
//! followed through `use` and `pub use` to the declaration. A visible import (`pub use` and
//! similar) counts as a use only if the file also names the item elsewhere. A module that only
//! declares and re-exports its children is therefore in no cycle.
//!
//! A parent module that declares items is treated like any other file, with one exception. Uses
//! between a parent and its child count only if they are part of a cycle of three or more files. A
//! parent may therefore call several children, even if all of them use items of the parent.
//!
//! Calls of methods are not detected, because they do not name the file of the method. The file of
//! an `impl` block uses the file that declares the type.

use super::module_names::{ModuleNames, join};
use super::rust_source::{test_modules, without_tests};
use super::type_names::is_test_file;
use super::{files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of files in a cycle. Two files may use each other, because they can be read
/// together.
const CYCLE_FILES_MAX: usize = 2;

type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn files_do_not_use_each_other_in_cycles() {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let cycles = cycles(&without_pairs(&uses(&folder.join("src"))));
        problems.extend(cycles.iter().map(|cycle| format!("{name}: {cycle:?}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn names_of(files: &[(&str, &str)]) -> ModuleNames {
    let mut names = ModuleNames::default();
    for (module, text) in files {
        names.add_file(module, text);
    }
    names
}

#[test]
fn a_cycle_through_reexports_is_found_without_the_module_that_reexports() {
    let names = names_of(&[
        ("", "mod p;\npub use p::{A, B};"),
        (
            "p",
            "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::{B, C};",
        ),
        ("p::a", "use crate::B;\npub struct A(B);"),
        ("p::b", "pub use super::c::C;\npub struct B(super::C);"),
        ("p::c", "use super::{A as First};\npub struct C(First);"),
    ]);
    let found = cycles(&without_pairs(&names.file_uses()));
    assert_eq!(found, [["p::a", "p::b", "p::c"]]);
}

#[test]
fn a_parent_is_part_of_a_chain_of_three_but_may_pair_with_each_child() {
    let parent = (
        "p",
        "mod a;\nmod b;\npub struct P;\nfn run() { a::start(b::B) }",
    );
    let b = ("p::b", "use super::P;\npub struct B(P);");
    let pairs = names_of(&[parent, b, ("p::a", "pub fn start(_: super::P) {}")]);
    assert!(cycles(&without_pairs(&pairs.file_uses())).is_empty());
    let chain = names_of(&[parent, b, ("p::a", "pub fn start(_: super::b::B) {}")]);
    let found = cycles(&without_pairs(&chain.file_uses()));
    assert_eq!(found, [["p", "p::a", "p::b"]]);
}

#[test]
fn siblings_that_pair_are_a_cycle_if_they_are_more_than_two() {
    let names = names_of(&[
        ("", "mod a;\nmod b;\nmod c;"),
        ("a", "use crate::b::B;\npub struct A(B);"),
        ("b", "use crate::{a::A, c::C};\npub struct B(A, C);"),
        ("c", "use crate::b::B;\npub struct C(B);"),
    ]);
    let found = cycles(&without_pairs(&names.file_uses()));
    assert_eq!(found, [["a", "b", "c"]]);
}

#[test]
fn names_are_followed_to_the_file_that_declares_them() {
    let used_by = |text: &str| {
        let names = names_of(&[
            ("", "pub mod p;\nmod q;\nmod user;\npub use p::b::*;"),
            (
                "p",
                "mod a;\npub mod b;\npub use a::{A, run};\npub mod c { pub use super::a::A; }",
            ),
            ("p::a", "pub struct A;\npub fn run() {}"),
            ("p::b", "pub struct B;"),
            ("q", "pub use bytes::Bytes;\nmacro_rules! q { () => {} }"),
            ("user", text),
        ]);
        let uses = names.file_uses();
        uses["user"].iter().cloned().collect::<Vec<_>>().join(" ")
    };
    for (text, files) in [
        ("use crate::p::{A, b::B};", "p::a p::b"),
        ("use super::p;\nfn f() { p::run() }", "p::a"),
        ("use crate::p::c::A as First;", "p::a"),
        ("fn f(_: crate::B) {}", "p::b"),
        ("pub use crate::p::A;", ""),
        ("pub use crate::p::A;\nfn f(_: A) {}", "p::a"),
        ("pub use crate::p::run;\nfn f(x: X) { x.run() }", ""),
        ("use crate::q::Bytes;\nuse tokio::p::A;", ""),
        ("crate::q::made_by_a_macro();", "q"),
        (
            "// crate::p::run()\nconst X: &str = \"crate::p::run()\";",
            "",
        ),
        ("#[serde(with = \"super::p::b\", default)]\nx: u8", "p::b"),
    ] {
        assert_eq!(used_by(text), files, "{text}");
    }
}

/// Returns, for each file of a crate, the other files that the file uses. Ignores tests.
fn uses(folder: &Path) -> Uses {
    let sources: Vec<_> = files(folder, &["rs"])
        .into_iter()
        .map(|(path, text)| (path.strip_prefix(folder).unwrap().to_owned(), text))
        .filter(|(path, _)| !is_test_file(path))
        .map(|(path, text)| (module_name(&path), text))
        .collect();
    let tests: BTreeSet<String> = sources
        .iter()
        .flat_map(|(module, text)| {
            test_modules(text)
                .into_iter()
                .map(|name| join(module, &name))
        })
        .collect();
    let mut names = ModuleNames::default();
    for (module, text) in sources {
        if !tests.contains(&module) {
            names.add_file(&module, &without_tests(&text));
        }
    }
    names.file_uses()
}

fn module_name(path: &Path) -> String {
    let path = path.with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
    let parts = match parts.as_slice() {
        ["lib" | "main"] => &[],
        [parents @ .., "mod"] => parents,
        parts => parts,
    };
    parts.join("::")
}

/// Returns the groups of more than two files that all use each other, directly or through other
/// files. The largest group is first.
fn cycles(uses: &Uses) -> Vec<Vec<String>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|module| (module.as_str(), reachable_from(module, uses)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut cycles = Vec::new();
    for (module, others) in &reachable {
        let mutual = others
            .iter()
            .filter(|other| reachable[**other].contains(module));
        let cycle: Vec<String> = mutual.map(|other| (*other).to_owned()).collect();
        if cycle.len() > CYCLE_FILES_MAX && seen.insert(cycle.clone()) {
            cycles.push(cycle);
        }
    }
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    cycles
}

/// Removes the uses between a parent and its child that are not part of a cycle of three or more
/// files.
fn without_pairs(uses: &Uses) -> Uses {
    let is_kept = |from: &str, to: &str| {
        let is_related = is_within(from, to) || is_within(to, from);
        !is_related || is_in_longer_chain(from, to, uses)
    };
    let kept = |from: &str, used: &BTreeSet<String>| {
        let kept = used.iter().filter(|to| is_kept(from, to));
        kept.cloned().collect()
    };
    uses.iter()
        .map(|(from, used)| (from.clone(), kept(from, used)))
        .collect()
}

/// Returns whether `to` uses `from` through other files.
fn is_in_longer_chain(from: &str, to: &str, uses: &Uses) -> bool {
    let others = uses[to].iter().filter(|other| *other != from);
    follow_uses(others, BTreeSet::from([to]), uses).contains(from)
}

fn is_within(inner: &str, outer: &str) -> bool {
    outer.is_empty()
        || inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.starts_with("::"))
}

fn reachable_from<'a>(start: &str, uses: &'a Uses) -> BTreeSet<&'a str> {
    follow_uses(&uses[start], BTreeSet::new(), uses)
}

/// Adds to `reached` all modules that can be reached from `modules`. Does not continue from modules
/// that are already in `reached`.
fn follow_uses<'a>(
    modules: impl IntoIterator<Item = &'a String>,
    mut reached: BTreeSet<&'a str>,
    uses: &'a Uses,
) -> BTreeSet<&'a str> {
    let mut open: Vec<&str> = modules.into_iter().map(String::as_str).collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(uses[module].iter().map(String::as_str));
        }
    }
    reached
}
