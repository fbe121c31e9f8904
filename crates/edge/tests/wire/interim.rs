//! Interim responses of the origin (RFC 9110 section 15.2, RFC 8297).

use crate::support::{ScriptedOrigin, TestEdge};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\n\
                     X: y\r\nSurrogate-Key: film\r\n\r\n";
const FINAL: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn early_hints_arrive_before_the_response() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    for (path, lines) in [
        ("/stored", &[][..]),
        ("/passed", &["Cache-Control: no-store"]),
    ] {
        client.send("GET", path, lines);
        let mut exchange = origin.next_request();
        // The client gets the hints before the origin sends anything else.
        exchange.send(HINTS);
        let hints = client.read_head();
        assert_eq!(hints.status, 103, "{path}");
        assert_eq!(
            hints.header("link").as_deref(),
            Some("</a.css>; rel=preload")
        );
        for name in ["x", "connection", "surrogate-key", "via", "date"] {
            assert_eq!(hints.header(name), None, "{name}");
        }
        exchange.send("HTTP/1.1 102 Processing\r\nY: z\r\n\r\n");
        let processing = client.read_head();
        assert_eq!((processing.status, processing.header("y")), (102, None));
        // A 100 response concerns only the edge's own connection to the origin, so it is not
        // relayed.
        exchange.send("HTTP/1.1 100 Continue\r\n\r\n");
        exchange.send(FINAL);
        exchange.finish();
        assert_eq!(client.read_response("GET").text(), "ok", "{path}");
    }
    edge.wait_for_metric("headwater_cache_flights", 0);
    let hit = client.request("GET", "/stored", &[]);
    assert_eq!((hit.status, hit.text().as_str()), (200, "ok"));
}

#[test]
fn hints_that_arrive_with_the_response_precede_it() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    // The second pipelined request must not receive the hints for the first request.
    client.send("GET", "/a", &[]);
    client.send("GET", "/b", &[]);
    let mut exchange = origin.next_request();
    exchange.send(format!("{HINTS}{FINAL}"));
    exchange.finish();
    assert_eq!(client.read_head().status, 103);
    assert_eq!(client.read_response("GET").text(), "ok");
    origin.next_request().respond(200, &[], b"b");
    assert_eq!(client.read_response("GET").text(), "b");
}

/// HTTP/1.0 clients mistake an interim response for the final response.
#[test]
fn http_1_0_clients_receive_no_hints() {
    let origin = ScriptedOrigin::new();
    let edge = TestEdge::new(origin.address, &[]);
    let mut client = edge.connect();
    client.write_ignoring_errors(b"GET /a HTTP/1.0\r\nHost: e\r\n\r\n");
    let mut exchange = origin.next_request();
    exchange.send(format!("{HINTS}{FINAL}"));
    exchange.finish();
    assert_eq!(client.read_response("GET").status, 200);
}
