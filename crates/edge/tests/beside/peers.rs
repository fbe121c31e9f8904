//! Starts Varnish and nginx as caches in front of the same origin.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use crate::peer_process::{PeerProcess, nginx_command, varnish_command};

/// A process of Varnish or nginx, which is stopped when this value is dropped.
pub struct PeerServer {
    _process: PeerProcess,
    pub address: SocketAddr,
}

pub fn varnish(folder: &Path, origin: SocketAddr) -> Option<PeerServer> {
    let address = free();
    let command = varnish_command(folder, origin, address);
    let _process = PeerProcess::start(command, &[address])?;
    Some(PeerServer { _process, address })
}

pub fn nginx(folder: &Path, origin: SocketAddr) -> Option<PeerServer> {
    let (address, dir) = (free(), folder.display());
    let http = format!(
        "proxy_cache_path {dir}/cache keys_zone=k:1m use_temp_path=off;
         server {{ listen {address}; location / {{
           proxy_pass http://{origin}; proxy_http_version 1.1; proxy_set_header Connection \"\";
           proxy_cache k; proxy_cache_revalidate on; }} }}"
    );
    let _process = PeerProcess::start(nginx_command(folder, &http), &[address])?;
    Some(PeerServer { _process, address })
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
