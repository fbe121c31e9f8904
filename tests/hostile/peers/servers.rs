//! Starts nginx and Varnish with short timeouts, so that a broken request ends soon.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::peer_process::{PeerProcess, nginx_command, varnish_command};

/// The addresses of one server for unencrypted HTTP/1.1 and HTTP/2.
pub struct PeerAddresses {
    pub http1: SocketAddr,
    pub http2: SocketAddr,
}

/// The running peers, which are stopped when this value is dropped.
pub struct PeerServers {
    /// An nginx server with the files of the library.
    pub files: PeerAddresses,
    /// An nginx server with `proxy_cache` in front of the origin.
    pub proxy: PeerAddresses,
    pub varnish: PeerAddresses,
    processes: Vec<PeerProcess>,
}

fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], crate::port::free()))
}

impl PeerAddresses {
    fn new() -> PeerAddresses {
        PeerAddresses {
            http1: free(),
            http2: free(),
        }
    }
}

impl PeerServers {
    /// Starts the peers. Returns None if nginx or Varnish is not installed.
    pub fn start(folder: &Path, origin: SocketAddr) -> Option<PeerServers> {
        let mut peers = PeerServers {
            files: PeerAddresses::new(),
            proxy: PeerAddresses::new(),
            varnish: PeerAddresses::new(),
            processes: Vec::new(),
        };
        // Varnish accepts both HTTP versions on one port.
        peers.varnish.http2 = peers.varnish.http1;
        let nginx = peers.configure_nginx(folder, origin);
        let addresses = [peers.files.http1, peers.proxy.http2];
        peers.processes.push(PeerProcess::start(nginx, &addresses)?);
        let varnish = peers.configure_varnish(folder, origin);
        let addresses = [peers.varnish.http1];
        peers
            .processes
            .push(PeerProcess::start(varnish, &addresses)?);
        Some(peers)
    }

    fn configure_nginx(&self, folder: &Path, origin: SocketAddr) -> Command {
        let dir = folder.display();
        let listen = |addresses: &PeerAddresses| {
            let PeerAddresses { http1, http2 } = addresses;
            format!("listen {http1}; listen {http2} http2;")
        };
        let (files, proxy) = (listen(&self.files), listen(&self.proxy));
        let http = format!(
            "keepalive_timeout 1s; client_header_timeout 1s; client_body_timeout 1s;
             send_timeout 1s; lingering_close off;
             proxy_cache_path {dir}/cache keys_zone=k:1m use_temp_path=off;
             server {{ {files} root {dir}/films; }}
             server {{ {proxy} location / {{
               proxy_pass http://{origin}; proxy_http_version 1.1;
               proxy_set_header Connection \"\"; proxy_cache k; }} }}"
        );
        nginx_command(folder, &http)
    }

    fn configure_varnish(&self, folder: &Path, origin: SocketAddr) -> Command {
        let mut command = varnish_command(folder, origin, self.varnish.http1);
        for setting in ["feature=+http2", "timeout_idle=1", "timeout_linger=0.05"] {
            command.args(["-p", setting]);
        }
        command
    }
}
