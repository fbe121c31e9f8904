//! No server manifest can make its reader panic or name more than it may; what it names resolves
//! to something inside, or not at all.

use crate::reference::{self, Prefix, Target};
use media::ism;
use store::Key;

pub fn run(data: &[u8]) {
    if let Ok(sources) = ism::read(data) {
        assert!(!sources.is_empty() && sources.len() <= ism::SOURCES_MAX);
        sources.iter().for_each(|source| follow(&source.src));
    }
    // Names of their own, so that the fuzzer need not write XML around them.
    if let Ok(text) = std::str::from_utf8(data) {
        text.lines().for_each(follow);
    }
}

fn follow(name: &str) {
    let prefixes: Vec<Prefix> = ["https://media.example.com/films/", "http://127.0.0.1:8080"]
        .iter()
        .filter_map(|text| Prefix::parse(text).ok())
        .collect();
    assert_eq!(prefixes.len(), 2);
    let holder = Key::parse("a/b/title.ism").unwrap_or_default();
    let Ok(target) = reference::resolve(&holder, name, &prefixes) else {
        return;
    };
    let (Target::Here(key) | Target::Below(_, key)) = &target;
    let sound = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains('\\');
    assert!(key.as_str().split('/').all(sound), "{name:?}: {target:?}");
    if let Target::Below(n, _) = target {
        let lower = name.to_ascii_lowercase();
        let start = ["https://media.example.com", "http://127.0.0.1:8080/"];
        assert!(
            start.get(n).is_some_and(|start| lower.starts_with(start)),
            "{name:?}"
        );
        assert!(
            !name.contains('@') || name.find('@') > name.find('/').map(|at| at + 2),
            "{name:?}"
        );
    }
    // Escaped anew, it is the same.
    if let Target::Here(key) = &target {
        let again = reference::escaped(key.as_str());
        let top = Key::parse("title.ism").unwrap_or_default();
        let same = reference::resolve(&top, &again, &prefixes);
        assert_eq!(same.as_ref(), Ok(&target), "{name:?}");
    }
}
