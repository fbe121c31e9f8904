//! A NATS server, hosts that connect to it, and an experiment document that tests adapt.

use crate::left::{Mark, wait};
use crate::network::{HUB, Network};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An experiment that runs unchanged on one machine and on three. Each part reports the factor plus
/// the number of the part.
const DOCUMENT: &str = r#"
name = "In parts"
question = "Are the measurements of several parts merged correctly?"
rounds = 2
sweep.factor = [10, 20]

[versions]
name = "echo printed on $(readlink /proc/self/ns/net)"

[bounds] # Nothing here depends on time.
steal = "100%"
sink-late = "1h"

[source.page]
make = "echo hello > page"

[place.origin]
on = "origin"

[place.viewers]
on = "load"
agents = 2

[function.origin]
run = "exec python3 -m http.server --bind 0.0.0.0 --directory {page} {port}"
at = "origin"
port = 8080
input = ["page"]

[sink.get]
run = '''
test "$(curl -sf http://{origin}/page)" = hello || exit 9
touch STEPS/measure-{part}-{parts}
test -e STEPS/quick || sleep NAP
headwater load rate http://{origin}/page --rate 40 --duration 500ms --hdr rate.hdr --json rate.json >&2
echo "{\"x\": $(({factor} + {part})), \"parts\": {parts}}"
'''
at = "viewers"
input = ["origin"]
warm-up = 0
timeout = "60s"

[sink.get.measure]
x = "sum /x"
pieces = "most /parts"
requests = "rate.hdr */due count"
p50-ms = "rate.hdr */due p50 / 1e6"
"#;

/// A process that is killed when dropped.
pub struct Process(pub Child);

impl Process {
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    /// Waits until the process exits, and fails if this takes longer than `limit`.
    pub fn wait_within(&mut self, limit: Duration) -> Option<i32> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "still running after {limit:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Ends the process with SIGTERM, and checks that it exits with success.
    pub fn end(mut self) {
        self.signal("-TERM");
        assert_eq!(self.wait(), Some(0));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Bench {
    folder: PathBuf,
    pub network: Network,
    _nats: Process,
    pub mark: Mark,
}

impl Bench {
    /// Returns `None` and prints a message if nats-server is not installed or networks cannot be
    /// created.
    pub fn new(test: &str, nats: &[&str], nap: &str) -> Option<Bench> {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/nats/bin/nats-server");
        if !server.exists() {
            println!("SKIPPED {test}: no nats-server; run scripts/nats.sh to install it");
            return None;
        }
        let network = Network::new(test)?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("steps")).unwrap();
        std::fs::create_dir_all(folder.join("tmp")).unwrap();
        let mut command = network.command(0, server.to_str().unwrap());
        command
            .args(["-a", HUB, "-p", "4222"])
            .args(nats)
            .current_dir(&folder);
        let log = std::fs::File::create(folder.join("nats.log")).unwrap();
        let nats = command.stdout(Stdio::null()).stderr(log).spawn();
        let nats = Process(nats.unwrap());
        let bench = Bench {
            folder,
            network,
            _nats: nats,
            mark: Mark::new(),
        };
        wait("NATS", || {
            bench.text("nats.log").contains("Server is ready")
        });
        let document = DOCUMENT
            .replace("STEPS", &bench.path("steps"))
            .replace("NAP", nap);
        std::fs::write(bench.path("parts.toml"), document).unwrap();
        Some(bench)
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn has_file(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }

    /// Returns a `headwater lab` command on a host.
    pub fn lab(&self, host: usize, arguments: &[&str]) -> Command {
        let mut command = self.network.command(host, env!("CARGO_BIN_EXE_headwater"));
        self.mark.put(&mut command);
        command.env("TMPDIR", self.path("tmp"));
        command.arg("lab").args(arguments);
        command
    }

    /// Starts an agent on a host and waits until it is ready.
    pub fn agent(&self, host: usize, name: &str, arguments: &[&str]) -> Process {
        self.agent_at(&format!("nats://{HUB}:4222"), host, name, arguments)
    }

    pub fn agent_at(&self, url: &str, host: usize, name: &str, arguments: &[&str]) -> Process {
        let log = std::fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut command = self.lab(host, &["agent", "--nats", url, "--name", name]);
        let agent = Process(command.args(arguments).stdout(log).spawn().unwrap());
        wait("an agent", || {
            self.text(&format!("{name}.log")).contains("is ready")
        });
        agent
    }

    pub fn start_three_agents(&self) -> [Process; 3] {
        [
            self.agent(1, "one", &["--label", "origin"]),
            self.agent(2, "two", &["--label", "load"]),
            self.agent(3, "three", &["--label", "load"]),
        ]
    }

    /// Returns the command that runs the document on agents, with the controller on the hub.
    pub fn run_command(&self) -> Command {
        self.run_at(&format!("nats://{HUB}:4222"), &[])
    }

    /// Returns the command that runs the document on at least `agents` agents.
    pub fn run_with_agents(&self, agents: usize) -> Command {
        let (document, out, url) = (
            self.path("parts.toml"),
            self.path("out"),
            format!("nats://{HUB}:4222"),
        );
        let agents = agents.to_string();
        let arguments = [
            "run", &document, "--out", &out, "--nats", &url, "--agents", &agents,
        ];
        self.lab(0, &arguments)
    }

    /// Returns the command that runs the document on agents, with this NATS server URL and the
    /// additional arguments `more`.
    pub fn run_at(&self, url: &str, more: &[&str]) -> Command {
        let (document, out) = (self.path("parts.toml"), self.path("out"));
        let arguments = [
            "run", &document, "--out", &out, "--nats", url, "--agents", "2",
        ];
        self.lab(0, &[&arguments, more].concat())
    }

    /// Waits until both parts have started to measure.
    pub fn midway(&self) {
        wait("both parts", || {
            self.has_file("steps/measure-0-2") && self.has_file("steps/measure-1-2")
        });
    }

    pub fn records(&self) -> Vec<Value> {
        self.lines("out/runs.jsonl")
    }

    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn edit(&self, from: &str, to: &str) {
        let document = self.text("parts.toml");
        assert!(document.contains(from), "{from}");
        std::fs::write(self.path("parts.toml"), document.replace(from, to)).unwrap();
    }

    /// Reduces the document to one run.
    pub fn once(&self) {
        self.edit(
            "rounds = 2\nsweep.factor = [10, 20]",
            "rounds = 1\nsweep.factor = [10]",
        );
    }

    /// Returns the number of temporary files and folders of agents.
    pub fn count_temporary_files(&self) -> usize {
        std::fs::read_dir(self.path("tmp")).unwrap().count()
    }
}
