//! Checks that a run leaves only its results, and can be resumed, no matter how and when it ends.

use crate::left::{Mark, wait};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// An experiment whose steps each create a file. The test selects one step, which pauses after it
/// has created its file.
const DOCUMENT: &str = r#"
name = "Steps"
question = "What remains of a run that ends in this step?"
rounds = 2

[bounds] # Nothing here depends on time.
link-late = "1h"
steal = "100%"

[link.access]
between = ["viewer", "server"]
delay = "1ms"

[source.page]
make = "STEP-make; echo hello > page"

[function.origin]
run = "STEP-start; exec python3 -m http.server --directory {page} {port}"
at = "server"
port = 80
input = ["page"]

[sink.first]
run = "curl -sf http://{origin}/page -o page; if test -e warmed; then STEP-measure; else STEP-warm-up; touch warmed; fi; cd {folder}; echo '{\"x\": 1}'"
at = "viewer"
input = ["origin"]
measure.x = "/x"
warm-up = 1
timeout = "20s"
"#;

struct Lab {
    folder: PathBuf,
    mark: Mark,
}

impl Lab {
    /// Prints a message and returns None if this machine cannot emulate links. Runs pause in the
    /// step `slow`.
    fn new(test: &str, slow: &str) -> Option<Lab> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("teardown-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("steps")).unwrap();
        let mark = Mark::new();
        let lab = Lab { folder, mark };
        let probe = lab.command_with(&["link", "--", "true"]).output().unwrap();
        if probe.status.code() == Some(3) {
            println!("SKIPPED {test}: {}", String::from_utf8_lossy(&probe.stderr));
            return None;
        }
        let mut document = DOCUMENT.to_owned();
        for step in ["make", "start", "warm-up", "measure"] {
            let nap = if step == slow { "9" } else { "0" };
            let file = lab.path(&format!("steps/{step}"));
            let command = format!("touch {file}; test -e {file}-quick || sleep {nap}");
            document = document.replace(&format!("STEP-{step}"), &command);
        }
        std::fs::write(lab.path("steps.toml"), document).unwrap();
        Some(lab)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn edit(&self, from: &str, to: &str) {
        let document = std::fs::read_to_string(self.path("steps.toml")).unwrap();
        assert!(document.contains(from), "{from}");
        std::fs::write(self.path("steps.toml"), document.replace(from, to)).unwrap();
    }

    fn command_with(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        self.mark.put(&mut command);
        command.arg("lab").args(arguments);
        command
    }

    fn command(&self) -> Command {
        self.command_with(&["run", &self.path("steps.toml"), "--out", &self.path("out")])
    }

    fn start(&self) -> Child {
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn run(&self) -> Output {
        self.command().output().unwrap()
    }

    fn records(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.path("out/runs.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Waits until no process of the run exists, and no file except the results remains.
    fn nothing_stays(&self) {
        self.mark.nothing_stays();
        wait("removed files", || self.files().is_empty());
    }

    fn files(&self) -> Vec<String> {
        let names = |folder: &str| {
            let entries = std::fs::read_dir(self.path(folder))
                .into_iter()
                .flatten()
                .flatten();
            entries
                .map(|entry| entry.file_name().into_string().unwrap())
                .collect::<Vec<_>>()
        };
        let results = [
            "document.toml",
            "runs.jsonl",
            "runs.jsonl.zst",
            "sources",
            "machine.jsonl",
            "report.html",
            "report.json",
            "report.md",
            "plots",
        ];
        let mut left = names("out");
        left.retain(|name| !results.contains(&name.as_str()));
        left.extend(
            names("out/sources")
                .into_iter()
                .filter(|name| name != "page"),
        );
        left
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_signal_at_any_step_ends_the_run_cleanly() {
    for (n, step) in ["make", "start", "warm-up", "measure"]
        .into_iter()
        .enumerate()
    {
        for (m, how) in ["-INT", "-TERM", "-KILL"].into_iter().enumerate() {
            // Tests each step with SIGKILL, and with either SIGINT or SIGTERM.
            if m < 2 && n % 2 != m {
                continue;
            }
            let Some(lab) = Lab::new(&format!("{step}{how}"), step) else {
                return;
            };
            let mut child = lab.start();
            wait(step, || {
                Path::new(&lab.path(&format!("steps/{step}"))).exists()
            });
            signal(how, child.id());
            let code = child.wait().unwrap().code();
            assert_eq!(code, (how != "-KILL").then_some(130), "{step} {how}");
            lab.nothing_stays();
            assert_eq!(lab.records().len(), 0, "{step} {how}");
            // A repeated command resumes the experiment.
            std::fs::write(lab.path(&format!("steps/{step}-quick")), "").unwrap();
            let output = lab.run();
            let output_text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (output.status.code(), lab.records().len()),
                (Some(0), 2),
                "{output_text}"
            );
            lab.nothing_stays();
        }
    }
}

#[test]
fn a_run_killed_at_any_time_leaves_nothing() {
    let Some(lab) = Lab::new("random", "none") else {
        return;
    };
    // The duration of a run differs between machines, so the last kills may come after the run has
    // ended.
    for n in 0..12u64 {
        let _ = std::fs::remove_dir_all(lab.path("out"));
        let mut child = lab.start();
        std::thread::sleep(Duration::from_millis(3 + n * n * 4));
        let _ = child.kill();
        child.wait().unwrap();
        lab.nothing_stays();
    }
}

#[test]
fn a_run_cleans_up_without_its_guard() {
    let Some(lab) = Lab::new("guard", "measure") else {
        return;
    };
    let child = lab.start();
    wait("measure", || Path::new(&lab.path("steps/measure")).exists());
    let guards = lab.mark.processes();
    let mut guards = guards
        .iter()
        .filter(|(_, line)| line.ends_with("lab guard "));
    signal("-KILL", guards.next().unwrap().0);
    signal("-INT", child.id());
    let mut child = child;
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lab.nothing_stays();
}

#[test]
fn a_function_that_exits_during_a_measurement_ends_the_run() {
    let Some(lab) = Lab::new("dies", "measure") else {
        return;
    };
    lab.edit("rounds = 2", "rounds = 1");
    lab.edit(
        "exec python3 -m http.server --directory {page} {port}",
        "python3 -m http.server --directory {page} {port} & \
         until test -e MEASURE; do sleep 0.02; done; kill $!; echo 'I am ill'; exit 7",
    );
    lab.edit("MEASURE", &lab.path("steps/measure"));
    // The sink would run for longer than its timeout. If the run waited for the sink, the recorded
    // reason would be the timeout.
    lab.edit("sleep 9", "sleep 99");
    assert_eq!(lab.run().status.code(), Some(1));
    let records = lab.records();
    // The first attempt of the only arm fails, so the experiment stops.
    assert_eq!(records.len(), 1);
    let why = records[0]["thrown"].as_str().unwrap();
    let expected = ["function origin", "exited", "7", "I am ill"];
    assert!(expected.iter().all(|part| why.contains(part)), "{why}");
    lab.nothing_stays();
}

#[test]
fn a_sink_that_hangs_and_ignores_signals_is_killed() {
    let Some(lab) = Lab::new("hangs", "none") else {
        return;
    };
    lab.edit("rounds = 2", "rounds = 1");
    lab.edit("warm-up = 1", "");
    lab.edit("timeout = \"20s\"", "timeout = \"1s\"");
    lab.edit(
        "cd {folder};",
        "trap '' TERM; echo waiting; while true; do sleep 5; done;",
    );
    // The only arm has failed, so the experiment stops.
    assert_eq!(lab.run().status.code(), Some(1));
    let why = lab.records()[0]["thrown"].as_str().unwrap().to_owned();
    assert!(
        why.contains("sink first: not finished within 1s") && why.contains("waiting"),
        "{why}"
    );
    lab.nothing_stays();
}

#[test]
fn a_failed_source_is_reported_with_its_reason() {
    let Some(lab) = Lab::new("unmade", "none") else {
        return;
    };
    lab.edit(
        "echo hello > page",
        "echo half > page; echo 'no paper left' >&2; exit 3",
    );
    let output = lab.run();
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output_text}");
    assert!(
        output_text.contains("source page") && output_text.contains("no paper left"),
        "{output_text}"
    );
    assert!(!Path::new(&lab.path("out/sources/page")).exists());
    lab.nothing_stays();
}

#[test]
fn many_runs_are_stopped_killed_and_resumed_and_each_counts_once() {
    let Some(lab) = Lab::new("many", "none") else {
        return;
    };
    let values: Vec<String> = (0..12).map(|n| n.to_string()).collect();
    let text = format!(
        "name='many'\nquestion='x'\nrounds=5\nbounds.steal='100%'\nsweep.n=[{}]\n\
         [sink.s]\nrun='''echo {{n}} >> LOG; echo '{{\"x\": {{n}}}}' '''\nmeasure.x='/x'\n",
        values.join(",")
    );
    let log = lab.path("log");
    std::fs::write(lab.path("steps.toml"), text.replace("LOG", &log)).unwrap();
    for (how, after) in [("-INT", 15), ("-KILL", 35)] {
        let mut child = lab.start();
        wait("runs", || lab.records().len() >= after);
        signal(how, child.id());
        child.wait().unwrap();
        lab.nothing_stays();
        assert!(
            lab.records().len() < 60,
            "the experiment finished before the signal"
        );
    }
    let output = lab.run();
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{output_text}");
    // The progress counts the runs that finished before resuming, and shows an estimate of the
    // remaining time.
    assert!(
        output_text.contains("60 of 60 ·") && !output_text.contains("\n1 of 60"),
        "{output_text}"
    );
    let records = lab.records();
    let mut runs: Vec<(u64, String)> = records
        .iter()
        .map(|run| (run["round"].as_u64().unwrap(), run["arm"]["n"].to_string()))
        .collect();
    assert_eq!(runs.len(), 60);
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), 60);
    // Only runs that a signal interrupted were started twice.
    let begun = std::fs::read_to_string(log).unwrap().lines().count();
    assert!((60..=62).contains(&begun), "{begun}");
    lab.nothing_stays();
}

#[test]
fn a_folder_is_used_by_one_run_at_a_time() {
    let Some(lab) = Lab::new("twice", "measure") else {
        return;
    };
    let mut first = lab.start();
    wait("measure", || Path::new(&lab.path("steps/measure")).exists());
    let second = lab.run();
    let output_text = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{output_text}");
    assert!(
        output_text.contains("another run is using"),
        "{output_text}"
    );
    signal("-INT", first.id());
    first.wait().unwrap();
    lab.nothing_stays();
}

#[test]
fn processes_are_pinned_to_their_processors() {
    let Some(lab) = Lab::new("cpus", "none") else {
        return;
    };
    lab.edit("rounds = 2", "rounds = 1");
    lab.edit("port = 80", "port = 80\ncpus = [0]");
    lab.edit("warm-up = 1", "cpus = \"0\"");
    lab.edit(
        "echo '{\\\"x\\\": 1}'",
        "echo '{\\\"x\\\": '$(grep -c 'Cpus_allowed_list:.0$' /proc/self/status)'}'",
    );
    let output = lab.run();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(lab.records()[0]["values"]["x"], 1.0);
    // A processor that does not exist is an error.
    std::fs::remove_dir_all(lab.path("out")).unwrap();
    lab.edit("cpus = [0]", "cpus = [0, 1000]");
    assert_eq!(lab.run().status.code(), Some(1));
    let why = lab.records()[0]["thrown"].as_str().unwrap().to_owned();
    assert!(why.contains("cpus [0, 1000]"), "{why}");
    lab.nothing_stays();
}
