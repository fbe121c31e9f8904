//! Runs the command `headwater lab run`, and tests that the command measures, cleans up, stops and
//! resumes.

#![allow(clippy::unwrap_used)]

#[path = "../support/left.rs"]
mod left;
mod teardown;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An experiment with a Headwater server, and with a sink whose results are known. Each test
/// replaces PIDS with the path of a file for process ids, and NAP with a sleep time in seconds.
const DOCUMENT: &str = r#"
name = "Known numbers"
question = "Is the ratio of known numbers measured correctly?"
rounds = 3
sweep.factor = [1, 3]

[bounds] # Nothing here depends on time.
link-late = "1h"
steal = "100%"

[link.access]
between = ["viewer", "server"]
rate = "50mbit"
delay = "1ms"

[function.origin]
run = "echo $$ >> PIDS; exec headwater serve --listen 0.0.0.0:{port}"
at = "server"
port = 80
health = "/readyz"

[sink.known]
run = '''
echo $$ >> PIDS
sleep NAP
curl -sf http://{origin}/Headwater/.m3u8 > playlist
echo "{\"x\": $(({round} + 1)){factor}, \"lines\": $(grep -c . playlist)}"
'''
at = "viewer"
input = ["origin"]
measure = { x = "/x", lines = "/lines" }

[[expect]]
that = "the factor 3 appends a larger digit"
quantity = "x"
of.factor = 3
to.factor = 1
at-least = 1.1
at-most = 1.2

[[expect]]
that = "the playlist is complete"
quantity = "lines"
of.factor = 1
at-least = 5
"#;

struct Bench {
    folder: PathBuf,
}

