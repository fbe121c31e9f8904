//! Support for tests: `headwater` servers, a simple HTTP client, fixtures, and temporary folders.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A running `headwater` program that serves HTTP. Dropping it kills the process.
pub struct HeadwaterServer {
    child: Child,
    pub addr: SocketAddr,
}

/// A response. A chunked body is already decoded.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HeadwaterServer {
    /// Serves a folder or file in two-second segments, so that short films have several segments.
    pub fn serve_source(source: &Path) -> HeadwaterServer {
        HeadwaterServer::serve(&[source.to_str().unwrap(), "--segment", "2s"])
    }

    /// Starts `headwater serve` with these arguments on a free port. The server accepts connections
    /// when this function returns.
    pub fn serve(args: &[&str]) -> HeadwaterServer {
        HeadwaterServer::start_program("serve", args)
    }

    /// Starts a program of `headwater`, such as `edge`, with these arguments.
    pub fn start_program(program: &str, args: &[&str]) -> HeadwaterServer {
        HeadwaterServer::spawn(Command::new(env!("CARGO_BIN_EXE_headwater")), program, args)
    }

    /// Starts `headwater serve` as an unprivileged user when the tests run as root. Returns None if
    /// setpriv does not work.
    pub fn serve_unprivileged(folder: &TempFolder, args: &[&str]) -> Option<HeadwaterServer> {
        let binary = folder.0.join("headwater");
        std::fs::copy(env!("CARGO_BIN_EXE_headwater"), &binary).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        let works = command.arg("true").status().is_ok_and(|s| s.success());
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(binary);
        works.then(|| HeadwaterServer::spawn(command, "serve", args))
    }

    /// Starts `headwater serve` with these environment variables.
    pub fn serve_with_environment(variables: &[(&str, &str)], args: &[&str]) -> HeadwaterServer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.envs(variables.iter().copied());
        HeadwaterServer::spawn(command, "serve", args)
    }

    /// Appends the name of a `headwater` program, `--listen` and the arguments to a command, and
    /// starts the command.
    pub fn spawn(mut command: Command, program: &str, args: &[&str]) -> HeadwaterServer {
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
            if let Some((_, addr)) = line
                .strip_prefix("listening on ")
                .and_then(|url| url.split_once("://"))
            {
                break addr.parse().unwrap();
            }
        };
        HeadwaterServer { child, addr }
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the peak resident memory of the process.
    pub fn peak_memory_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<u64>().unwrap() << 10
    }

    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.addr)
    }

    pub fn get(&self, target: &str) -> HttpResponse {
        self.request("GET", target, &[])
    }

    /// Returns the body of a 200 response. Panics with the server's reason if the status is not
    /// 200.
    pub fn get_body(&self, target: &str) -> Vec<u8> {
        let response = self.get(target);
        assert_eq!(
            response.status,
            200,
            "{target}: {}",
            response.error_reason()
        );
        response.body
    }

    pub fn get_text(&self, target: &str) -> String {
        String::from_utf8(self.get_body(target)).unwrap()
    }

    pub fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> HttpResponse {
        send_request(self.addr, method, target, headers)
    }

    /// Opens a connection for several requests.
    pub fn connect(&self) -> TcpStream {
        connect_to(self.addr)
    }

    /// Sends raw bytes. Returns None if the connection closes without a response.
    pub fn send_raw(&self, bytes: &[u8], no_body: bool) -> Option<HttpResponse> {
        let mut stream = self.connect();
        // Ignores errors, because a server may refuse a request and close the connection before it
        // has read everything.
        let _ = stream.write_all(bytes);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        HttpResponse::parse(&response, no_body)
    }

    /// Returns whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the process has exited by itself, and returns the exit code.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends SIGTERM, waits and returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.send_signal("TERM");
        self.child.wait().unwrap().code()
    }

    /// Sends a signal. The parameter is the name of the signal without the prefix SIG.
    pub fn send_signal(&self, name: &str) {
        let (signal, pid) = (format!("-{name}"), self.child.id().to_string());
        Command::new("kill").args([&signal, &pid]).status().unwrap();
    }
}

impl Drop for HeadwaterServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HttpResponse {
    fn parse(bytes: &[u8], no_body: bool) -> Option<HttpResponse> {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response = HttpResponse {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        };
        if response.header("transfer-encoding") == Some("chunked") && !no_body {
            response.body = decode_chunks(&response.body)?;
        }
        Some(response)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the status and the reason that the server gives for a refusal.
    pub fn error_reason(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]).into_owned();
        let reason = self.header("headwater-error").map(str::to_owned);
        format!("{} {}", self.status, reason.unwrap_or(body))
    }
}

/// Sends a request without a body to any local server.
pub fn send_request(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> HttpResponse {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let mut stream = connect_to(address);
    stream.write_all(head.as_bytes()).unwrap();
    let bytes = read_one_response(&mut stream, method == "HEAD");
    HttpResponse::parse(&bytes, method == "HEAD")
        .unwrap_or_else(|| panic!("{method} {target:.60}: no response"))
}

fn connect_to(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let timeout = Some(Duration::from_secs(30));
    stream.set_read_timeout(timeout).unwrap();
    stream
}

/// Reads until the response is complete, or the connection is closed. The requests do not contain
/// `Connection: close`. Players do not send this header either, and the server handles requests
/// with this header differently.
fn read_one_response(stream: &mut TcpStream, no_body: bool) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while !is_complete(&bytes, no_body) {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    bytes
}

fn is_complete(bytes: &[u8], no_body: bool) -> bool {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return false;
    };
    let Some(head) = HttpResponse::parse(&bytes[..end + 4], true) else {
        return false;
    };
    let body = &bytes[end + 4..];
    let len = head
        .header("content-length")
        .and_then(|len| len.parse().ok());
    no_body
        || matches!(head.status, 204 | 304)
        || len.is_some_and(|len: usize| body.len() >= len)
        || (head.header("transfer-encoding") == Some("chunked") && decode_chunks(body).is_some())
}

fn decode_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
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

/// Reports a check that cannot run here. Writes directly to standard error, because the test
/// harness captures the output of tests that pass.
pub fn report_skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {why}");
}

/// Runs `fixtures/make.sh` and returns the folder of the fixtures. Reports a skip and returns None
/// if ffmpeg is not installed.
pub fn fixtures_folder() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| {
        if Command::new("ffprobe").arg("-version").output().is_err() {
            report_skip("ffmpeg is not installed");
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

/// Returns the path of a film. Reports a skip and returns None if the installed
/// encoders cannot make this film.
pub fn fixture_path(name: &str) -> Option<PathBuf> {
    let path = fixtures_folder()?.join("library").join(name);
    if !path.exists() {
        report_skip(&format!("no fixture {name}"));
        return None;
    }
    Some(path)
}

/// A new folder for one test, removed when dropped.
pub struct TempFolder(pub PathBuf);

impl TempFolder {
    pub fn new() -> TempFolder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("headwater-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        TempFolder(path)
    }

    /// Writes a file below the folder and returns its path.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
