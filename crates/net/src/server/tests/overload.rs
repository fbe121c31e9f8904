use h2::Reason;

use super::support::*;
use crate::overload::{OverloadLevel, OverloadManager};
use crate::server::ServerOptions;

fn start_at(level: OverloadLevel) -> TestServer {
    start_as(ServerOptions {
        overload: OverloadManager::with_fixed_level(level),
        essential_paths: &["/conn"],
        ..ServerOptions::default()
    })
}

/// Sends a GET request on a new HTTP/2 connection. Returns the status, or the reason if the server
/// resets the stream.
async fn request_http2(server: &TestServer, path: &str) -> Result<u16, Reason> {
    let stream = tokio::net::TcpStream::connect(server.address);
    let handshake = h2::client::handshake(stream.await.unwrap()).await;
    let (sender, connection) = handshake.unwrap();
    tokio::spawn(connection);
    let uri = format!("http://x{path}");
    let request = http::Request::get(uri).body(()).unwrap();
    let mut sender = sender.ready().await.unwrap();
    let (response, _) = sender.send_request(request, true).unwrap();
    match response.await {
        Ok(response) => Ok(response.status().as_u16()),
        Err(error) => Err(error.reason().unwrap()),
    }
}

#[tokio::test]
async fn a_constrained_server_refuses_http2_streams_only() {
    let server = start_at(OverloadLevel::Constrained);
    let refused = request_http2(&server, "/full/5").await;
    assert_eq!(refused, Err(Reason::REFUSED_STREAM));
    assert_eq!(request_http2(&server, "/conn").await, Ok(200));
    assert_eq!(server.connect().get("/full/5").status, 200);
}

#[tokio::test]
async fn an_overloaded_server_sends_503_with_retry_after() {
    let server = start_at(OverloadLevel::Overloaded);
    assert_eq!(request_http2(&server, "/full/5").await, Ok(503));
    let refused = server.connect().get("/full/5");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(server.connect().get("/conn").status, 200);
}

#[tokio::test]
async fn a_server_with_enough_memory_serves_all() {
    let server = start_at(OverloadLevel::Normal);
    assert_eq!(request_http2(&server, "/full/5").await, Ok(200));
    assert_eq!(server.connect().get("/full/5").status, 200);
}
