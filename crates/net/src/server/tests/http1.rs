use super::relayed::{connect_trusting, make_certificate, tls_identity};
use super::support::*;
use crate::server::Limits;

#[test]
fn bodies_of_odd_sizes_arrive_whole_on_one_connection() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    let sizes = ["1", "0,1,0", "7,13,4096", "65536", "1,100000", "3"];
    let lens = [0, 1, 2, 63, 64, 65, 4095, 4097, 30_000, 262_145];
    for kind in ["pieces", "stream", "full"] {
        for len in lens {
            for size in sizes.iter().filter(|size| len < 5000 || size.len() > 3) {
                let response = client.get(&format!("/{kind}/{len}/{size}"));
                assert_eq!(response.status, 200);
                assert_eq!(response.header("content-length"), Some(&*len.to_string()));
                assert!(response.body == test_pattern(len), "{kind} {len} {size}");
            }
        }
    }
}

#[test]
fn bytes_in_pipes_arrive_whole_among_others_and_the_connection_goes_on() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    for (len, size) in [
        (1, "0,1"),
        (10, "3"),
        (300_000, "7,13,4096"),
        (900_000, "1,300000"),
        (5_000_000, "70000,1000000"),
        (3_000_000, "0,900001"),
    ] {
        let response = client.get(&format!("/piped/{len}/{size}"));
        assert!(response.body == test_pattern(len), "{len} {size}");
        assert!(client.get("/full/4097").body == test_pattern(4097));
    }
    // A client that pauses reading also gets all bytes.
    client.send_text("GET /piped/9000000/1000,1000000 HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send_text("GET /piped/900000/0,900000 HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut other = server.connect();
    assert!(other.get("/piped/2000000/0,1000000").body == test_pattern(2_000_000));
    assert!(client.read_response().body == test_pattern(9_000_000));
    assert!(client.read_response().body == test_pattern(900_000));
}

#[test]
fn thousands_of_pieces_and_millions_of_bytes_arrive_whole() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    for (len, size) in [
        (5000, "1"),
        (65 * 7, "7"),
        (3_000_000, "999,1,1500"),
        (4_000_000, "4096"),
    ] {
        assert!(
            client.get(&format!("/pieces/{len}/{size}")).body == test_pattern(len),
            "{len} {size}"
        );
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    let lens = [10, 5000, 0, 100_000, 1];
    let requests: String = lens
        .iter()
        .map(|len| format!("GET /pieces/{len}/77 HTTP/1.1\r\nHost: x\r\n\r\n"))
        .collect();
    client.send_text(&requests);
    for len in lens {
        assert_eq!(client.read_response().body, test_pattern(len));
    }
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    for kind in ["full", "pieces", "stream"] {
        client.send_text(&format!(
            "HEAD /{kind}/12345/100 HTTP/1.1\r\nHost: x\r\n\r\n"
        ));
        assert_eq!(client.read_head().header("content-length"), Some("12345"));
    }
    assert_eq!(
        client.get("/full/5").body,
        test_pattern(5),
        "the next response belongs to the next request"
    );
}

#[test]
fn a_source_that_ends_early_cuts_the_connection() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    client.send_text("GET /short HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.read_head().header("content-length"), Some("1000"));
    assert!(client.read_rest().len() < 1000);
    assert_eq!(
        server.connect().get("/full/3").status,
        200,
        "other connections continue"
    );
}

#[test]
fn a_handler_that_panics_ends_its_connection_only() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    client.send_text("GET /panic HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.read_rest(), b"");
    assert_eq!(server.connect().get("/full/3").status, 200);
}

#[test]
fn an_unread_body_blocks_no_other_connection() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    client.send_text("POST /full/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.read_response().status, 200);
    let mut client = server.connect();
    client.send_text("POST /full/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nhello");
    assert_eq!(client.read_response().status, 200);
    client
        .stream
        .get_ref()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(client.read_rest(), b"");
}

#[test]
fn the_handler_knows_its_connection() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    assert_eq!(client.get("/conn").body, b"127.0.0.1 false 1 false");
    assert_eq!(client.get("/conn").body, b"127.0.0.1 false 2 false");
}

