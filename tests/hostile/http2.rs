//! Tests HTTP/2 requests that a converter to HTTP/1.1 could convert incorrectly (RFC 9113 section
//! 8).

use crate::frames::StreamResult::{self, Refused, Status};
use crate::frames::request_on_stream;
use crate::targets::AttackedServers;

pub type Field = (&'static str, &'static str);

const METHOD: Field = (":method", "GET");
const SCHEME: Field = (":scheme", "http");
const PATH: Field = (":path", "/film.bin");
const AUTHORITY: Field = (":authority", "e");

/// Each row contains header fields, the expected result and the reason.
#[rustfmt::skip]
pub const REQUESTS: &[(&[Field], StreamResult, &str)] = &[
    (&[METHOD, SCHEME, PATH, AUTHORITY], Status(200), "a valid request"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "e")], Status(200), "a Host that is equal"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "evil")], Status(400), "a Host that differs"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "e:81")], Status(400), "another port"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("host", "e"), ("host", "evil")], Status(400), "two Hosts"),
    (&[METHOD, SCHEME, PATH, ("host", "a/b")], Status(400), "a path in the Host"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("transfer-encoding", "chunked")], Refused, "a transfer coding"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("connection", "x")], Refused, "a field of one connection"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("upgrade", "x")], Refused, "an upgrade"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("te", "gzip")], Refused, "TE other than trailers"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "5")], Refused, "a length without a body"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("X", "y")], Refused, "a name in upper case"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("x y", "z")], Refused, "a space in a name"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("x", "a\r\nevil: b")], Refused, "a line break in a value"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, ("x", "a\0b")], Refused, "NUL in a value"),
    (&[METHOD, SCHEME, AUTHORITY], Refused, "no path"),
    (&[SCHEME, PATH, AUTHORITY], Refused, "no method"),
    (&[METHOD, SCHEME, PATH, PATH, AUTHORITY], Refused, "two paths"),
    (&[METHOD, SCHEME, PATH, AUTHORITY, (":x", "y")], Refused, "an unknown pseudo-field"),
    (&[METHOD, SCHEME, ("x", "y"), PATH, AUTHORITY], Refused, "a pseudo-field after others"),
    (&[METHOD, SCHEME, (":path", ""), AUTHORITY], Refused, "an empty path"),
    (&[METHOD, SCHEME, (":path", "/a HTTP/1.1\r\nevil: b"), AUTHORITY], Refused, "a line break in the path"),
    (&[("x", "y"), (":status", "200")], Refused, "a response"),
    (&[(":method", "TRACE"), SCHEME, PATH, AUTHORITY], Status(405), "a method that returns the request"),
];

#[test]
fn hostile_http2_requests_get_the_expected_result() {
    let attacked = AttackedServers::start(&[]);
    let mut wrong = Vec::new();
    for target in &attacked.servers {
        for (fields, expected, reason) in REQUESTS {
            let mut stream = target.connect(b"h2");
            let found = request_on_stream(&mut stream, fields);
            if found != *expected {
                wrong.push(format!(
                    "{}: {reason}: {found:?}, expected {expected:?}",
                    target.name
                ));
            }
        }
    }
    for target in &attacked.servers {
        let tunnel = [(":method", "CONNECT"), AUTHORITY];
        let found = request_on_stream(&mut target.connect(b"h2"), &tunnel);
        assert_eq!(found, Status(if target.is_edge { 405 } else { 400 }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    attacked.assert_unharmed();
}

#[test]
fn oversized_http2_requests_are_refused_with_a_status() {
    let attacked = AttackedServers::start(&[]);
    let path = format!("/{}", "a".repeat(9000));
    let value = "a".repeat(70_000);
    for target in &attacked.servers {
        for (path, value, status) in [(&*path, "", 414), ("/film.bin", &*value, 431)] {
            let fields = [METHOD, SCHEME, (":path", path), AUTHORITY, ("x", value)];
            let found = request_on_stream(&mut target.connect(b"h2"), &fields);
            assert_eq!(found, Status(status), "{}", target.name);
        }
    }
    attacked.assert_unharmed();
}
