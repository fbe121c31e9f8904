//! Objects that exceed the size limit are cached in blocks if they have a strong validator, and
//! passed otherwise.

use std::sync::{Arc, Mutex};

use crate::KEEP;
use crate::support::{OriginExchange, ScriptedOrigin, TestEdge, format_head};

/// With the smallest memory limit (16 MiB), an object of more than 2 MiB is cached in blocks of 1
/// MiB.
const BLOCK: usize = 1 << 20;
const SMALL: [&str; 2] = ["--memory", "16MiB"];

pub fn make_film(seed: usize) -> Vec<u8> {
    let byte = |n: usize| (n / 7 + n * 31 + seed * 101) as u8;
    (0..4 * BLOCK + 1000).map(byte).collect()
}

/// Builds the response of an origin that supports ranges.
pub fn respond_to_range(
    exchange: &OriginExchange,
    etag: &str,
    body: &[u8],
) -> (u16, Vec<String>, Vec<u8>) {
    let mut lines = vec![KEEP.to_owned(), format!("ETag: {etag}")];
    let holds = exchange.header("if-range").is_none_or(|tag| tag == etag);
    if exchange.header("if-none-match") == Some(etag) {
        return (304, lines, Vec::new());
    }
    let Some(range) = exchange.header("range").filter(|_| holds) else {
        return (200, lines, body.to_vec());
    };
    let (first, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    lines.push(format!(
        "Content-Range: bytes {first}-{last}/{}",
        body.len()
    ));
    (206, lines, body[first..=last].to_vec())
}

#[test]
fn large_objects_without_validator_are_passed() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &["--memory", "16MiB"]);
    let body = vec![7; 4 << 20];
    let mut client = edge.connect();
    client.send("GET", "/film", &["Range: bytes=5-6"]);
    let mut whole = origin.next_request();
    assert_eq!(whole.header("range"), None);
    whole.send(format_head(200, &[KEEP], Some(body.len())));
    let part = origin.next_request();
    assert_eq!(part.header("range"), Some("bytes=5-6"));
    part.respond(206, &["Content-Range: bytes 5-6/4194304"], b"xy");
    let response = client.read_response("GET");
    assert_eq!((response.status, response.text().as_str()), (206, "xy"));
    whole.wait_for_hangup();
    // If the origin declares no length, the edge learns the size only during the fetch.
    client.send("GET", "/live", &[]);
    let mut exchange = origin.next_request();
    exchange.send(format_head(
        200,
        &[KEEP, "Transfer-Encoding: chunked"],
        None,
    ));
    let feed = std::thread::spawn(move || {
        for _ in 0..4 {
            exchange.send(format!("{:x}\r\n", 1 << 20));
            exchange.send(vec![7; 1 << 20]);
            exchange.send("\r\n");
        }
        exchange.send("0\r\n\r\n");
        exchange.finish();
    });
    let response = client.read_response("GET");
    feed.join().unwrap();
    assert!(response.complete);
    assert_eq!(response.body, body);
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert!(edge.read_metric("headwater_cache_memory_bytes") < 1 << 20);
}

#[test]
fn ranges_of_large_objects_cost_one_request_per_block() {
    let body = make_film(0);
    let served_body = body.clone();
    let (address, seen) = ScriptedOrigin::start_with(move |exchange| {
        respond_to_range(exchange, "\"1\"", &served_body)
    });
    let edge = TestEdge::new(address, &SMALL);
    let mut client = edge.connect();
    let request_count = || seen.lock().unwrap().len();
    for (first, last, requests) in [
        // The first request to the origin is for the whole object, to learn its length. The later
        // requests are for blocks.
        (10, 19, 2),
        (0, BLOCK - 1, 2),
        (BLOCK - 1, BLOCK, 3),
        (BLOCK + 5, 3 * BLOCK - 1, 4),
        (2 * BLOCK, 4 * BLOCK + 999, 6),
    ] {
        let line = format!("Range: bytes={first}-{last}");
        let response = client.request("GET", "/film", &[&line]);
        assert_eq!(response.status, 206);
        let range = format!("bytes {first}-{last}/{}", body.len());
        assert_eq!(response.header("content-range"), Some(range));
        assert!(response.body == body[first..=last], "{first}-{last}");
        edge.wait_for_metric("headwater_cache_flights", 0);
        assert_eq!(request_count(), requests, "{first}-{last}");
    }
    let whole = client.request("GET", "/film", &[]);
    assert!((whole.status, &whole.body) == (200, &body));
    assert_eq!(whole.cache_status(), "headwater; hit; detail=fresh");
    for (method, headers, status) in [
        ("HEAD", &[][..], 200),
        ("GET", &["If-None-Match: \"1\""], 304),
        ("GET", &["Range: bytes=99999999-"], 416),
        ("GET", &["If-Match: \"2\""], 412),
    ] {
        let response = client.request(method, "/film", headers);
        assert_eq!(response.status, status, "{headers:?}");
        if method == "HEAD" {
            let len = response.header("content-length");
            assert_eq!(len, Some(body.len().to_string()));
        }
    }
    // A request whose If-Range contains another ETag gets the full response.
    let lines = ["Range: bytes=0-0", "If-Range: \"0\""];
    let response = client.request("GET", "/film", &lines);
    assert!((response.status, &response.body) == (200, &body));
    assert_eq!(request_count(), 6);
}

