use std::net::TcpStream;
use std::time::Instant;

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::limits::{connect_with_window, cut_count, http2_request_frame, request_with_window};
use super::support::*;
use crate::server::Limits;

type Http2Sender = hyper::client::conn::http2::SendRequest<Empty<bytes::Bytes>>;

async fn connect_http2(server: &TestServer) -> Http2Sender {
    let stream = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    sender
}

async fn request_path(
    sender: &mut Http2Sender,
    method: &str,
    path: &str,
) -> hyper::Result<http::Response<Vec<u8>>> {
    let uri = format!("http://x{path}");
    let request = http::Request::builder()
        .method(method)
        .uri(uri)
        .body(Empty::new())
        .unwrap();
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    Ok(http::Response::from_parts(head, body))
}

#[tokio::test]
async fn many_streams_at_once_arrive_whole() {
    let server = start_server(Limits::default());
    let sender = connect_http2(&server).await;
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let mut sender = sender.clone();
            let (kind, len) = (
                ["pieces", "stream", "full", "piped"][number % 4],
                number * 9973,
            );
            tokio::spawn(async move {
                let response =
                    request_path(&mut sender, "GET", &format!("/{kind}/{len}/50,5000")).await;
                let response = response.unwrap();
                // If the body is empty, the HEADERS frame ends the stream, so Content-Length may be
                // omitted.
                let declared = response.headers().get("content-length");
                assert!(declared.is_some_and(|declared| *declared == *len.to_string()) || len == 0);
                assert!(*response.body() == test_pattern(len), "{kind} {len}");
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn head_has_the_length_and_no_body_and_the_handler_knows() {
    let server = start_server(Limits::default());
    let mut sender = connect_http2(&server).await;
    let response = request_path(&mut sender, "HEAD", "/pieces/12345/100")
        .await
        .unwrap();
    assert_eq!(response.headers()["content-length"], "12345");
    assert!(response.body().is_empty());
    let response = request_path(&mut sender, "GET", "/conn").await.unwrap();
    assert_eq!(response.body(), b"127.0.0.1 false 2 true");
}

#[tokio::test]
async fn a_source_that_ends_early_resets_its_stream_only() {
    let server = start_server(Limits::default());
    let mut sender = connect_http2(&server).await;
    assert!(request_path(&mut sender, "GET", "/short").await.is_err());
    let response = request_path(&mut sender, "GET", "/full/5").await.unwrap();
    assert_eq!(*response.body(), test_pattern(5));
}

#[tokio::test]
async fn a_long_target_and_a_panic_leave_the_connection_alive() {
    let server = start_server(Limits::default());
    let mut sender = connect_http2(&server).await;
    let response = request_path(&mut sender, "GET", &format!("/{}", "a".repeat(16_384)))
        .await
        .unwrap();
    assert_eq!(response.status(), 414);
    assert!(request_path(&mut sender, "GET", "/panic").await.is_err());
    assert_eq!(
        request_path(&mut sender, "GET", "/full/5")
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test]
async fn a_drain_answers_the_streams_in_flight() {
    let server = start_server(Limits::default());
    let mut sender = connect_http2(&server).await;
    let mut second = sender.clone();
    let waiting = tokio::spawn(async move { request_path(&mut second, "GET", "/gate").await });
    server.gate.reached.notified().await;
    server.shutdown.drain();
    server.gate.open.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().body(), b"through");
    tokio::task::spawn_blocking(move || server.join())
        .await
        .unwrap()
        .unwrap();
    assert!(request_path(&mut sender, "GET", "/full/5").await.is_err());
}

#[tokio::test]
async fn a_client_that_keeps_its_window_shut_is_cut() {
    let stall_timeout = std::time::Duration::from_millis(40);
    let server = start_server(Limits {
        stall_timeout,
        ..Limits::default()
    });
    let mut sender = connect_http2(&server).await;
    let uri = "http://x/pieces/60000000/100000";
    let request = http::Request::builder()
        .uri(uri)
        .body(Empty::new())
        .unwrap();
    let mut unread = sender.send_request(request).await.unwrap().into_body();
    wait_for_stalled_cut(&server).await;
    let mut bytes = 0;
    while let Some(Ok(frame)) = unread.frame().await {
        bytes += frame.into_data().map_or(0, |data| data.len());
    }
    assert!(bytes < 60_000_000);
}

/// Waits until the server has cut one connection because its client reads nothing.
async fn wait_for_stalled_cut(server: &TestServer) {
    let is_cut = || cut_count(server, "stalled").as_deref() == Some("1");
    wait_for_condition("the stalled connection is cut", is_cut).await;
}

/// Regression: each reply to a PING restarted the stall timeout, so that a client could hold its
/// responses in memory forever. So did the end of each handler.
#[test]
fn pings_and_further_requests_do_not_extend_the_stall_timeout() {
    let server = start_server(Limits {
        // Longer than a pause of this thread on a busy machine.
        stall_timeout: std::time::Duration::from_secs(1),
        ..Limits::default()
    });
    let ping = |_: u32| vec![0_u8, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let request = |n: u32| http2_request_frame(2 * n + 1, "HEAD", "/full/5");
    std::thread::scope(|scope| {
        for frame in [ping as fn(u32) -> Vec<u8>, request] {
            for window in [0, 1] {
                let stream = request_with_window(&server, 1, window);
                scope.spawn(move || send_frames_until_cut(stream, frame));
            }
        }
    });
    assert_eq!(cut_count(&server, "stalled").as_deref(), Some("4"));
}

/// Sends each frame after the reply to the previous frame. `frame` gets the number of the frame,
/// starting at 1.
fn send_frames_until_cut(mut stream: TcpStream, frame: fn(u32) -> Vec<u8>) {
    use std::io::{Read, Write};
    let end = Instant::now() + PATIENCE;
    let mut replies = [0; 4096];
    for n in 1.. {
        let is_sent = stream.write_all(&frame(n)).is_ok();
        if !is_sent || !stream.read(&mut replies).is_ok_and(|count| count > 0) {
            return;
        }
        assert!(Instant::now() < end, "not cut within {PATIENCE:?}");
    }
}

#[tokio::test]
async fn a_response_that_waits_for_its_source_is_not_cut_as_stalled() {
    let limits = Limits {
        stall_timeout: std::time::Duration::from_millis(40),
        ..Limits::default()
    };
    let listen = crate::ServerOptions {
        limits,
        ..crate::ServerOptions::default()
    };
    let server = start_with_workers(1, listen);
    let mut sender = connect_http2(&server).await;
    let waiting = tokio::spawn(async move { request_path(&mut sender, "GET", "/gated/5").await });
    server.gate.reached.notified().await;
    // When the worker cuts this later request, the other response has waited for longer.
    let _stalled = request_with_window(&server, 1, 1);
    wait_for_stalled_cut(&server).await;
    server.gate.open.notify_one();
    assert_eq!(*waiting.await.unwrap().unwrap().body(), test_pattern(5));
    assert_eq!(cut_count(&server, "stalled").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_client_with_a_shut_window_is_cut_after_its_source_has_delivered() {
    use std::io::Write;
    let server = start_server(Limits {
        stall_timeout: std::time::Duration::from_millis(40),
        ..Limits::default()
    });
    let mut stream = connect_with_window(&server, 0);
    let request = http2_request_frame(1, "GET", "/gated/5");
    stream.write_all(&request).unwrap();
    server.gate.reached.notified().await;
    server.gate.open.notify_one();
    wait_for_stalled_cut(&server).await;
}

/// Regression: if the Host and `:authority` differ, a cache whose key contains only one of the two
/// names could store the response for the other name.
#[tokio::test]
async fn a_host_that_differs_from_the_authority_is_refused() {
    let server = start_server(Limits::default());
    let mut sender = connect_http2(&server).await;
    for (hosts, status) in [
        (&["x"][..], 200),
        (&["X"], 200),
        (&["x:80"], 200),
        (&[], 200),
        (&["evil"], 400),
        (&["x:81"], 400),
        (&[""], 400),
        (&["x", "x"], 400),
        (&["x/y"], 400),
    ] {
        let mut request = http::Request::get("http://x/full/3");
        for host in hosts {
            request = request.header("host", *host);
        }
        let request = request.body(Empty::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status, "{hosts:?}");
    }
}
