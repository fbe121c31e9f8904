//! Emulated links for tests, which use the commands `headwater lab link` and `headwater lab exec`.
//!
//! Include it with `#[path = "../support/link.rs"] mod link;`.
#![allow(dead_code)] // Each test binary uses a part of this module.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The address of the server end of a link.
pub const SERVER: &str = "10.77.0.2";

/// An emulated link with a network namespace at either end. Dropping this value removes the link
/// and ends all processes in both namespaces.
pub struct Bed {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The name of the link for `lab exec`.
    pub name: String,
}

impl Bed {
    /// Starts `headwater lab link` with these arguments, such as `["--rate", "10mbit"]`. Reports a
    /// skip and returns None if the machine cannot create links, for example without root or TUN.
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
            let (mut reason, code) = (String::new(), child.wait().unwrap().code());
            let mut stderr = child.stderr.take().unwrap();
            stderr.read_to_string(&mut reason).unwrap();
            assert_eq!(code, Some(3), "{reason}");
            println!("SKIPPED {test}: {reason}");
            return None;
        }
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        let name = started["link"].as_str().unwrap().to_owned();
        Some(Bed {
            child,
            stdout,
            name,
        })
    }

    /// Returns a command for the client end. `lab exec` replaces itself with the program, so the
    /// process id, signals and exit status are those of the program.
    pub fn at_client(&self, program: &str) -> Command {
        self.at("client", program)
    }

    /// Returns a command for the server end, whose address is [`SERVER`].
    pub fn at_server(&self, program: &str) -> Command {
        self.at("server", program)
    }

    fn at(&self, end: &str, program: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(["lab", "exec", &self.name, end, "--", program]);
        command
    }

    /// Kills the process of the link with SIGKILL, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Removes the link and ends all processes in its namespaces. Returns the statistics of the
    /// link: packets, losses and lateness.
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
