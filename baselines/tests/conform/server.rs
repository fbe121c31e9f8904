//! Servers started by serve.sh, each with its own folder.

use crate::FILM_BYTES;
use crate::client::Client;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

pub struct Server {
    child: Child,
    addr: SocketAddr,
    pub film: Vec<u8>,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server. Prints a message and returns `None` if a prerequisite is missing.
    pub fn start(name: &str, options: &[&str]) -> Option<Server> {
        let naive = Path::new(env!("CARGO_BIN_EXE_naive"));
        let headwater = match std::env::var_os("HEADWATER") {
            Some(path) => PathBuf::from(path),
            None => naive.with_file_name("headwater"),
        };
        if let Some(reason) = missing_prerequisite(name, &headwater) {
            println!("SKIPPED baseline {name}: {reason}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let film = generate_film();
        let films = folder.path().join("films");
        std::fs::create_dir_all(films.join("season")).unwrap();
        std::fs::write(films.join("film.mp4"), &film).unwrap();
        std::fs::write(films.join("season/episode.mp4"), "Lions").unwrap();
        std::fs::write(folder.path().join("secret.mp4"), "secret").unwrap();
        let mut command = Command::new(repository_root().join("baselines/serve.sh"));
        command.args([name, "--listen", "127.0.0.1:0"]).arg(films);
        command.args(options);
        command.env("NAIVE", naive).env("HEADWATER", headwater);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // Skips the lines that Headwater prints before its address.
        while !line.starts_with("listening on http://") {
            line.clear();
            let count = stdout.read_line(&mut line).unwrap();
            assert!(count > 0, "{name} exited before it listened");
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
        Client::connect(self.addr)
    }

    /// Ends the server with SIGTERM while a connection is open. The server must exit with success,
    /// or be terminated by the signal.
    pub fn end(mut self) {
        let mut idle = self.client();
        idle.request("HEAD", "/film.mp4", &[]);
        self.terminate();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                began.elapsed() < EXIT_TIMEOUT,
                "SIGTERM does not end the server"
            );
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
            // Sends SIGTERM instead of SIGKILL, because nginx's workers would survive a SIGKILL of
            // their parent.
            self.terminate();
            let _ = self.child.wait();
        }
    }
}

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the missing prerequisite of a server, or None if the server can be started.
fn missing_prerequisite(name: &str, headwater: &Path) -> Option<String> {
    let made = repository_root().join("target/baselines");
    let absent = match name {
        "c" | "c-sanitized" | "node" | "deno" => {
            let brought = Command::new(repository_root().join("scripts/baselines.sh")).status();
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
    absent.then(|| "run scripts/install.sh test and scripts/baselines.sh".to_owned())
}

/// Generates pseudorandom bytes, so that different ranges have different bytes.
fn generate_film() -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(&mut next).take(FILM_BYTES).collect()
}