#[test]
fn concurrent_overlapping_ranges_cost_one_request_per_block() {
    let body = make_film(0);
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &SMALL);
    let lines = [KEEP, "ETag: \"1\""];
    let (mut one, mut two) = (edge.connect(), edge.connect());
    one.send("GET", "/film", &["Range: bytes=1000-9999"]);
    let mut whole = origin.next_request();
    whole.send(format_head(200, &lines, Some(body.len())));
    let mut block = origin.next_request();
    assert_eq!(block.header("range"), Some("bytes=0-1048575"));
    assert_eq!(block.header("if-range"), Some("\"1\""));
    whole.wait_for_hangup();
    two.send("GET", "/film", &["Range: bytes=500-1999"]);
    let range = format!("Content-Range: bytes 0-1048575/{}", body.len());
    block.send(format_head(
        206,
        &[&lines[..], &[&range]].concat(),
        Some(BLOCK),
    ));
    block.send(&body[..1500]);
    // Both clients read while the block arrives.
    for (client, first) in [(&mut one, 1000), (&mut two, 500)] {
        assert_eq!(client.read_head().status, 206);
        assert!(client.take(1500 - first) == body[first..1500]);
    }
    block.send(&body[1500..BLOCK]);
    block.finish();
    assert!(one.take(8500) == body[1500..10_000]);
    assert!(two.take(500) == body[1500..2000]);
    assert_eq!(origin.request_count(), 2);
}

#[test]
fn blocks_of_two_versions_are_never_mixed() {
    let states = [make_film(1), make_film(2)];
    let now = Arc::new(Mutex::new(0));
    let (all, state) = (states.clone(), now.clone());
    let (address, _) = ScriptedOrigin::start_with(move |exchange| {
        let n = *state.lock().unwrap();
        respond_to_range(exchange, &format!("\"{n}\""), &all[n])
    });
    let edge = TestEdge::new(address, &SMALL);
    let mut client = edge.connect();
    let ask = |client: &mut crate::support::RawClient, first: usize| {
        let line = format!("Range: bytes={first}-{}", first + 99);
        client.request("GET", "/film", &[&line])
    };
    let old = ask(&mut client, 0);
    assert_eq!(old.body, states[0][..100]);
    *now.lock().unwrap() = 1;
    // The cached head is still fresh, but the next block that arrives belongs to another version.
    let new = ask(&mut client, BLOCK);
    assert_eq!(new.header("etag").as_deref(), Some("\"1\""));
    assert_eq!(new.body, states[1][BLOCK..BLOCK + 100]);
    assert_eq!(ask(&mut client, 0).body, states[1][..100]);
    // If the version changes in the middle of a response, the edge can only cut the response.
    *now.lock().unwrap() = 0;
    let cut = edge.connect().request("GET", "/film", &[]);
    assert!(!cut.complete);
    assert!(cut.body == states[1][..cut.body.len()]);
    assert!(ask(&mut client, 0).body == states[0][..100]);
}

