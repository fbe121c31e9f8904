//! Checks that no server manifest makes its parser panic or exceed its limits. Every name in the
//! manifest must be refused, or resolve to a key inside the library.

use crate::references::{self, AllowedUrlPrefix, ReferenceTarget};
use media::ism;
use store::Key;

pub fn run(data: &[u8]) {
    if let Ok(sources) = ism::parse_server_manifest(data) {
        assert!(!sources.is_empty() && sources.len() <= ism::SMIL_TRACKS_MAX);
        sources.iter().for_each(|source| check_target(&source.src));
    }
    // Also resolves each line of the data as a name, so that the fuzzer need not write XML around a
    // name.
    if let Ok(text) = std::str::from_utf8(data) {
        text.lines().for_each(check_target);
    }
}

fn check_target(name: &str) {
    let prefixes: Vec<AllowedUrlPrefix> =
        ["https://media.example.com/films/", "http://127.0.0.1:8080"]
            .iter()
            .filter_map(|text| AllowedUrlPrefix::parse_prefix(text).ok())
            .collect();
    assert_eq!(prefixes.len(), 2);
    let holder = Key::parse("a/b/title.ism").unwrap_or_default();
    let Ok(target) = references::resolve_reference(&holder, name, &prefixes) else {
        return;
    };
    let (ReferenceTarget::SameStore(key) | ReferenceTarget::BelowPrefix(_, key)) = &target;
    let sound = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains('\\');
    assert!(key.as_str().split('/').all(sound), "{name:?}: {target:?}");
    if let ReferenceTarget::BelowPrefix(n, _) = target {
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
    // If the resolved key is escaped and resolved again, the target is the same.
    if let ReferenceTarget::SameStore(key) = &target {
        let again = references::escape_path(key.as_str());
        let top = Key::parse("title.ism").unwrap_or_default();
        let same = references::resolve_reference(&top, &again, &prefixes);
        assert_eq!(same.as_ref(), Ok(&target), "{name:?}");
    }
}
