//! Starts nginx and Varnish as processes, for comparison with Headwater.
//!
//! Include it with `#[path = "../support/peer_process.rs"] mod peer_process;`.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server process that is stopped when dropped.
pub struct PeerProcess(Child);

impl PeerProcess {
    /// Starts the program, and waits until it listens at each address. Returns `None` if the
    /// program is not installed.
    pub fn start(mut command: Command, addresses: &[SocketAddr]) -> Option<PeerProcess> {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = PeerProcess(quiet.spawn().ok()?);
        addresses.iter().copied().for_each(wait_for_listener);
        Some(process)
    }
}

fn wait_for_listener(address: SocketAddr) {
    for _ in 0..6000 {
        if TcpStream::connect(address).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing listens at {address}");
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // Sends SIGTERM instead of SIGKILL, so that the server can stop its child processes.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.0.wait();
    }
}

/// Returns the command that starts nginx with this content of the `http` block. All files of nginx
/// are in `folder`.
pub fn nginx_command(folder: &Path, http: &str) -> Command {
    let dir = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {dir}/n-{kind};"))
        .concat();
    let config = format!(
        "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
         events {{ worker_connections 512; }}
         http {{ access_log off; {temporary} {http} }}"
    );
    let path = folder.join("nginx.conf");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-c").arg(path);
    command.arg("-e").arg(folder.join("start.log"));
    command
}

/// Returns the command that starts Varnish at `address` in front of the origin.
pub fn varnish_command(folder: &Path, origin: SocketAddr, address: SocketAddr) -> Command {
    let vcl = folder.join("default.vcl");
    let (host, port) = (origin.ip(), origin.port());
    let text = format!("vcl 4.1; backend o {{ .host = \"{host}\"; .port = \"{port}\"; }}");
    std::fs::write(&vcl, text).unwrap();
    let mut command = Command::new("varnishd");
    command.arg("-F").arg("-n").arg(folder.join("varnish"));
    command.arg("-f").arg(vcl).args(["-s", "malloc,64M"]);
    command.arg("-a").arg(address.to_string());
    command
}
