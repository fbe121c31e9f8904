//! Ranges of an object that is still on its way.

use crate::KEEP;
use crate::support::{Edge, Origin, head};

/// Where the length is known, a range is answered before its bytes are here, and one that lies
/// outside at once.
#[test]
fn ranges_over_a_growing_object_of_known_length() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut leader = edge.connect();
    leader.send("GET", "/a", &[]);
    let mut asked = origin.next();
    asked.send(head(200, &[KEEP, "ETag: \"1\""], Some(9)));
    asked.send("abcd");
    leader.head();
    assert_eq!(leader.take(4), b"abcd");
    let asks = [
        (vec!["Range: bytes=1-2"], 206, "bc", Some("bytes 1-2/9")),
        (vec!["Range: bytes=2-5"], 206, "cdef", Some("bytes 2-5/9")),
        (vec!["Range: bytes=7-"], 206, "hi", Some("bytes 7-8/9")),
        (vec!["Range: bytes=-3"], 206, "ghi", Some("bytes 6-8/9")),
        // Several of what is not here yet: the whole is an answer, too.
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
    for (lines, status, _, range) in &asks {
        let mut client = edge.connect();
        client.send("GET", "/a", lines);
        let head = client.head();
        assert_eq!(head.status, *status, "{lines:?}");
        assert_eq!(head.header("content-range").as_deref(), *range, "{lines:?}");
        clients.push(client);
    }
    let outside = edge.ask("GET", "/a", &["Range: bytes=9-"]);
    assert_eq!(outside.status, 416);
    assert_eq!(
        outside.header("content-range").as_deref(),
        Some("bytes */9")
    );
    asked.send("efghi");
    asked.done();
    for (mut client, (lines, _, body, _)) in clients.into_iter().zip(asks) {
        assert_eq!(client.take(body.len()), body.as_bytes(), "{lines:?}");
    }
    assert_eq!(leader.take(5), b"efghi");
    assert_eq!(origin.count(), 1);
}

/// Where it is not known, what a range would be is not known either: the whole, as it comes.
#[test]
fn a_range_of_a_growing_object_of_unknown_length_is_the_whole() {
    let origin = Origin::new();
    let edge = Edge::new(origin.address, &[]);
    let mut leader = edge.connect();
    leader.send("GET", "/a", &[]);
    let mut asked = origin.next();
    asked.send(head(200, &[KEEP, "Transfer-Encoding: chunked"], None));
    asked.send("4\r\nabcd\r\n");
    assert_eq!(leader.head().status, 200);
    let mut part = edge.connect();
    part.send("GET", "/a", &["Range: bytes=1-2"]);
    assert_eq!(part.head().status, 200);
    asked.send("2\r\nef\r\n0\r\n\r\n");
    asked.done();
    for mut client in [leader, part] {
        let mut text = String::new();
        while !text.ends_with("0\r\n\r\n") {
            text += &String::from_utf8(client.take(1)).unwrap();
        }
        let letters: String = text.chars().filter(char::is_ascii_alphabetic).collect();
        assert_eq!(letters, "abcdef");
    }
    edge.until("headwater_cache_flights", 0);
    let hit = edge.ask("GET", "/a", &["Range: bytes=1-2"]);
    assert_eq!((hit.status, hit.text().as_str()), (206, "bc"));
}
