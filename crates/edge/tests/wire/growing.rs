//! Ranges of an object that is still being fetched.

use crate::KEEP;
use crate::support::{ScriptedOrigin, TestEdge, format_head};

/// If the length is known, the edge starts a range response before the requested bytes arrive, and
/// refuses an invalid range at once.
#[test]
fn ranges_of_a_growing_object_of_known_length() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut leader = edge.connect();
    leader.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    exchange.send(format_head(200, &[KEEP, "ETag: \"1\""], Some(9)));
    exchange.send("abcd");
    leader.read_head();
    assert_eq!(leader.take(4), b"abcd");
    let ranges = [
        (vec!["Range: bytes=1-2"], 206, "bc", Some("bytes 1-2/9")),
        (vec!["Range: bytes=2-5"], 206, "cdef", Some("bytes 2-5/9")),
        (vec!["Range: bytes=7-"], 206, "hi", Some("bytes 7-8/9")),
        (vec!["Range: bytes=-3"], 206, "ghi", Some("bytes 6-8/9")),
        // If a request has several ranges and some of their bytes have not arrived, the edge sends
        // the full response, which HTTP always allows.
        (vec!["Range: bytes=0-0,8-8"], 200, "abcdefghi", None),
        (
            vec!["Range: bytes=1-2", "If-Range: \"1\""],
            206,
            "bc",
            Some("bytes 1-2/9"),
        ),
        (
            vec!["Range: bytes=1-2", "If-Range: \"0\""],
            200,
            "abcdefghi",
            None,
        ),
    ];
    let mut clients = Vec::new();
    for (lines, status, _, range) in &ranges {
        let mut client = edge.connect();
        client.send("GET", "/a", lines);
        let head = client.read_head();
        assert_eq!(head.status, *status, "{lines:?}");
        assert_eq!(head.header("content-range").as_deref(), *range, "{lines:?}");
        clients.push(client);
    }
    let outside = edge.request("GET", "/a", &["Range: bytes=9-"]);
    assert_eq!(outside.status, 416);
    assert_eq!(
        outside.header("content-range").as_deref(),
        Some("bytes */9")
    );
    exchange.send("efghi");
    exchange.finish();
    for (mut client, (lines, _, body, _)) in clients.into_iter().zip(ranges) {
        assert_eq!(client.take(body.len()), body.as_bytes(), "{lines:?}");
    }
    assert_eq!(leader.take(5), b"efghi");
    assert_eq!(origin.request_count(), 1);
}

/// If the length is unknown, the edge cannot check a range, so the client gets the full response.
#[test]
fn a_range_of_a_growing_object_of_unknown_length_gets_the_full_response() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut leader = edge.connect();
    leader.send("GET", "/a", &[]);
    let mut exchange = origin.next_request();
    exchange.send(format_head(
        200,
        &[KEEP, "Transfer-Encoding: chunked"],
        None,
    ));
    exchange.send("4\r\nabcd\r\n");
    assert_eq!(leader.read_head().status, 200);
    let mut part = edge.connect();
    part.send("GET", "/a", &["Range: bytes=1-2"]);
    assert_eq!(part.read_head().status, 200);
    exchange.send("2\r\nef\r\n0\r\n\r\n");
    exchange.finish();
    for mut client in [leader, part] {
        let mut text = String::new();
        while !text.ends_with("0\r\n\r\n") {
            text += &String::from_utf8(client.take(1)).unwrap();
        }
        let letters: String = text.chars().filter(char::is_ascii_alphabetic).collect();
        assert_eq!(letters, "abcdef");
    }
    edge.wait_for_metric("headwater_cache_flights", 0);
    let hit = edge.request("GET", "/a", &["Range: bytes=1-2"]);
    assert_eq!((hit.status, hit.text().as_str()), (206, "bc"));
}