#[test]
fn an_origin_without_ranges_gets_a_full_request() {
    let body = make_film(3);
    let served_body = body.clone();
    let (address, _) = ScriptedOrigin::start_with(move |_| {
        let lines = vec![KEEP.to_owned(), "ETag: \"1\"".to_owned()];
        (200, lines, served_body.clone())
    });
    let edge = TestEdge::new(address, &SMALL);
    for _ in 0..3 {
        let response = edge.get_path("/film");
        assert!((response.status, &response.body) == (200, &body));
    }
}

#[test]
fn a_block_of_wrong_length_is_cut_and_not_stored() {
    let body = make_film(4);
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &SMALL);
    let mut client = edge.connect();
    client.send("GET", "/film", &["Range: bytes=0-9"]);
    let lines = [KEEP, "ETag: \"1\""];
    origin
        .next_request()
        .send(format_head(200, &lines, Some(body.len())));
    let range = format!("Content-Range: bytes 0-1048575/{}", body.len());
    origin
        .next_request()
        .respond(206, &[&lines[..], &[&range]].concat(), &body[..5]);
    // The client gets a part of the body or no body, but never all ten requested bytes.
    let raw = client.read_to_end();
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n");
    assert!(end.is_none_or(|end| raw.len() - end - 4 <= 5));
    edge.wait_for_metric("headwater_cache_flights", 0);
    assert_eq!(
        edge.read_metric("headwater_cache_objects"),
        1,
        "the head alone"
    );
}

/// Regression: the edge read an endless error response although its clients had disconnected.
#[test]
fn an_endless_error_is_not_read_without_clients() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &SMALL);
    let mut client = edge.connect();
    client.send("GET", "/sick", &[]);
    let mut exchange = origin.next_request();
    exchange.send(format_head(500, &["Transfer-Encoding: chunked"], None));
    assert_eq!(client.read_head().status, 500);
    drop(client);
    let chunk = [b"100000\r\n", &vec![7; 1 << 20][..], b"\r\n"].concat();
    assert!(
        (0..1000).any(|_| !exchange.try_send(&chunk)),
        "the edge read the whole response"
    );
}

/// Regression: a 401 to one client counted as a new version. Any client could therefore remove the
/// object, and cut the responses of the other clients.
#[test]
fn a_client_that_the_origin_refuses_removes_no_block() {
    let body = make_film(5);
    let served_body = body.clone();
    let (address, seen) = ScriptedOrigin::start_with(move |exchange| {
        if exchange.header("authorization").is_some() {
            return (401, vec![], b"who".to_vec());
        }
        respond_to_range(exchange, "\"1\"", &served_body)
    });
    let edge = TestEdge::new(address, &SMALL);
    let mut client = edge.connect();
    let response = client.request("GET", "/film", &["Range: bytes=0-9"]);
    assert_eq!(response.body, body[..10]);
    edge.wait_for_metric("headwater_cache_flights", 0);
    let range = format!("Range: bytes={BLOCK}-{}", BLOCK + 9);
    let refused = client.request("GET", "/film", &[&range, "Authorization: Basic eA=="]);
    assert_eq!((refused.status, refused.text().as_str()), (401, "who"));
    edge.wait_for_metric("headwater_cache_flights", 0);
    let before = seen.lock().unwrap().len();
    let response = client.request("GET", "/film", &["Range: bytes=0-9"]);
    assert_eq!(response.cache_status(), "headwater; hit; detail=fresh");
    assert_eq!(response.body, body[..10]);
    assert_eq!(seen.lock().unwrap().len(), before);
}

#[test]
fn a_follower_of_a_refused_block_request_sends_its_own() {
    let body = make_film(6);
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &SMALL);
    let (mut bad, mut good) = (edge.connect(), edge.connect());
    bad.send(
        "GET",
        "/film",
        &["Range: bytes=0-9", "Accept-Language: bad"],
    );
    let lines = [KEEP, "ETag: \"1\""];
    let mut whole = origin.next_request();
    whole.send(format_head(200, &lines, Some(body.len())));
    let block = origin.next_request();
    whole.wait_for_hangup();
    good.send("GET", "/film", &["Range: bytes=0-9"]);
    edge.wait_for_metric("headwater_cache_followers", 1);
    block.respond(429, &[], b"later");
    // One client passes its request, and the other client requests the block.
    for _ in 0..2 {
        let exchange = origin.next_request();
        match exchange.header("accept-language") {
            Some(_) => exchange.respond(429, &[], b"later"),
            None => {
                let range = format!("Content-Range: bytes 0-1048575/{}", body.len());
                exchange.respond(206, &[&lines[..], &[&range]].concat(), &body[..BLOCK]);
            }
        }
    }
    assert_eq!(bad.read_response("GET").status, 429);
    let response = good.read_response("GET");
    assert_eq!((response.status, &response.body[..]), (206, &body[..10]));
}

