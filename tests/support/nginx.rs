//! An nginx process for one test. The load tester is tested against nginx instead of Headwater, so
//! that errors in Headwater's server and client cannot hide each other.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[path = "port.rs"]
pub mod port;

/// A running nginx, stopped when dropped.
pub struct Nginx {
    child: Child,
    pub addr: SocketAddr,
}

impl Nginx {
    /// Serves the folder `root` on a free port of 127.0.0.1. `listen` is added to the listen
    /// directive and `server` to the server block, where PORT stands for the port. The
    /// configuration and `access.log` are in `folder`. Reports a skip and returns None if nginx is
    /// not installed.
    pub fn of(folder: &Path, root: &Path, listen: &str, server: &str) -> Option<Nginx> {
        let addr = SocketAddr::from(([127, 0, 0, 1], port::free()));
        let (dir, root) = (folder.display(), root.display());
        let server = server.replace("PORT", &addr.port().to_string());
        let config = format!(
            "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
             events {{ worker_connections 512; }}
             http {{ access_log {dir}/access.log; client_body_temp_path {dir}/t1;
               proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4;
               scgi_temp_path {dir}/t5;
               server {{ listen {addr} {listen}; root {root}; {server} }} }}"
        );
        let path = folder.join("nginx.conf");
        std::fs::write(&path, config).unwrap();
        let log = folder.join("start.log");
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&path).arg("-e").arg(&log);
        let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            println!("SKIPPED: nginx is not installed; run scripts/install.sh test");
            return None;
        };
        let nginx = Nginx { child, addr };
        for _ in 0..500 {
            if TcpStream::connect(addr).is_ok() {
                return Some(nginx);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!(
            "nginx did not start: {}",
            std::fs::read_to_string(log).unwrap_or_default()
        );
    }

    /// Returns the URL of a file.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.addr)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Sends SIGTERM, because the worker process would survive a SIGKILL of its parent.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
    }
}
