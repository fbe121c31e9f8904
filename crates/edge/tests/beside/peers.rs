//! Varnish and nginx as their packages install them, in front of the same origin.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server process that is stopped when dropped.
pub struct PeerServer {
    child: Child,
    pub address: SocketAddr,
}

pub fn varnish(folder: &Path, origin: SocketAddr) -> Option<PeerServer> {
    let vcl = folder.join("default.vcl");
    let (host, port) = (origin.ip(), origin.port());
    let text = format!("vcl 4.1; backend o {{ .host = \"{host}\"; .port = \"{port}\"; }}");
    std::fs::write(&vcl, text).unwrap();
    let address = free();
    let mut command = Command::new("varnishd");
    command.arg("-F").arg("-n").arg(folder.join("varnish"));
    command.arg("-f").arg(vcl).args(["-s", "malloc,64M", "-a"]);
    PeerServer::start(command.arg(address.to_string()), address)
}

pub fn nginx(folder: &Path, origin: SocketAddr) -> Option<PeerServer> {
    let (address, dir) = (free(), folder.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {dir}/n-{kind};"))
        .concat();
    let config = format!(
        "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
         events {{ worker_connections 512; }}
         http {{ access_log off; {temporary}
           proxy_cache_path {dir}/cache keys_zone=k:1m use_temp_path=off;
           server {{ listen {address}; location / {{
             proxy_pass http://{origin}; proxy_http_version 1.1; proxy_set_header Connection \"\";
             proxy_cache k; proxy_cache_revalidate on; }} }} }}"
    );
    let path = folder.join("nginx.conf");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new("nginx");
    command
        .arg("-c")
        .arg(path)
        .arg("-e")
        .arg(folder.join("start.log"));
    PeerServer::start(&mut command, address)
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

impl PeerServer {
    fn start(command: &mut Command, address: SocketAddr) -> Option<PeerServer> {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = quiet.spawn().ok()?;
        let peer = PeerServer { child, address };
        for _ in 0..2000 {
            if TcpStream::connect(address).is_ok() {
                return Some(peer);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{command:?} does not listen");
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        // SIGTERM, unlike SIGKILL, lets the server stop its children.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
    }
}
