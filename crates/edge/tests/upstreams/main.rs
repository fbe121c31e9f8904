//! Several origins: choice, retries, suspension, requests with a body, and cache warming.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod choice;
mod health;
mod warm;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use support::{ScriptedOrigin, TestEdge};

const KEEP: &str = "Cache-Control: max-age=60";

/// Starts an origin that responds with its name.
fn start_named_origin(name: &'static str) -> (SocketAddr, Arc<std::sync::Mutex<Vec<String>>>) {
    ScriptedOrigin::start_with(move |_| (200, vec![KEEP.into()], name.into()))
}

/// Returns an address at which no process listens.
fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn http_url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Starts an edge that sends requests with `X-From: archive` to another pool.
fn start_edge_with_archive_pool(usual: SocketAddr, archive: SocketAddr) -> TestEdge {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("edge.toml");
    let text = format!(
        "[pool.archive]\norigin = [\"{}\"]\n\n\
         [[rule]]\nwhen = 'header[\"x-from\"] == \"archive\"'\npool = \"archive\"\n",
        http_url(archive)
    );
    std::fs::write(&config, text).unwrap();
    TestEdge::new(usual, &["--config", config.to_str().unwrap()])
}

fn start_edge(origins: &[SocketAddr], flags: &[&str]) -> TestEdge {
    let origins: Vec<String> = origins.iter().map(|address| http_url(*address)).collect();
    let mut words = vec!["edge", "--listen", "127.0.0.1:0", "--workers", "2"];
    for origin in &origins {
        words.extend(["--origin", origin]);
    }
    words.extend(flags);
    TestEdge::start(words.iter())
}

fn count_sent(edge: &TestEdge, origin: SocketAddr, result: &str) -> u64 {
    let url = http_url(origin);
    edge.read_metric(&format!(
        "headwater_upstream_requests_total{{origin=\"{url}/\",result=\"{result}\"}}"
    ))
}