/// The response contains the reason, and the connection closes (RFC 9112 section 3.2).
#[test]
fn requests_that_name_no_host_are_refused() {
    let server = start_server(Limits::default());
    let cases = [
        ("GET /full/3 HTTP/1.1\r\n\r\n", "no Host"),
        ("GET http://x/full/3 HTTP/1.1\r\n\r\n", "no Host"),
        (
            "GET /full/3 HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
            "more than one Host",
        ),
        ("GET /full/3 HTTP/1.1\r\nHost: x/y\r\n\r\n", "invalid Host"),
        ("GET /full/3 HTTP/1.0\r\nHost: x y\r\n\r\n", "invalid Host"),
        // Regression: the server treated the target `x` as the host, and served `/`.
        ("GET x HTTP/1.1\r\nHost: x\r\n\r\n", "must be a path"),
    ];
    for (request, what) in cases {
        let mut client = server.connect();
        client.send_text(request);
        let response = client.read_response();
        assert_eq!(response.status, 400, "{request:?}");
        let reason = response.header("headwater-error").unwrap();
        assert!(
            reason.starts_with("client; ") && reason.contains(what),
            "{request:?}: {reason}"
        );
        assert_eq!(client.read_rest(), b"", "{request:?}");
    }
    for host in ["", "a.example:8080", "[::1]:80", "xn--bcher-kva.example"] {
        let mut client = server.connect();
        client.send_text(&format!("GET /full/3 HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(client.read_response().status, 200, "{host}");
    }
    let mut client = server.connect();
    client.send_text("GET /full/3 HTTP/1.0\r\n\r\n");
    assert_eq!(client.read_response().status, 200, "HTTP/1.0 needs none");
}

/// Another hop may find the end of such a request at a different byte (RFC 9112 section 6.1).
#[test]
fn a_request_with_two_lengths_is_refused() {
    let server = start_server(Limits::default());
    let (length, chunked) = ("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n");
    let request = |lines: &str| {
        format!(
            "POST /full/3 HTTP/1.1\r\nHost: x\r\n{lines}\r\n5\r\nhello\r\n0\r\n\r\n\
             GET /full/3 HTTP/1.1\r\nHost: x\r\n\r\n"
        )
    };
    for (lines, status) in [
        (&*format!("{length}{chunked}"), 400),
        (&*format!("{chunked}{length}"), 400),
        (chunked, 200),
    ] {
        // Sends the tested request as the first or the second request of a connection.
        for others in [0, 1] {
            let mut client = server.connect();
            for _ in 0..others {
                client
                    .send_text("POST /full/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
                assert_eq!(client.read_response().status, 200);
            }
            client.send_text(&request(lines));
            let response = client.read_response();
            assert_eq!(response.status, status, "{lines}");
            assert_eq!(response.header("connection"), Some("close"), "{lines}");
            assert_eq!(client.read_rest(), b"", "{lines}");
        }
    }
}

#[test]
fn transfer_codings_except_chunked_are_not_implemented() {
    let server = start_server(Limits::default());
    for coding in [
        "gzip, chunked",
        "identity, chunked",
        "gzip\r\nTransfer-Encoding: chunked",
    ] {
        let mut client = server.connect();
        client.send_text(&format!(
            "POST /full/3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n"
        ));
        assert_eq!(client.read_response().status, 501, "{coding}");
        assert_eq!(client.read_rest(), b"", "{coding}");
    }
}

#[test]
fn requests_cannot_be_smuggled() {
    let server = start_server(Limits::default());
    let bad = [
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n",
        "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    ];
    for request in bad {
        let mut client = server.connect();
        client.send_text(request);
        let rest = client.read_rest();
        let text = String::from_utf8_lossy(&rest);
        let response_count = text.matches("HTTP/1.1 ").count();
        assert!(
            response_count <= 1 && !text.starts_with("HTTP/1.1 2"),
            "{request:?}: {text}"
        );
    }
}

#[test]
fn encrypted_bodies_arrive_whole_and_the_handler_knows() {
    let made = make_certificate();
    let server = start_with(Limits::default(), Some(tls_identity(&made)));
    let mut stream = connect_trusting(server.address, &made);
    use std::io::{Read, Write};
    let request = "GET /conn HTTP/1.1\r\nHost: x\r\n\r\n\
                   GET /piped/200000/70,7000 HTTP/1.1\r\nHost: x\r\n\r\n\
                   GET /pieces/300000/70,7000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let text = String::from_utf8_lossy(&all);
    assert!(text.contains("127.0.0.1 true 1 true"), "{}", &text[..300]);
    assert!(all.ends_with(&test_pattern(300_000)));
    let head = all.len() - 300_000 - 200_000;
    let whole = (0..head).any(|at| all[at..].starts_with(&test_pattern(200_000)));
    assert!(whole, "bytes from pipes are included");
}

/// Requests over TLS are always parsed by `hyper`, which removes the `Content-Length`.
#[test]
fn an_encrypted_request_with_two_lengths_is_refused() {
    use std::io::{Read, Write};
    let made = make_certificate();
    let server = start_with(Limits::default(), Some(tls_identity(&made)));
    let mut stream = connect_trusting(server.address, &made);
    let request = "GET /full/3 HTTP/1.1\r\nHost: x\r\n\r\n\
                   POST /full/3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
                   Content-Length: 5\r\n\r\n0\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let text = String::from_utf8_lossy(&all);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("HTTP/1.1 400"), "{text}");
}

/// Regression: the client got 408 if the origin was slow to read a request's body.
#[test]
fn a_body_is_not_late_because_the_server_reads_it_late() {
    let server = start_server(Limits::default());
    let mut client = server.connect();
    let head = "POST /relayed HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
    client.send_text(&format!("{head}ab"));
    wait_for_notification(&server.gate.reached);
    // Exceeds the time in which a client must send its first bytes.
    std::thread::sleep(RELAY_GRACE);
    server.gate.open.notify_one();
    // The server waits for the rest of the body before the rest is sent.
    std::thread::sleep(RELAY_GRACE / 10);
    client.send_text("cde");
    assert_eq!(client.read_response().body, b"5 None");
    client.send_text(&format!("{head}ab"));
    server.gate.open.notify_one();
    assert_eq!(client.read_response().body, b"2 Some(408)");
}
