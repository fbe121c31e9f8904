//! Checks that the files of a crate do not import each other in cycles of more than two.
//!
//! The scan reads `use crate::…`, `use super::…` and `use self::…` statements and paths that start
//! with `crate::`. A path counts as an import of the longest prefix that is a file. A parent module
//! that declares or re-exports its children does not import them, and neither does a child that
//! uses its own parent: such a pair reads as one unit.

use super::type_names::is_test_file;
use super::{files, root, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Largest cycle that is allowed: two files that use each other are read together.
const CYCLE_FILES_MAX: usize = 2;

type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_do_not_import_each_other_in_cycles() {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let cycles = cycles(&imports(&folder.join("src")));
        if !cycles.is_empty() {
            problems.push(format!("{name}: {cycles:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_cycle_of_three_is_found_and_one_of_two_is_not() {
    let graph = |edges: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports
                .entry((*from).into())
                .or_default()
                .insert((*to).into());
            imports.entry((*to).into()).or_default();
        }
        imports
    };
    assert!(cycles(&graph(&[("a", "b"), ("b", "a"), ("b", "c")])).is_empty());
    let found = cycles(&graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]));
    assert_eq!(found, [["a", "b", "c"]]);
}

#[test]
fn imports_are_resolved_to_modules() {
    let modules = ["", "a", "a::b", "a::c", "d"].map(String::from).into();
    let resolve = |module: &str, line: &str| imported(line, module, &modules);
    assert_eq!(resolve("a::b", "use super::c::Type;"), ["a::c"]);
    assert_eq!(
        resolve("d", "use crate::a::{Type, b::Other};"),
        ["a", "a::b"]
    );
    assert_eq!(
        resolve("a::b", "use crate::{a::c, d::{One, Two}};"),
        ["a::c", "d", "d"]
    );
    assert_eq!(resolve("d", "let x = crate::a::c::make();"), ["a::c"]);
    assert_eq!(resolve("d", "// crate::a::c::make();"), [""; 0]);
}

/// Returns which modules each file imports.
fn imports(folder: &Path) -> Imports {
    let mut sources = BTreeMap::new();
    for (path, text) in files(folder, &["rs"]) {
        let relative = path.strip_prefix(folder).unwrap();
        if !is_test_file(relative) {
            sources.insert(module_name(relative), without_tests(&text).to_owned());
        }
    }
    let modules: BTreeSet<String> = sources.keys().cloned().collect();
    let imports_of = |module: &str, text: &str| {
        let statements = join_use_statements(text);
        let found = statements
            .iter()
            .flat_map(|line| imported(line, module, &modules));
        found.filter(|other| !is_same_unit(module, other)).collect()
    };
    let imports = sources
        .iter()
        .map(|(module, text)| (module.clone(), imports_of(module, text)));
    imports.collect()
}

/// Whether one module is an ancestor of the other, or both are the same.
fn is_same_unit(a: &str, b: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        outer.is_empty() || inner == outer || inner.starts_with(&format!("{outer}::"))
    };
    is_within(a, b) || is_within(b, a)
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

/// Joins each `use` statement into one line; other lines stay as they are.
fn join_use_statements(text: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim) {
        let is_use = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        if is_open {
            statements.last_mut().unwrap().push_str(line);
        } else {
            is_open = is_use.iter().any(|start| line.starts_with(start));
            statements.push(line.to_owned());
        }
        is_open &= !line.ends_with(';');
    }
    statements
}

/// Returns the modules that a line imports or names by a path from the crate's root.
fn imported(line: &str, module: &str, modules: &BTreeSet<String>) -> Vec<String> {
    if line.starts_with("//") {
        return Vec::new();
    }
    if let Some((_, path)) = line
        .split_once("use ")
        .filter(|(before, _)| is_visibility(before))
    {
        let paths = expand_braces(path.trim_end_matches(';'));
        return paths
            .iter()
            .filter_map(|path| resolve(path, module, modules))
            .collect();
    }
    let inline = line.match_indices("crate::").map(|(at, _)| {
        let path = &line[at..];
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        &path[..end.unwrap_or(path.len())]
    });
    inline
        .filter_map(|path| resolve(path, module, modules))
        .collect()
}

fn is_visibility(text: &str) -> bool {
    text.is_empty() || text.trim_end() == "pub" || text.trim_end().ends_with(')')
}

/// Turns `a::{b, c::{d, e}}` into `a::b`, `a::c::d`, `a::c::e`.
fn expand_braces(path: &str) -> Vec<String> {
    let Some((prefix, rest)) = path.split_once('{') else {
        return vec![path.trim().to_owned()];
    };
    let mut expanded = Vec::new();
    let (mut depth, mut start) = (0, 0);
    let inner = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    for (at, byte) in inner.bytes().chain([b',']).enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                let part = inner[start..at].trim();
                expanded.extend(
                    expand_braces(part)
                        .iter()
                        .map(|part| format!("{}{part}", prefix.trim())),
                );
                start = at + 1;
            }
            _ => {}
        }
    }
    expanded
}

/// Returns the longest prefix of a path that is a module of this crate.
fn resolve(path: &str, module: &str, modules: &BTreeSet<String>) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = path.split("::").map(str::trim).peekable();
    match rest.peek()? {
        &"crate" => _ = rest.next(),
        &"self" | &"super" => parts = module.split("::").filter(|part| !part.is_empty()).collect(),
        _ => return None,
    }
    while let Some(step) = rest.next_if(|step| ["self", "super"].contains(step)) {
        if step == "super" {
            parts.pop();
        }
    }
    parts.extend(rest.map(|part| part.split_whitespace().next().unwrap_or_default()));
    while !modules.contains(&parts.join("::")) {
        parts.pop()?;
    }
    Some(parts.join("::"))
}

/// Returns the groups of more than two files that reach each other, largest first.
fn cycles(imports: &Imports) -> Vec<Vec<String>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|module| (module.as_str(), reachable_from(module, imports)))
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

fn reachable_from<'a>(start: &str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = imports[start].iter().map(String::as_str).collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(imports[module].iter().map(String::as_str));
        }
    }
    reached
}
