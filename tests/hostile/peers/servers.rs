//! nginx and Varnish with short timeouts, so that a broken request ends soon.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The addresses of one server for unencrypted HTTP/1.1 and HTTP/2.
pub struct PeerAddresses {
    pub http1: SocketAddr,
    pub http2: SocketAddr,
}

/// Running peers. Stopped when dropped.
pub struct PeerServers {
    /// nginx with the library's files.
    pub files: PeerAddresses,
    /// nginx with `proxy_cache` in front of the origin.
    pub proxy: PeerAddresses,
    pub varnish: PeerAddresses,
    children: Vec<Child>,
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
    /// Returns None if one of the programs is missing.
    pub fn start(folder: &Path, origin: SocketAddr) -> Option<PeerServers> {
        let mut peers = PeerServers {
            files: PeerAddresses::new(),
            proxy: PeerAddresses::new(),
            varnish: PeerAddresses::new(),
            children: Vec::new(),
        };
        // Varnish accepts both versions on one port.
        peers.varnish.http2 = peers.varnish.http1;
        let nginx = peers.nginx_command(folder, origin);
        let varnish = peers.varnish_command(folder, origin);
        for mut command in [nginx, varnish] {
            let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
            peers.children.push(quiet.spawn().ok()?);
        }
        for address in [peers.files.http1, peers.proxy.http2, peers.varnish.http1] {
            wait_for_listener(address);
        }
        Some(peers)
    }

    fn nginx_command(&self, folder: &Path, origin: SocketAddr) -> Command {
        let dir = folder.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {dir}/n-{kind};"))
            .concat();
        let listen = |addresses: &PeerAddresses| {
            let PeerAddresses { http1, http2 } = addresses;
            format!("listen {http1}; listen {http2} http2;")
        };
        let (files, proxy) = (listen(&self.files), listen(&self.proxy));
        let config = format!(
            "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
             events {{ worker_connections 512; }}
             http {{ access_log off; {temporary}
               keepalive_timeout 1s; client_header_timeout 1s; client_body_timeout 1s;
               send_timeout 1s; lingering_close off;
               proxy_cache_path {dir}/cache keys_zone=k:1m use_temp_path=off;
               server {{ {files} root {dir}/films; }}
               server {{ {proxy} location / {{
                 proxy_pass http://{origin}; proxy_http_version 1.1;
                 proxy_set_header Connection \"\"; proxy_cache k; }} }} }}"
        );
        let path = folder.join("nginx.conf");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new("nginx");
        command
            .arg("-c")
            .arg(path)
            .arg("-e")
            .arg(folder.join("start.log"));
        command
    }

    fn varnish_command(&self, folder: &Path, origin: SocketAddr) -> Command {
        let vcl = folder.join("default.vcl");
        let (host, port) = (origin.ip(), origin.port());
        let text = format!("vcl 4.1; backend o {{ .host = \"{host}\"; .port = \"{port}\"; }}");
        std::fs::write(&vcl, text).unwrap();
        let mut command = Command::new("varnishd");
        command.arg("-F").arg("-n").arg(folder.join("varnish"));
        command.arg("-f").arg(vcl).args(["-s", "malloc,64M"]);
        command.arg("-a").arg(self.varnish.http1.to_string());
        for setting in ["feature=+http2", "timeout_idle=1", "timeout_linger=0.05"] {
            command.args(["-p", setting]);
        }
        command
    }
}

fn wait_for_listener(address: SocketAddr) {
    for _ in 0..2000 {
        if TcpStream::connect(address).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing listens at {address}");
}

impl Drop for PeerServers {
    fn drop(&mut self) {
        for child in &mut self.children {
            // SIGTERM, unlike SIGKILL, lets the server stop its children.
            let pid = child.id().to_string();
            let _ = Command::new("kill").args(["-TERM", &pid]).status();
            let _ = child.wait();
        }
    }
}
