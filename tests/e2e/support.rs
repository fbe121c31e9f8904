//! One-line servers, a plain HTTP client, fixtures and folders that clean up after themselves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A running `headwater serve`; killed when dropped.
pub struct Server {
    child: Child,
    pub addr: SocketAddr,
}

/// An answer, with chunked bodies put together.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Server {
    /// Serves a folder or file in two-second segments, so that short films have several.
    pub fn of(source: &Path) -> Server {
        Server::start(&[source.to_str().unwrap(), "--segment", "2s"])
    }

    /// `headwater serve` with these arguments, on a free port, ready when this returns.
    pub fn start(args: &[&str]) -> Server {
        Server::start_as("serve", args)
    }

    /// Another server of ours (`edge`) with these arguments.
    pub fn start_as(program: &str, args: &[&str]) -> Server {
        Server::run(Command::new(env!("CARGO_BIN_EXE_headwater")), program, args)
    }

    /// The same by a user who may read little, where we are root; None where that cannot be.
    pub fn start_as_nobody(folder: &Folder, args: &[&str]) -> Option<Server> {
        let binary = folder.0.join("headwater");
        std::fs::copy(env!("CARGO_BIN_EXE_headwater"), &binary).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        let works = command.arg("true").status().is_ok_and(|s| s.success());
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(binary);
        works.then(|| Server::run(command, "serve", args))
    }

    /// `headwater serve` with these variables in its environment.
    pub fn start_with(variables: &[(&str, &str)], args: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.envs(variables.iter().copied());
        Server::run(command, "serve", args)
    }

    fn run(mut command: Command, program: &str, args: &[&str]) -> Server {
        let mut child = command
            .args([program, "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut lines = BufReader::new(stdout).lines();
        let addr = loop {
            let line = lines.next().expect("no `listening on` line").unwrap();
            if let Some(addr) = line.strip_prefix("listening on http://") {
                break addr.parse().unwrap();
            }
        };
        Server { child, addr }
    }

    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.addr)
    }

    pub fn get(&self, target: &str) -> Response {
        self.request("GET", target, &[])
    }

    /// The body of a 200, or a failure that shows what came instead.
    pub fn body(&self, target: &str) -> Vec<u8> {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.reason());
        answer.body
    }

    pub fn text(&self, target: &str) -> String {
        String::from_utf8(self.body(target)).unwrap()
    }

    pub fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.addr);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "Connection: close\r\n\r\n";
        self.raw(head.as_bytes(), method == "HEAD")
            .unwrap_or_else(|| panic!("{method} {target:.60}: no answer"))
    }

    /// A connection, for several requests.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Sends bytes as they are; None when the connection closes without an answer.
    pub fn raw(&self, bytes: &[u8], no_body: bool) -> Option<Response> {
        let mut stream = self.connect();
        // A server may refuse before it has read all, and close.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Response::parse(&answer, no_body)
    }

    /// Whether the process is still there.
    pub fn alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends SIGTERM and waits; the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }

    /// Sends a signal by its name without SIG.
    pub fn signal(&self, name: &str) {
        let (signal, pid) = (format!("-{name}"), self.child.id().to_string());
        Command::new("kill").args([&signal, &pid]).status().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Response {
    fn parse(bytes: &[u8], no_body: bool) -> Option<Response> {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response = Response {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        };
        if response.header("transfer-encoding") == Some("chunked") && !no_body {
            response.body = unchunk(&response.body)?;
        }
        Some(response)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The reason that the server gives for a refusal.
    pub fn reason(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]).into_owned();
        let reason = self.header("headwater-error").map(str::to_owned);
        format!("{} {}", self.status, reason.unwrap_or(body))
    }
}

fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|w| w == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..end]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 4 + size..)?;
    }
}

/// Says that something is not judged here; past the test harness, which keeps the words of tests
/// that pass to itself.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {why}");
}

/// The folder that `fixtures/make.sh` fills, or None (said aloud) where there is no ffmpeg.
pub fn fixtures() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| {
        if Command::new("ffprobe").arg("-version").output().is_err() {
            skip("ffmpeg is not installed");
            return None;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let made = Command::new(root.join("fixtures/make.sh"))
            .status()
            .unwrap();
        assert!(made.success(), "fixtures/make.sh failed");
        Some(root.join("target/fixtures"))
    })
    .as_deref()
}

/// A file of the served fixtures; None (said aloud) when the encoders at hand could not make it.
pub fn fixture(name: &str) -> Option<PathBuf> {
    let path = fixtures()?.join("library").join(name);
    if !path.exists() {
        skip(&format!("no fixture {name}"));
        return None;
    }
    Some(path)
}

/// A folder of its own for one test, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("headwater-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a file in it.
    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
