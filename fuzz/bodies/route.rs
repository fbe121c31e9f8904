//! Checks that no URL makes the router panic, and that a printed URL parses back to the same
//! request.

use crate::route::{self, RequestedResource, parse_route};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let split = |text: &str| match text.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (text.to_owned(), None),
    };
    let (path, query) = split(text);
    let Ok(request) = parse_route(&path, query.as_deref()) else {
        return;
    };
    let printed = request.to_string();
    let (path, query) = split(&printed);
    // Escaping makes a path up to three times as long, so the printed URL may exceed the limit.
    if printed.len() > route::URL_BYTES_MAX {
        return;
    }
    let again = parse_route(&path, query.as_deref());
    assert!(
        again
            .as_ref()
            .is_ok_and(|again| is_same_request(&request, again)),
        "{text:?}, then {printed:?}: {again:?}"
    );
}

/// Compares requests. Ignores the static file that a manifest URL may name, because printed
/// manifest URLs contain no file name.
fn is_same_request(a: &RequestedResource, b: &RequestedResource) -> bool {
    match (a, b) {
        (
            RequestedResource::Manifest {
                title, manifest, ..
            },
            RequestedResource::Manifest {
                title: other,
                manifest: another,
                ..
            },
        ) => title == other && manifest == another,
        _ => a == b,
    }
}
