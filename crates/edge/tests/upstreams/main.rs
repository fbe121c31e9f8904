//! Several origins: who is asked, who next, who not for a while; requests with a body, and lists of
//! URLs.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod choice;
mod health;
mod warm;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use support::{Edge, Origin};

const KEEP: &str = "Cache-Control: max-age=60";

/// Says its name.
fn named(name: &'static str) -> (SocketAddr, Arc<std::sync::Mutex<Vec<String>>>) {
    Origin::answering(move |_| (200, vec![KEEP.into()], name.into()))
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn edge(origins: &[SocketAddr], flags: &[&str]) -> Edge {
    let origins: Vec<String> = origins.iter().map(|address| url(*address)).collect();
    let mut words = vec!["edge", "--listen", "127.0.0.1:0", "--workers", "2"];
    for origin in &origins {
        words.extend(["--origin", origin]);
    }
    words.extend(flags);
    Edge::start(words.iter())
}

fn sent(edge: &Edge, origin: SocketAddr, result: &str) -> u64 {
    let url = url(origin);
    edge.metric(&format!(
        "headwater_upstream_requests_total{{origin=\"{url}/\",result=\"{result}\"}}"
    ))
}
