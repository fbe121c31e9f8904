//! Tests of HTTP/2 connections that fail between or during requests.

use super::support::{plan, run_to_end};
use load::client::{
    ClientRequest, ClientSettings, Dialer, FailureKind, HttpClient, HttpVersion, Url,
};
use load::rate::RequestTarget;
use std::future::poll_fn;
use std::net::TcpListener;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;

/// The behavior of a connection of the scripted server.
#[derive(Clone, Copy, PartialEq)]
enum Script {
    /// Responds to no request.
    Silent,
    /// Responds to one request, and then closes the connection without GOAWAY.
    OneResponse,
    /// Responds to all requests.
    Respond,
}

/// Starts a server whose first connections follow the scripts. Later connections respond to all
/// requests.
fn start_http2_server(scripts: &'static [Script]) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            for number in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                let script = scripts.get(number).copied().unwrap_or(Script::Respond);
                tokio::spawn(serve_connection(socket, script));
            }
        });
    });
    url
}

async fn serve_connection(socket: TcpStream, script: Script) {
    let mut connection = h2::server::handshake(socket).await.unwrap();
    let mut unanswered = Vec::new();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        if script == Script::Silent {
            unanswered.push(respond);
            continue;
        }
        respond
            .send_response(http::Response::new(()), true)
            .unwrap();
        if script == Script::OneResponse {
            // Polling the connection once sends the response.
            let _ = poll_fn(|cx| Poll::Ready(connection.poll_accept(cx))).await;
            return;
        }
    }
}

fn http2_settings(timeout_ms: u64) -> ClientSettings {
    ClientSettings {
        version: HttpVersion::Http2,
        timeout: Duration::from_millis(timeout_ms),
        ..ClientSettings::default()
    }
}

#[test]
fn a_client_opens_a_new_connection_after_a_timeout() {
    let request = ClientRequest::new(start_http2_server(&[Script::Silent]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcomes = runtime.unwrap().block_on(async {
        let client = HttpClient::new(&Dialer::new(http2_settings(500)).unwrap());
        let first = client.execute_request(&request).await;
        [first, client.execute_request(&request).await]
    });
    let faults = outcomes.map(|outcome| outcome.fault);
    assert_eq!(faults, [Some(FailureKind::Timeout), None]);
}

#[test]
fn a_generator_opens_a_new_connection_after_a_timeout() {
    let url = start_http2_server(&[Script::Silent]);
    let targets = vec![RequestTarget::from_url(url)];
    let mut plan = plan("5", 1.0, targets, http2_settings(500));
    (plan.connections, plan.connections_max) = (1, 1);
    let total = run_to_end(plan).merged_stats();
    assert_eq!(total.faults, [(FailureKind::Timeout, 1)].into());
    assert_eq!(total.statuses, [(200, 4)].into());
}

#[test]
fn a_connection_that_closed_between_requests_is_replaced() {
    let url = start_http2_server(&[Script::OneResponse; 5]);
    let targets = vec![RequestTarget::from_url(url)];
    let mut plan = plan("10", 0.5, targets, http2_settings(5000));
    (plan.connections, plan.connections_max) = (1, 1);
    let run = run_to_end(plan);
    let total = run.merged_stats();
    assert_eq!(total.statuses, [(200, 5)].into(), "{:?}", run.examples);
}
