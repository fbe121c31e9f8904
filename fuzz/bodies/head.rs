//! Checks that hyper also accepts each request that the fast path accepts, and parses the same
//! request of the same length.

use std::convert::Infallible;
use std::sync::Mutex;

use http::{Request, Response};
use http_body::Body as _;
use hyper::service::service_fn;

use super::wire::{Wire, run};
use crate::Body;
use crate::server::parse_fast_path_request;

/// `bytes` is the data that a client sends.
pub fn run_case(bytes: &[u8]) {
    let Some((request, len)) = parse_fast_path_request(bytes) else {
        return;
    };
    assert!(request.body().is_end_stream());
    let (head, rest) = bytes.split_at(len);
    assert!(head.ends_with(b"\n"));
    let ours = request.into_parts().0;
    // hyper must parse the same request with and without further bytes after the request.
    for bytes in [head, bytes] {
        let theirs = parse_requests(bytes);
        let theirs = theirs.first().expect("hyper accepts it");
        assert_eq!(theirs.method, ours.method);
        assert_eq!(theirs.uri, ours.uri);
        assert_eq!(theirs.version, ours.version);
        assert_eq!(theirs.headers, ours.headers);
    }
    assert_eq!(parse_requests(head).len(), 1);
    run_case(rest);
}

fn parse_requests(bytes: &[u8]) -> Vec<http::request::Parts> {
    let (wire, _) = Wire::new(bytes, false);
    let seen: Mutex<Vec<http::request::Parts>> = Mutex::default();
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        seen.lock().unwrap().push(request.into_parts().0);
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    let connection = builder.half_close(true).serve_connection(wire, service);
    // Ignores the result of the connection, because only the parsed requests matter.
    let _ = run(connection);
    seen.into_inner().unwrap()
}
