//! No URL can make the router panic, and what it prints it reads back as the same request.

use crate::route::{self, Request, parse};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let split = |text: &str| match text.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (text.to_owned(), None),
    };
    let (path, query) = split(text);
    let Ok(request) = parse(&path, query.as_deref()) else {
        return;
    };
    let printed = request.to_string();
    let (path, query) = split(&printed);
    // Escaping makes a path up to three times as long.
    if printed.len() > route::URL_BYTES_MAX {
        return;
    }
    let again = parse(&path, query.as_deref());
    assert!(
        again.as_ref().is_ok_and(|again| same(&request, again)),
        "{text:?}, then {printed:?}: {again:?}"
    );
}

/// The same but for the file that a manifest's name could be: we print manifests without names.
fn same(a: &Request, b: &Request) -> bool {
    match (a, b) {
        (
            Request::Manifest {
                title, manifest, ..
            },
            Request::Manifest {
                title: other,
                manifest: another,
                ..
            },
        ) => title == other && manifest == another,
        _ => a == b,
    }
}
