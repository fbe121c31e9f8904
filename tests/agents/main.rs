//! Experiments on several hosts: agents in network namespaces around a real NATS server.

#![allow(clippy::unwrap_used)]

#[path = "../support/left.rs"]
mod left;
mod network;
mod secret;

use left::{Mark, wait};
use network::{HUB, Network};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Runs on one machine and on three without change: parts say so themselves.
const DOCUMENT: &str = r#"
name = "In parts"
question = "Is what parts measure put together rightly?"
rounds = 2
sweep.factor = [10, 20]

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
p99-ms = "rate.hdr */due p99 / 1e6"
"#;

/// A process that does not outlive its test, however that ends.
struct Process(Child);

impl Process {
    fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// As its users end it.
    fn end(mut self) {
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

struct Bench {
    folder: PathBuf,
    network: Network,
    _nats: Process,
    mark: Mark,
}

impl Bench {
    /// None, said aloud, where there is no NATS server, or networks cannot be made.
    fn new(test: &str, nats: &[&str], nap: &str) -> Option<Bench> {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/nats/bin/nats-server");
        if !server.exists() {
            println!("SKIPPED {test}: no nats-server; scripts/nats.sh brings one");
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

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn there(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }

    /// `headwater lab` on a host.
    fn lab(&self, host: usize, words: &[&str]) -> Command {
        let mut command = self.network.command(host, env!("CARGO_BIN_EXE_headwater"));
        self.mark.put(&mut command);
        command.env("TMPDIR", self.path("tmp"));
        command.arg("lab").args(words);
        command
    }

    /// An agent on a host, when it is ready.
    fn agent(&self, host: usize, name: &str, words: &[&str]) -> Process {
        self.agent_at(&format!("nats://{HUB}:4222"), host, name, words)
    }

    fn agent_at(&self, url: &str, host: usize, name: &str, words: &[&str]) -> Process {
        let log = std::fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut command = self.lab(host, &["agent", "--nats", url, "--name", name]);
        let agent = Process(command.args(words).stdout(log).spawn().unwrap());
        wait("an agent", || {
            self.text(&format!("{name}.log")).contains("is ready")
        });
        agent
    }

    fn three(&self) -> [Process; 3] {
        [
            self.agent(1, "one", &["--label", "origin"]),
            self.agent(2, "two", &["--label", "load"]),
            self.agent(3, "three", &["--label", "load"]),
        ]
    }

    /// What is typed in the hub to run the document on agents.
    fn run_words(&self) -> Command {
        self.run_at(&format!("nats://{HUB}:4222"), &[])
    }

    /// The same, where they meet elsewhere or with secrets.
    fn run_at(&self, url: &str, more: &[&str]) -> Command {
        let (document, out) = (self.path("parts.toml"), self.path("out"));
        let words = [
            "run", &document, "--out", &out, "--nats", url, "--agents", "2",
        ];
        self.lab(0, &[&words, more].concat())
    }

    /// Waits until both parts are measured.
    fn midway(&self) {
        wait("both parts", || {
            self.there("steps/measure-0-2") && self.there("steps/measure-1-2")
        });
    }

    fn records(&self) -> Vec<Value> {
        let text = self.text("out/runs.jsonl");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn edit(&self, from: &str, to: &str) {
        let document = self.text("parts.toml");
        assert!(document.contains(from), "{from}");
        std::fs::write(self.path("parts.toml"), document.replace(from, to)).unwrap();
    }

    /// One run is enough.
    fn once(&self) {
        self.edit(
            "rounds = 2\nsweep.factor = [10, 20]",
            "rounds = 1\nsweep.factor = [10]",
        );
    }

    /// What agents keep while they live.
    fn temporary(&self) -> usize {
        std::fs::read_dir(self.path("tmp")).unwrap().count()
    }
}

fn well(output: &Output) {
    let said = [&output.stdout[..], &output.stderr].concat();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

#[test]
fn one_document_on_one_machine_and_on_three() {
    let Some(bench) = Bench::new("three", &[], "0") else {
        return;
    };
    let words = [
        "run",
        &bench.path("parts.toml"),
        "--out",
        &bench.path("alone"),
    ];
    well(&bench.lab(0, &words).output().unwrap());
    let alone = bench.text("alone/runs.jsonl");
    for line in alone.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let factor: f64 = record["arm"]["factor"].as_str().unwrap().parse().unwrap();
        let values = &record["values"];
        assert_eq!(
            (&values["x"], &values["pieces"]),
            (&factor.into(), &1.0.into()),
            "{line}"
        );
        assert_eq!(values["requests"], 20.0, "{line}");
        assert!(record.get("agents").is_none(), "{line}");
    }
    let agents = bench.three();
    well(&bench.run_words().output().unwrap());
    let records = bench.records();
    assert_eq!(records.len(), 4);
    for record in &records {
        let factor: f64 = record["arm"]["factor"].as_str().unwrap().parse().unwrap();
        let values = &record["values"];
        // Parts 0 and 1, both added up; counts of histograms are those of both.
        assert_eq!(values["x"], 2.0 * factor + 1.0, "{record}");
        assert_eq!(
            (&values["pieces"], &values["requests"]),
            (&2.0.into(), &40.0.into())
        );
        assert!(values["p99-ms"].as_f64().unwrap() > 0.0, "{record}");
        let parts = &record["agents"];
        assert_eq!(parts["one"]["places"][0], "origin", "{record}");
        assert_eq!(parts["two"]["places"][0], "viewers", "{record}");
        assert_eq!(parts.as_object().unwrap().len(), 3, "{record}");
        // One machine: all have one clock, and the truth is within what is said.
        for part in parts.as_object().unwrap().values() {
            let (clock, error) = (&part["clock_us"], &part["clock_error_us"]);
            assert!(
                clock.as_f64().unwrap().abs() <= error.as_f64().unwrap() + 1.0,
                "{record}"
            );
        }
    }
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
    assert_eq!(bench.temporary(), 0);
}

#[test]
fn an_agent_that_is_killed_is_said_and_its_part_is_done_by_the_others() {
    let Some(bench) = Bench::new("killed", &[], "30") else {
        return;
    };
    bench.once();
    let [one, two, three] = bench.three();
    let log = std::fs::File::create(bench.path("run.log")).unwrap();
    let run = bench.run_words().stdout(Stdio::null()).stderr(log).spawn();
    let mut run = Process(run.unwrap());
    bench.midway();
    let mut two = two;
    two.signal("-KILL");
    two.wait();
    std::fs::write(bench.path("steps/quick"), "").unwrap();
    let code = run.wait();
    let said = bench.text("run.log");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("agent two was lost"), "{said}");
    let records = bench.records();
    assert_eq!(records.len(), 2, "{records:?}");
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(why.contains("agent two was lost"), "{why}");
    assert_eq!(records[0]["agents"].as_object().unwrap().len(), 3);
    assert_eq!(
        (&records[1]["values"]["pieces"], &records[1]["thrown"]),
        (&1.0.into(), &Value::Null)
    );
    assert!(records[1]["agents"].get("two").is_none(), "{records:?}");
    [one, three].into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
    wait("files go", || bench.temporary() == 0);
}

#[test]
fn a_function_that_dies_on_another_agent_spoils_the_run() {
    let Some(bench) = Bench::new("dies", &[], "0") else {
        return;
    };
    bench.once();
    let ill = bench.path("steps/ill");
    // What it has started goes on: sinks get what they ask for.
    bench.edit(
        "exec python3 -m http.server --bind 0.0.0.0 --directory {page} {port}",
        &format!(
            "python3 -m http.server --bind 0.0.0.0 --directory {{page}} {{port}} & \
             until test -e {ill}; do sleep 0.02; done; exit 7"
        ),
    );
    let quick = format!("test -e {}", bench.path("steps/quick"));
    let dead =
        format!("touch {ill}; while pgrep -f '[u]ntil test -e {ill}' >&2; do sleep 0.02; done");
    bench.edit(&quick, &format!("{dead}; {quick}"));
    let agents = bench.three();
    assert_eq!(bench.run_words().output().unwrap().status.code(), Some(1));
    let records = bench.records();
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(
        why.contains("agent one: function origin: it has ended"),
        "{why}"
    );
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
}

#[test]
fn an_agent_that_is_cut_off_is_lost_and_ends_what_it_runs() {
    let Some(bench) = Bench::new("cut", &[], "30") else {
        return;
    };
    bench.once();
    let agents = bench.three();
    let run = bench.run_words().stderr(Stdio::null()).spawn();
    let mut run = Process(run.unwrap());
    bench.midway();
    std::fs::write(bench.path("steps/quick"), "").unwrap();
    bench.network.ip(0, "link set v3 down").unwrap();
    assert_eq!(run.wait(), Some(0));
    let records = bench.records();
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(why.contains("agent three was lost"), "{why}");
    assert_eq!(records[1]["values"]["pieces"], 1.0, "{records:?}");
    // Both: it was told, and could not be told.
    wait("sleeps end", || {
        let left = bench.mark.processes();
        !left.iter().any(|(_, line)| line.contains("sleep 30"))
    });
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
    assert_eq!(bench.temporary(), 0);
}

#[test]
fn whoever_runs_it_may_be_killed_or_stopped_and_agents_are_free_again() {
    for how in ["-INT", "-KILL"] {
        let Some(bench) = Bench::new(&format!("run{how}"), &[], "30") else {
            return;
        };
        bench.once();
        let agents = bench.three();
        let run = bench.run_words().stderr(Stdio::null()).spawn();
        let mut run = Process(run.unwrap());
        bench.midway();
        run.signal(how);
        assert_eq!(run.wait(), (how != "-KILL").then_some(130));
        // Agents notice, end what they run, and serve the next one.
        std::fs::write(bench.path("steps/quick"), "").unwrap();
        wait("sleeps end", || {
            !bench
                .mark
                .processes()
                .iter()
                .any(|(_, line)| line.contains("sleep 30"))
        });
        well(&bench.run_words().output().unwrap());
        assert_eq!(bench.records().len(), 1);
        agents.into_iter().for_each(Process::end);
        bench.mark.nothing_stays();
        assert_eq!(bench.temporary(), 0);
    }
}
