//! The servers as serve.sh starts them, each with a folder of its own.

use crate::FILM_BYTES;
use crate::client::Client;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ENDS_WITHIN: Duration = Duration::from_secs(20);

pub struct Server {
    child: Child,
    addr: SocketAddr,
    pub film: Vec<u8>,
    _folder: tempfile::TempDir,
}

impl Server {
    /// None, said aloud, where it cannot be had.
    pub fn start(name: &str, options: &[&str]) -> Option<Server> {
        let naive = Path::new(env!("CARGO_BIN_EXE_naive"));
        let headwater = match std::env::var_os("HEADWATER") {
            Some(path) => PathBuf::from(path),
            None => naive.with_file_name("headwater"),
        };
        if let Some(why) = lacks(name, &headwater) {
            println!("SKIPPED baseline {name}: {why}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let film = film();
        let films = folder.path().join("films");
        std::fs::create_dir_all(films.join("season")).unwrap();
        std::fs::write(films.join("film.mp4"), &film).unwrap();
        std::fs::write(films.join("season/episode.mp4"), "Lions").unwrap();
        std::fs::write(folder.path().join("secret.mp4"), "secret").unwrap();
        let mut command = Command::new(root().join("baselines/serve.sh"));
        command.args([name, "--listen", "127.0.0.1:0"]).arg(films);
        command.args(options);
        command.env("NAIVE", naive).env("HEADWATER", headwater);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // Headwater says other things before.
        while !line.starts_with("listening on http://") {
            line.clear();
            let count = stdout.read_line(&mut line).unwrap();
            assert!(count > 0, "{name} ended before it listened");
        }
        let addr = line.trim_end().rsplit('/').next().unwrap().parse().unwrap();
        Some(Server {
            child,
            addr,
            film,
            _folder: folder,
        })
    }

    pub fn client(&self) -> Client {
        Client::to(self.addr)
    }

    /// SIGTERM ends it, also while connections are open: in order, or by the signal itself.
    pub fn end(mut self) {
        let mut idle = self.client();
        idle.ask("HEAD", "/film.mp4", &[]);
        self.terminate();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < ENDS_WITHIN, "SIGTERM does not end it");
            std::thread::sleep(Duration::from_millis(10));
        };
        use std::os::unix::process::ExitStatusExt as _;
        assert!(status.success() || status.signal() == Some(15), "{status}");
    }

    fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Politely: nginx's workers outlive its being killed.
            self.terminate();
            let _ = self.child.wait();
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is missing for a server.
fn lacks(name: &str, headwater: &Path) -> Option<String> {
    let made = root().join("target/baselines");
    let absent = match name {
        "c" | "c-sanitized" | "node" | "deno" => {
            let brought = Command::new(root().join("scripts/baselines.sh")).status();
            assert!(brought.unwrap().success(), "the C server does not compile");
            match name {
                "c" => !made.join("c-server").exists(),
                "c-sanitized" => !made.join("c-server-sanitized").exists(),
                _ => !made.join("node_modules/.stamp").exists(),
            }
        }
        "nginx" => Command::new("nginx").arg("-v").output().is_err(),
        "headwater" => !headwater.exists(),
        _ => false,
    };
    absent.then(|| "scripts/install.sh test and scripts/baselines.sh bring it".to_owned())
}

/// Bytes in which no stretch is like another.
fn film() -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(&mut next).take(FILM_BYTES).collect()
}
