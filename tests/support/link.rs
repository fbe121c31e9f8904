//! Emulated links for tests, through the binary: `headwater lab link` and `lab exec`.
//!
//! Include it with `#[path = "../support/link.rs"] mod link;`.
#![allow(dead_code)] // Each test binary uses a part of it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// What servers at the server's end are reached by from the client's.
pub const SERVER: &str = "10.77.0.2";

/// A link that stands, with a namespace at either end. When dropped it goes, and with it whatever
/// still runs at its ends.
pub struct Bed {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What `lab exec` finds it by.
    pub name: String,
}

impl Bed {
    /// `headwater lab link` with these arguments, such as `["--rate", "10mbit", "--delay", "20ms"]`.
    /// None, said aloud, where this machine makes no links (no root, no TUN).
    pub fn start(test: &str, args: &[&str]) -> Option<Bed> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headwater"))
            .args(["lab", "link", "--until-eof", "--json", "-"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let (mut why, code) = (String::new(), child.wait().unwrap().code());
            let mut stderr = child.stderr.take().unwrap();
            stderr.read_to_string(&mut why).unwrap();
            assert_eq!(code, Some(3), "{why}");
            println!("SKIPPED {test}: {why}");
            return None;
        }
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        let name = said["link"].as_str().unwrap().to_owned();
        Some(Bed {
            child,
            stdout,
            name,
        })
    }

    /// A command that will run at the client's end. The process started is the program's own, so
    /// its pid, signals and status are too.
    pub fn at_client(&self, program: &str) -> Command {
        self.at("client", program)
    }

    /// The same at the server's end, whose address is [`SERVER`].
    pub fn at_server(&self, program: &str) -> Command {
        self.at("server", program)
    }

    fn at(&self, end: &str, program: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(["lab", "exec", &self.name, end, "--", program]);
        command
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it, and whatever still runs at its ends. Gives what it did: packets, losses, lateness.
    pub fn end(mut self) -> serde_json::Value {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
