//! Tests of HTTP/2 connections that fail between or during requests.

use super::support::{plan, run_to_end};
use load::client::{
    ClientRequest, ClientSettings, Dialer, FailureKind, HttpClient, HttpVersion, RequestOutcome,
    Url,
};
use load::rate::RequestTarget;
use std::net::TcpListener;
use std::time::Duration;
use tokio::net::TcpStream;

/// The behavior of a connection of the scripted server.
#[derive(Clone, Copy, PartialEq)]
enum Script {
    /// Responds to no request.
    Silent,
    /// Responds to one request, and then closes the connection without GOAWAY.
    OneResponse,
    /// Responds to one request, and closes the connection when the second request arrives.
    CloseOnSecond,
    /// Redirects all requests to `/next`.
    Redirect,
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
    let mut count = 0;
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        count += 1;
        let mut response = http::Response::new(());
        match script {
            Script::Silent => {
                unanswered.push(respond);
                continue;
            }
            Script::CloseOnSecond if count == 2 => return,
            Script::Redirect => {
                *response.status_mut() = http::StatusCode::FOUND;
                let fields = response.headers_mut();
                fields.insert("location", http::HeaderValue::from_static("/next"));
            }
            _ => {}
        }
        respond.send_response(response, true).unwrap();
        if script == Script::OneResponse {
            // The client acknowledges PING after it has received the response. Without this wait,
            // frames that arrive after the end of the connection could discard the response.
            let mut ping = connection.ping_pong().unwrap();
            tokio::select! {
                _ = ping.ping(h2::Ping::opaque()) => {}
                _ = connection.accept() => {}
            }
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

/// Sends a request two times with the same client.
fn send_twice(request: &ClientRequest, timeout_ms: u64) -> [RequestOutcome; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = HttpClient::new(&Dialer::new(http2_settings(timeout_ms)).unwrap());
        let first = client.execute_request(request).await;
        [first, client.execute_request(request).await]
    })
}

#[test]
fn a_client_opens_a_new_connection_after_a_timeout() {
    let request = ClientRequest::new(start_http2_server(&[Script::Silent]));
    let faults = send_twice(&request, 500).map(|outcome| outcome.fault);
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

/// Regression: the client that follows redirects kept a dead connection, so that all later requests
/// timed out.
#[test]
fn a_redirected_request_opens_a_new_connection_after_a_timeout() {
    let url = start_http2_server(&[Script::Redirect, Script::Silent]);
    let targets = vec![RequestTarget::from_url(url)];
    let mut plan = plan("5", 1.0, targets, http2_settings(500));
    (plan.connections, plan.connections_max) = (1, 1);
    let total = run_to_end(plan).merged_stats();
    assert_eq!(total.faults, [(FailureKind::Timeout, 1)].into());
    assert_eq!(total.statuses, [(200, 4)].into());
}

/// After a request that the server did not answer, the client cannot know whether the server has
/// processed it.
#[test]
fn only_idempotent_requests_are_sent_again() {
    for (method, is_repeated) in [(http::Method::GET, true), (http::Method::POST, false)] {
        let request = ClientRequest {
            method: method.clone(),
            ..ClientRequest::new(start_http2_server(&[Script::CloseOnSecond]))
        };
        let outcomes = send_twice(&request, 5000);
        let succeeded = outcomes.map(|outcome| outcome.fault.is_none());
        assert_eq!(succeeded, [true, is_repeated], "client: {method}");
        let mut target = RequestTarget::from_url(start_http2_server(&[Script::CloseOnSecond]));
        target.method = method.clone();
        let mut plan = plan("10", 0.5, vec![target], http2_settings(5000));
        (plan.connections, plan.connections_max) = (1, 1);
        let statuses = run_to_end(plan).merged_stats().statuses;
        let expected = [(200, if is_repeated { 5 } else { 4 })];
        assert_eq!(statuses, expected.into(), "generator: {method}");
    }
}
