//! An nginx of a test's own: what load is tested against, as it must not be tested against ours.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[path = "port.rs"]
pub mod port;

/// Ended when dropped.
pub struct Nginx {
    child: Child,
    pub addr: SocketAddr,
}

impl Nginx {
    /// Serves the folder `root` on a free port of 127.0.0.1; `listen` are more words of its listen
    /// line, `server` is more of its server block, in which PORT stands for the port. Its files, `access.log` among them, lie in
    /// `folder`. None, said aloud, where there is no nginx.
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
            println!("SKIPPED: there is no nginx (scripts/install.sh test brings it)");
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
            "nginx does not listen: {}",
            std::fs::read_to_string(log).unwrap_or_default()
        );
    }

    /// The URL of a file.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.addr)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker ends with it on SIGTERM, and would outlive it on SIGKILL.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
    }
}
