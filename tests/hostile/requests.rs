//! Tests hostile requests that have the same meaning in HTTP/1.1 and HTTP/2 (RFC 9110).

use crate::frames::StreamResult::Status;
use crate::targets::AttackedServers;

type Field = (&'static str, &'static str);

/// Method, path, header fields, status of `serve`, status of the edge, and reason.
type RequestRow = (
    &'static str,
    &'static str,
    &'static [Field],
    u16,
    u16,
    &'static str,
);

/// The edge forwards requests that only an origin can judge. The origin of these tests responds to
/// every request with 200.
#[rustfmt::skip]
pub const REQUESTS: &[RequestRow] = &[
    ("GET", "/film.bin", &[], 200, 200, "a valid request"),
    ("GET", "/%66ilm.bin", &[], 200, 200, "an escape of an unreserved character"),
    ("GET", "//film.bin", &[], 400, 200, "an empty segment at the start of the path"),
    ("GET", "//e/film.bin", &[], 400, 200, "a path that looks like a host"),
    ("GET", "*", &[], 400, 400, "an asterisk is for OPTIONS"),
    ("BREW", "/film.bin", &[], 405, 200, "an unknown method"),
    ("PURGE", "/film.bin", &[], 405, 200, "a method that other caches obey"),
    ("get", "/film.bin", &[], 405, 200, "methods are case-sensitive"),
    ("TRACE", "/film.bin", &[], 405, 405, "a method that returns the request"),
    ("GET", "/film.bin", &[("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")], 304, 200, "the film's date"),
    ("GET", "/film.bin", &[("If-Modified-Since", "Sun, 01 Jan 2000 00:00:00 GMT")], 304, 200, "a wrong weekday"),
    ("GET", "/film.bin", &[("If-Modified-Since", "sat, 01 JAN 2000 00:00:00 gmt")], 304, 200, "another letter case"),
    ("GET", "/film.bin", &[("If-Modified-Since", "Saturday, 01-Jan-00 00:00:00 GMT")], 304, 200, "the date of RFC 850"),
    ("GET", "/film.bin", &[("If-Modified-Since", "Sat Jan  1 00:00:00 2000")], 304, 200, "the date of asctime"),
    ("GET", "/film.bin", &[("If-Modified-Since", "Fri, 31 Dec 1999 23:59:59 GMT")], 200, 200, "an earlier date"),
    ("GET", "/film.bin", &[("If-Modified-Since", "Sat, 32 Jan 2000 00:00:00 GMT")], 200, 200, "a day that does not exist"),
    ("GET", "/film.bin", &[("If-Modified-Since", "2000-01-01T00:00:00Z")], 200, 200, "a format that is not HTTP's"),
    ("GET", "/film.bin", &[("If-Modified-Since", "946684800")], 200, 200, "a number"),
    ("GET", "/film.bin", &[("Cookie", "a=b")], 200, 200, "a cookie"),
    ("GET", "/film.bin", &[("Expect", "200-maybe")], 200, 200, "an unknown expectation is ignored"),
];

#[test]
fn hostile_requests_get_the_same_status_over_http1_and_http2() {
    let attacked = AttackedServers::start(&[]);
    let mut wrong = Vec::new();
    for target in &attacked.servers {
        for (method, path, fields, serve, edge, reason) in REQUESTS {
            let expected = Status(if target.is_edge { *edge } else { *serve });
            for protocol in ["http/1.1", "h2"] {
                let found = target.request(protocol, method, path, fields);
                if found != expected {
                    let name = target.name;
                    wrong.push(format!(
                        "{name}, {protocol}: {reason}: {found:?}, expected {expected:?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    attacked.assert_unharmed();
}