impl Bench {
    /// Prints a message and returns None if this machine cannot emulate links.
    fn new(test: &str, nap: &str) -> Option<Bench> {
        let probe = lab(&["link", "--", "true"]);
        if probe.status.code() == Some(3) {
            println!("SKIPPED {test}: {}", text(&probe.stderr));
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let bench = Bench { folder };
        let pids = bench.path("pids");
        let document = DOCUMENT.replace("PIDS", &pids).replace("NAP", nap);
        std::fs::write(bench.path("known.toml"), document).unwrap();
        Some(bench)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn edit(&self, from: &str, to: &str) {
        let document = std::fs::read_to_string(self.path("known.toml")).unwrap();
        assert!(document.contains(from));
        std::fs::write(self.path("known.toml"), document.replace(from, to)).unwrap();
    }

    fn run(&self) -> Output {
        lab(&["run", &self.path("known.toml"), "--out", &self.path("out")])
    }

    fn start(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args([
            "lab",
            "run",
            &self.path("known.toml"),
            "--out",
            &self.path("out"),
        ]);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn records(&self) -> Vec<serde_json::Value> {
        let lines = std::fs::read_to_string(self.path("out/runs.jsonl")).unwrap_or_default();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn summary(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.path("out/report.json")).unwrap()).unwrap()
    }

    /// Waits until the second run has started and its sink sleeps.
    fn midway(&self) {
        wait(|| {
            let pids = std::fs::read_to_string(self.path("pids")).unwrap_or_default();
            self.records().len() == 1 && pids.lines().count() >= 4
        });
    }

    /// Waits until no process of any run exists.
    fn nothing_stays(&self) {
        let pids = std::fs::read_to_string(self.path("pids")).unwrap();
        for pid in pids.lines() {
            let alive = format!("/proc/{pid}/cmdline");
            // The kernel may have given the process id to another process.
            let ours = || {
                std::fs::read_to_string(&alive)
                    .is_ok_and(|line| line.contains("serve") || line.contains("curl"))
            };
            wait(|| !ours());
        }
    }
}

fn lab(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("lab").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wait(until: impl Fn() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "the condition did not become true"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn known_numbers_are_measured_and_compared() {
    let Some(bench) = Bench::new("known_numbers_are_measured_and_compared", "0") else {
        return;
    };
    // A confidence interval needs at least six rounds.
    bench.edit("rounds = 3", "rounds = 6");
    let output = bench.run();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let records = bench.records();
    assert_eq!(records.len(), 12);
    let factor = |n: usize| records[n]["arm"]["factor"].as_str().unwrap();
    // Consecutive rounds start with different arms.
    assert_eq!(factor(0), factor(3));
    assert_eq!(factor(1), factor(2));
    assert_ne!(factor(0), factor(1));
    let summary = bench.summary();
    let claims = summary["claims"].as_array().unwrap();
    // Each measured value consists of two digits: the number of the round, and the factor. Round 1
    // measures 13 for factor 3, and 11 for factor 1. The ratios of the six rounds are therefore
    // 13/11, 23/21, 33/31, 43/41, 53/51 and 63/61.
    let median = ((33.0 / 31.0) * (43.0_f64 / 41.0)).sqrt();
    assert!(
        (claims[0]["value"].as_f64().unwrap() - median).abs() < 1e-9,
        "{summary}"
    );
    assert_eq!(claims[0]["n"], 6);
    assert_eq!(claims[1]["verdict"], "as_expected", "{summary}");
    let of = &summary["arms"][0]["values"];
    assert_eq!(of["x"]["mean"], 36.0, "{summary}");
    assert!(
        of["access.down-bytes"]["min"].as_f64() > Some(500.0),
        "{summary}"
    );
    bench.nothing_stays();
    assert!(!Path::new(&bench.path("out/scratch-0")).exists());
    // Standard output is a summary that ends with the path of the report.
    let output_text = text(&output.stdout);
    assert!(output_text.lines().count() < 10, "{output_text}");
    assert_eq!(
        output_text.lines().last(),
        Some(bench.path("out/report.html").as_str())
    );
    // A repeated command measures nothing and prints the same summary.
    let again = bench.run();
    assert_eq!((again.stdout, bench.records().len()), (output.stdout, 12));
    let report = lab(&["report", &bench.path("out")]);
    assert_eq!(report.status.code(), Some(0));
    // An output folder of another document is refused with exit status 1. In a new folder, exit
    // status 1 means that a claim fails.
    bench.edit("at-least = 1.1\nat-most = 1.2", "at-least = 1.2");
    assert_eq!(bench.run().status.code(), Some(1));
    assert_eq!(bench.records().len(), 12);
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let refuted = bench.run();
    assert_eq!(refuted.status.code(), Some(1));
    assert!(
        std::fs::read_to_string(bench.path("out/report.md"))
            .unwrap()
            .contains("| not as expected |"),
        "{}",
        text(&refuted.stdout)
    );
}

#[test]
fn raw_records_reproduce_the_report_exactly() {
    let Some(bench) = Bench::new("raw_records_reproduce_the_report", "0") else {
        return;
    };
    bench.edit("rounds = 3", "rounds = 2");
    assert_eq!(bench.run().status.code(), Some(0));
    let again = bench.folder.join("again");
    std::fs::create_dir_all(&again).unwrap();
    for name in ["document.toml", "machine.jsonl", "runs.jsonl.zst"] {
        std::fs::copy(bench.folder.join("out").join(name), again.join(name)).unwrap();
    }
    let output = lab(&["report", again.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let plots = list(&bench.folder.join("out/plots"));
    assert!(!plots.is_empty());
    let reports =
        ["report.html", "report.json", "report.md"].map(|name| bench.folder.join("out").join(name));
    for path in reports.iter().chain(&plots) {
        let inside = path.strip_prefix(bench.folder.join("out")).unwrap();
        let read = |path: &Path| std::fs::read(path).unwrap();
        assert!(
            read(path) == read(&again.join(inside)),
            "{}",
            inside.display()
        );
    }
}

#[test]
fn a_folder_with_only_compressed_records_resumes() {
    let Some(bench) = Bench::new("only_compressed_records_resume", "0") else {
        return;
    };
    bench.edit("rounds = 3", "rounds = 1");
    assert_eq!(bench.run().status.code(), Some(0));
    let before = bench.records();
    assert_eq!(before.len(), 2);
    std::fs::remove_file(bench.path("out/runs.jsonl")).unwrap();
    assert_eq!(bench.run().status.code(), Some(0));
    assert_eq!(bench.records(), before);
}

#[test]
fn concurrent_runs_are_isolated() {
    let Some(bench) = Bench::new("concurrent_runs_are_isolated", "0.3") else {
        return;
    };
    bench.edit("rounds = 3", "rounds = 3\nparallel = 2");
    // The command runs in the folder of the document, and names the document without a folder.
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.args(["lab", "run", "known.toml", "--out", "out"]);
    let output = command.current_dir(&bench.folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let records = bench.records();
    assert_eq!(records.len(), 6);
    // Concurrent runs use the same ports and addresses, but each run measures its own factor.
    for record in &records {
        let (round, factor) = (&record["round"], record["arm"]["factor"].as_str().unwrap());
        let x: f64 = format!("{}{factor}", round.as_u64().unwrap() + 1)
            .parse()
            .unwrap();
        assert_eq!(record["values"]["x"].as_f64(), Some(x), "{record}");
    }
    let at = |n: usize, what: &str| records[n][what].as_f64().unwrap();
    let later = at(0, "unix_s").max(at(1, "unix_s"));
    for n in 0..2 {
        assert!(later < at(n, "unix_s") + at(n, "took_s"), "{records:?}");
    }
    bench.nothing_stays();
}

#[test]
fn a_stopped_or_killed_run_leaves_nothing_and_resumes() {
    for signal in ["-TERM", "-INT", "-KILL"] {
        let test = format!("stopped{signal}");
        let Some(bench) = Bench::new(&test, "0.4") else {
            return;
        };
        let mut child = bench.start();
        bench.midway();
        let kill = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(
            status.code(),
            (signal != "-KILL").then_some(130),
            "{signal}"
        );
        bench.nothing_stays();
        let before = bench.records();
        // Adds an incomplete line, which a crash during a write can leave in the file.
        let torn = std::fs::read_to_string(bench.path("out/runs.jsonl")).unwrap() + "{\"round\":";
        std::fs::write(bench.path("out/runs.jsonl"), torn).unwrap();
        let output = bench.run();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let after = bench.records();
        assert_eq!(
            (after.len(), &after[..before.len()]),
            (6, &before[..]),
            "{signal}"
        );
        bench.nothing_stays();
    }
}

#[test]
fn a_time_slice_ends_between_runs_and_resumes() {
    let Some(bench) = Bench::new("a_time_slice_ends_between_runs", "0") else {
        return;
    };
    let (document, out) = (bench.path("known.toml"), bench.path("out"));
    let over = lab(&["run", &document, "--out", &out, "--for", "0s"]);
    assert_eq!(over.status.code(), Some(4), "{}", text(&over.stderr));
    assert!(text(&over.stderr).contains("the time is over"));
    assert_eq!(bench.records().len(), 0);
    // Each time slice ends with a report, so that the results of an unfinished experiment can be
    // committed.
    assert!(Path::new(&out).join("report.md").exists());
    let rest = lab(&["run", &document, "--out", &out, "--for", "24h"]);
    assert_ne!(rest.status.code(), Some(4), "{}", text(&rest.stderr));
    assert!(!bench.records().is_empty());
    assert!(Path::new(&out).join("runs.jsonl.zst").exists());
}

#[test]
fn discarded_runs_contain_their_reason() {
    let Some(bench) = Bench::new("discarded_runs_contain_their_reason", "0") else {
        return;
    };
    bench.edit("rounds = 3", "rounds = 1");
    bench.edit(
        "exec headwater serve",
        "exec headwater serve --no-such-flag",
    );
    assert_eq!(bench.run().status.code(), Some(1));
    let records = bench.records();
    // The first attempts of both arms fail in the same way, so no attempt is repeated.
    assert_eq!(records.len(), 2);
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(
        why.contains("function origin") && why.contains("no-such-flag"),
        "{why}"
    );
    assert_eq!(records[0]["failed"], true);

    std::fs::remove_dir_all(bench.path("out")).unwrap();
    bench.edit("--no-such-flag", "");
    bench.edit("lines = \"/lines\"", "lines = \"/line\"");
    assert_eq!(bench.run().status.code(), Some(1));
    let why = bench.records()[0]["thrown"].as_str().unwrap().to_owned();
    assert!(why.contains("sink known") && why.contains("/line"), "{why}");
    bench.nothing_stays();
}

#[test]
fn an_experiment_stops_if_every_arm_fails_in_the_same_way() {
    let Some(bench) = Bench::new("an_experiment_stops_if_every_arm_fails", "0") else {
        return;
    };
    bench.edit("exec headwater serve", "exec no-such-server");
    let output = bench.run();
    let output_text = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output_text}");
    // If the experiment did not stop, three rounds of two arms with three attempts each would give
    // 18 failures.
    assert_eq!(bench.records().len(), 2);
    assert!(output_text.lines().count() < 20, "{output_text}");
    assert!(
        output_text.contains("the first attempt of every arm (2) failed in the same way")
            && output_text.contains("no-such-server"),
        "{output_text}"
    );
    // If one arm works, the attempts of the other arm are repeated.
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    bench.edit("exec no-such-server", "exec headwater serve");
    bench.edit(
        "sleep NAP".replace("NAP", "0").as_str(),
        "test {factor} = 1",
    );
    bench.edit("test {factor} = 1", "test {factor} = 1 || exit 9");
    assert_eq!(bench.run().status.code(), Some(1));
    assert_eq!(bench.records().len(), 3 + 9);
}

#[test]
fn validate_names_programs_that_do_not_exist() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-programs");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("programs.toml");
    let document = "name = 'x'\nquestion = 'x'\nrounds = 1\n[sink.s]\nrun = 'no-such-program | sort'\nmeasure.x = '/x'\n";
    std::fs::write(&path, document).unwrap();
    let output = lab(&["validate", path.to_str().unwrap()]);
    let output_text = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{output_text}");
    assert!(
        output_text.contains(":5:7: sink.s.run: program not found: no-such-program;"),
        "{output_text}"
    );
    std::fs::write(&path, document.replace("no-such-program", "headwater")).unwrap();
    let output = lab(&["validate", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn documents_are_validated_and_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("experiments");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let output = lab(&["validate", path.to_str().unwrap()]);
            let output_text = text(&output.stdout);
            // This machine may lack programs that an experiment needs.
            let only_programs = output_text
                .lines()
                .all(|line| line.contains("program not found"));
            assert_ne!(output.status.code(), Some(2), "{output_text}");
            assert!(only_programs, "{output_text}");
        }
    }
    let listed = text(&lab(&["list", folder.to_str().unwrap()]).stdout);
    assert!(listed.contains("congestion.toml"), "{listed}");
    let wrong = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.toml");
    std::fs::write(&wrong, "name = 'x'\nquestion = 'x'\nrounds = 0\n").unwrap();
    let output = lab(&["validate", "--json", wrong.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let faults: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&faults[1]["path"], &faults[1]["line"]),
        (&"rounds".into(), &3.into()),
        "{faults}"
    );
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let lab_command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.arg("lab").args(arguments);
        command
    };
    let output = lab_command(&["list", folder.to_str().unwrap()])
        .stdout(closed())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let status = lab_command(&["run", "no-such.toml", "--out", "x"])
        .stderr(closed())
        .status();
    assert_eq!(status.unwrap().code(), Some(2));
}

#[test]
fn settings_are_shown_without_their_secrets() {
    let url = "nats://lab:s3cret@127.0.0.1:4222,tls://t0ken@127.0.0.1";
    let shown = text(&lab(&["agent", "--nats", url, "--print-config"]).stdout);
    let masked = "nats = \"nats://lab:***@127.0.0.1:4222,tls://***@127.0.0.1\"  # --nats";
    assert!(shown.lines().any(|line| line == masked), "{shown}");
}
