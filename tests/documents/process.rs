//! Runs the program: servers of the built-in film, load tests, and commands that run to their end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server that is killed when dropped.
pub struct RunningServer {
    child: Child,
    pub address: SocketAddr,
}

impl RunningServer {
    /// Sends SIGTERM and waits until the server has exited with success.
    pub fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `headwater ARGUMENTS` on a free port and waits until it accepts connections.
pub fn start_server(arguments: &[&str]) -> RunningServer {
    let mut child = headwater()
        .args(arguments)
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("listening on http://")?.parse().unwrap()))
        .expect("the server printed no address");
    RunningServer { child, address }
}

/// Starts a load test of a server. The returned address serves the metrics of the load test.
pub fn start_load(of: SocketAddr) -> RunningServer {
    let mut child = headwater()
        .args(["load", "rate", &format!("http://{of}/Headwater/.mpd")])
        .args(["--duration", "10min", "--metrics", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let address = lines
        .find_map(|line| {
            let address = line.strip_prefix("metrics on http://")?;
            Some(address.strip_suffix("/metrics")?.parse().unwrap())
        })
        .expect("the load test printed no address");
    // Reads the rest of the output, so that progress messages cannot fill the pipe and block the
    // program.
    std::thread::spawn(move || lines.for_each(drop));
    RunningServer { child, address }
}

/// Runs `headwater ARGUMENTS` to its end and returns its standard output.
pub fn run_to_end(arguments: &[&str]) -> String {
    let output = headwater().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `headwater ARGUMENTS` to its end, and ignores the exit status.
pub fn run_with_any_status(arguments: &[&str]) {
    headwater()
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .unwrap();
}

/// Requests a path, and returns the status and the body. `fields` contains complete header lines.
pub fn get(address: SocketAddr, path: &str, fields: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.get(9..12).and_then(|code| code.parse().ok());
    let body = text.split_once("\r\n\r\n").unwrap_or_default().1;
    (status.expect("no status line"), body.to_owned())
}

/// Sends a request without a body. Returns the status, and the media type without its parameters.
pub fn request_head(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &str,
) -> (u16, Option<String>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{fields}Content-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.get(9..12).and_then(|code| code.parse().ok());
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let found = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let media_type = found.map(|(_, value)| value.split(';').next().unwrap_or_default().to_owned());
    (status.expect("no status line"), media_type)
}

fn headwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}