/// Regression: a client that had waited for four refused requests of other clients got 502.
#[test]
fn a_client_that_waited_for_many_refused_block_requests_gets_its_own_response() {
    let body = make_film(10);
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &SMALL);
    let mut clients: Vec<_> = (0..6).map(|_| edge.connect()).collect();
    clients[0].send("GET", "/film", &["Range: bytes=0-9"]);
    let mut whole = origin.next_request();
    whole.send(format_head(200, &[KEEP, "ETag: \"1\""], Some(body.len())));
    whole.wait_for_hangup();
    for client in &mut clients[1..] {
        client.send("GET", "/film", &["Range: bytes=0-9"]);
    }
    let (mut waiting, mut passed) = (clients.len() as u64, 0);
    while passed < clients.len() {
        let exchange = origin.next_request();
        if exchange.header("range") == Some("bytes=0-9") {
            passed += 1;
        } else {
            // Each refused request for the block is of another client. All others wait for it.
            waiting -= 1;
            edge.wait_for_metric("headwater_cache_followers", waiting);
        }
        exchange.respond(429, &[], b"later");
    }
    for client in &mut clients {
        assert_eq!(client.read_response("GET").status, 429);
    }
}

/// Regression: an origin that sends parts without their entity tag got up to seven requests for one
/// request of a client.
#[test]
fn parts_without_entity_tag_are_passed() {
    let body = make_film(7);
    let served_body = body.clone();
    let (address, seen) = ScriptedOrigin::start_with(move |exchange| {
        let (status, mut lines, body) = respond_to_range(exchange, "\"1\"", &served_body);
        if status == 206 {
            lines.retain(|line| !line.starts_with("ETag"));
        }
        (status, lines, body)
    });
    let edge = TestEdge::new(address, &SMALL);
    // The requests to the origin are for the whole object, for a block, and for the range.
    for requests in [3, 4] {
        let response = edge.request("GET", "/film", &["Range: bytes=5-14"]);
        assert_eq!((response.status, &response.body[..]), (206, &body[5..15]));
        edge.wait_for_metric("headwater_cache_flights", 0);
        assert_eq!(seen.lock().unwrap().len(), requests);
    }
}

/// Regression: above the limit on the bytes of all fetches, a block was discarded if it arrived
/// before its client began to read it.
#[test]
fn a_block_reaches_its_client_although_too_many_bytes_are_in_flight() {
    // Three bodies of this length are one byte below the limit, which is a quarter of the memory
    // limit.
    const LEN: usize = (4 << 20) / 3;
    let film = make_film(8);
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &SMALL);
    let unfinished = ["/1", "/2", "/3"].map(|path| {
        let mut client = edge.connect();
        client.send("GET", path, &[]);
        let mut exchange = origin.next_request();
        exchange.send(format_head(200, &[KEEP], Some(LEN + 1)));
        exchange.send(vec![7; LEN]);
        assert_eq!(client.read_head().status, 200);
        client.take(LEN);
        (client, exchange)
    });
    let mut client = edge.connect();
    client.send("GET", "/film", &["Range: bytes=0-1999"]);
    let lines = [KEEP, "ETag: \"1\""];
    let mut whole = origin.next_request();
    whole.send(format_head(200, &lines, Some(film.len())));
    let mut block = origin.next_request();
    let range = format!("Content-Range: bytes 0-1048575/{}", film.len());
    let head = format_head(206, &[&lines[..], &[&range]].concat(), Some(BLOCK));
    // The first bytes arrive together with the head.
    block.send([head.as_bytes(), &film[..1000]].concat());
    assert_eq!(client.read_head().status, 206);
    block.send(&film[1000..BLOCK]);
    block.finish();
    assert_eq!(client.take(2000), film[..2000]);
    edge.wait_for_metric("headwater_cache_flights", unfinished.len() as u64);
}
