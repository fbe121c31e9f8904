//! Tests exchanges with a server that sends scripted responses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::Request;
use http_body_util::Full;

use super::*;

mod connector_tls;
mod large_bodies;
mod uploads;

/// Starts a server. Each connection follows one script, which contains one response per request.
/// The server then closes the connection.
fn start_server(scripts: Vec<Vec<&'static str>>) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            for response in script {
                heads.send(read_head(&mut stream)).unwrap();
                stream.write_all(response.as_bytes()).unwrap();
            }
        }
    });
    (address, requests)
}

fn read_head(stream: &mut TcpStream) -> String {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// A client that counts the connections it opens.
struct CountingClient {
    client: UpstreamClient,
    opened: Arc<AtomicU64>,
}

impl std::ops::Deref for CountingClient {
    type Target = UpstreamClient;

    fn deref(&self) -> &UpstreamClient {
        &self.client
    }
}

fn connect_to(address: SocketAddr) -> CountingClient {
    let url = format!("http://{address}").parse().unwrap();
    let limits = UpstreamLimits {
        body_gap_timeout: Duration::from_millis(300),
        ..UpstreamLimits::default()
    };
    let client = UpstreamClient::new(&url, 1, limits, &TrustedAuthorities::Public).unwrap();
    let opened: Arc<AtomicU64> = Arc::default();
    let count = opened.clone();
    let client = client.with_open_hook(move || {
        count.fetch_add(1, Relaxed);
    });
    CountingClient { client, opened }
}

fn get_request(path: &str) -> Request<()> {
    Request::get(path).header("host", "o").body(()).unwrap()
}

async fn read_body(response: &mut UpstreamResponse) -> Result<Vec<u8>, UpstreamError> {
    let mut all = Vec::new();
    while let Some(data) = response.next_data().await? {
        all.extend_from_slice(&data);
    }
    Ok(all)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

#[test]
fn connections_are_reused_and_a_closed_one_is_replaced() {
    let (address, requests) = start_server(vec![vec![OK, OK], vec![OK]]);
    let client = connect_to(address);
    block_on(async {
        for expected in [false, true, false] {
            let mut response = client.send_repeatable(0, &get_request("/x")).await.unwrap();
            assert_eq!(response.timing.is_reused, expected);
            assert_eq!(read_body(&mut response).await.unwrap(), b"abc");
        }
    });
    assert_eq!(client.opened.load(Relaxed), 2);
    assert!(
        requests
            .recv()
            .unwrap()
            .starts_with("GET /x HTTP/1.1\r\nhost: o\r\n")
    );
}

/// A head of more than 16 KiB was once mistaken for a closed connection, because the next buffer
/// had no free space.
#[test]
fn a_head_of_several_buffers_is_received() {
    let fields = format!("X: {}\r\n", "y".repeat(500)).repeat(60);
    let response = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 3\r\n\r\nabc");
    let (address, _requests) = start_server(vec![vec![response.leak()]]);
    let client = connect_to(address);
    block_on(async {
        let mut response = client.send_repeatable(0, &get_request("/")).await.unwrap();
        assert_eq!(read_body(&mut response).await.unwrap(), b"abc");
    });
}

#[test]
fn a_cut_body_is_an_error_in_every_framing() {
    for (response, reason) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            "interrupted",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "interrupted",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX",
            "interrupted",
        ),
    ] {
        let (address, _requests) = start_server(vec![vec![response]]);
        let client = connect_to(address);
        let failed = block_on(async {
            let mut response = client.send_repeatable(0, &get_request("/")).await.unwrap();
            read_body(&mut response).await.unwrap_err()
        });
        assert!(failed.reason.contains(reason), "{failed}");
    }
}

#[test]
fn malformed_responses_are_errors() {
    for response in [
        "",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 99999 OK\r\n\r\n",
    ] {
        let (address, _requests) = start_server(vec![vec![response]]);
        let failed = block_on(connect_to(address).send_repeatable(0, &get_request("/")));
        assert!(failed.is_err(), "{response:?}");
    }
}

#[test]
fn a_server_url_has_only_scheme_host_and_port() {
    for url in ["ftp://a", "http://u@a", "http://a/b", "/x", "a:1"] {
        let parsed = url.parse().unwrap();
        assert!(
            UpstreamClient::new(
                &parsed,
                1,
                UpstreamLimits::default(),
                &TrustedAuthorities::Public
            )
            .is_err(),
            "{url}"
        );
    }
    for url in ["http://a", "https://a:8443/", "http://[::1]:80"] {
        let parsed = url.parse().unwrap();
        assert!(
            UpstreamClient::new(
                &parsed,
                1,
                UpstreamLimits::default(),
                &TrustedAuthorities::Public
            )
            .is_ok(),
            "{url}"
        );
    }
}

fn post_request(body: &'static str) -> Request<Option<RequestUpload>> {
    let request = Request::post("/x").header("host", "o");
    request
        .body(RequestUpload::new(Full::<bytes::Bytes>::from(body)))
        .unwrap()
}

/// A server that closes the connection without a response may have processed the request.
#[test]
fn unsafe_requests_are_repeated_only_if_they_cannot_have_arrived() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (address, requests) = start_server(vec![vec![OK, ""], vec![OK]]);
    let client = connect_to(address);
    block_on(async {
        let mut first = client
            .send_repeatable(0, &get_request("/first"))
            .await
            .unwrap();
        read_body(&mut first).await.unwrap();
        // The request arrives on the pooled connection, which the server then closes without a
        // response.
        let (failed, unsent) = client.send_once(0, post_request("a")).await.unwrap_err();
        assert!(failed.may_have_arrived && unsent.is_none(), "{failed:?}");
        let mut second = client.send_once(0, post_request("b")).await.unwrap();
        read_body(&mut second).await.unwrap();
    });
    let heads: Vec<String> = requests.try_iter().collect();
    assert!(heads[1].starts_with("POST /x") && heads[1].contains("content-length: 1"));
    assert_eq!((heads.len(), client.opened.load(Relaxed)), (3, 2));
}
