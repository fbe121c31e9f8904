//! Tests experiments on several hosts. The hosts are network namespaces with agents, which use a
//! real NATS server.

#![cfg(feature = "nats")]
#![allow(clippy::unwrap_used)]

mod bench;
#[path = "../support/left.rs"]
mod left;
mod network;
mod secret;

use bench::{Bench, Process};
use left::wait;
use serde_json::Value;
use std::process::{Output, Stdio};
use std::time::Duration;

fn assert_success(output: &Output) {
    let output_bytes = [&output.stdout[..], &output.stderr].concat();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output_bytes)
    );
}

#[test]
fn one_document_on_one_machine_and_on_three() {
    let Some(bench) = Bench::new("three", &[], "0") else {
        return;
    };
    let arguments = [
        "run",
        &bench.path("parts.toml"),
        "--out",
        &bench.path("alone"),
    ];
    assert_success(&bench.lab(0, &arguments).output().unwrap());
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
    let agents = bench.start_three_agents();
    assert_success(&bench.run_command().output().unwrap());
    let records = bench.records();
    assert_eq!(records.len(), 4);
    for record in &records {
        let factor: f64 = record["arm"]["factor"].as_str().unwrap().parse().unwrap();
        let values = &record["values"];
        // The values of parts 0 and 1 are added up, and the histograms of both parts are merged.
        assert_eq!(values["x"], 2.0 * factor + 1.0, "{record}");
        assert_eq!(
            (&values["pieces"], &values["requests"]),
            (&2.0.into(), &40.0.into())
        );
        assert!(values["p50-ms"].as_f64().unwrap() > 0.0, "{record}");
        let parts = &record["agents"];
        assert_eq!(parts["one"]["places"][0], "origin", "{record}");
        assert_eq!(parts["two"]["places"][0], "viewers", "{record}");
        assert_eq!(parts.as_object().unwrap().len(), 3, "{record}");
        // All agents use the clock of this machine, so the true clock offset is 0. The measured
        // offset must not exceed the reported error.
        for part in parts.as_object().unwrap().values() {
            let (clock, error) = (&part["clock_us"], &part["clock_error_us"]);
            assert!(
                clock.as_f64().unwrap().abs() <= error.as_f64().unwrap() + 1.0,
                "{record}"
            );
        }
    }
    let machines: Vec<Value> = bench.lines("out/machine.jsonl");
    let agents_of: Vec<&Value> = machines.iter().map(|machine| &machine["agent"]).collect();
    // The file contains the controller once, and each agent once.
    assert_eq!(
        agents_of,
        [&Value::Null, &"one".into(), &"three".into(), &"two".into()]
    );
    let mut hosts: Vec<&str> = machines
        .iter()
        .map(|machine| machine["versions"]["name"].as_str().unwrap())
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    assert_eq!(hosts.len(), 4, "each on its own host: {hosts:?}");
    for name in ["one", "two", "three"] {
        let heading = format!("## Machine of agent {name}\n");
        assert!(bench.text("out/report.md").contains(&heading), "{name}");
    }
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
    assert_eq!(bench.count_temporary_files(), 0);
}

#[test]
fn a_killed_agent_is_reported_and_the_others_repeat_the_run() {
    let Some(bench) = Bench::new("killed", &[], "30") else {
        return;
    };
    bench.once();
    let [one, two, three] = bench.start_three_agents();
    let log = std::fs::File::create(bench.path("run.log")).unwrap();
    let run = bench
        .run_command()
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    let mut run = Process(run.unwrap());
    bench.midway();
    let mut two = two;
    two.signal("-KILL");
    two.wait();
    std::fs::write(bench.path("steps/quick"), "").unwrap();
    let code = run.wait();
    let output_text = bench.text("run.log");
    assert_eq!(code, Some(0), "{output_text}");
    assert!(output_text.contains("agent two was lost"), "{output_text}");
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
    wait("removed files", || bench.count_temporary_files() == 0);
}

/// The controller once waited until the sinks of the remaining agents had finished. Each further
/// attempt of a run then waited 30 s for the lost agent.
#[test]
fn the_loss_of_an_agent_ends_the_waiting_of_all_remaining_runs() {
    let Some(bench) = Bench::new("lost", &[], "600") else {
        return;
    };
    bench.edit("timeout = \"60s\"", "timeout = \"900s\"");
    let [one, mut two, three] = bench.start_three_agents();
    let mut run = Process(
        bench
            .run_with_agents(3)
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    bench.midway();
    two.signal("-KILL");
    two.wait();
    assert_eq!(run.wait_within(Duration::from_secs(90)), Some(1));
    let records = bench.records();
    let reasons: Vec<&str> = records
        .iter()
        .map(|record| record["thrown"].as_str().unwrap())
        .collect();
    assert!(reasons[0].contains("agent two was lost"), "{reasons:?}");
    let too_few = "3 agents are required; available: [\"one\", \"three\"]";
    assert!(
        reasons[1..].iter().all(|why| why.starts_with(too_few)),
        "{reasons:?}"
    );
    // All arms were tried.
    let mut arms: Vec<String> = records
        .iter()
        .map(|record| record["arm"].to_string())
        .collect();
    arms.sort();
    arms.dedup();
    assert_eq!(arms.len(), 2, "{records:?}");
    [one, three].into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
}

#[test]
fn an_agent_that_starts_later_replaces_a_lost_one() {
    let Some(bench) = Bench::new("late", &[], "30") else {
        return;
    };
    bench.once();
    let [one, mut two, three] = bench.start_three_agents();
    let mut run = Process(
        bench
            .run_with_agents(3)
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    bench.midway();
    let late = bench.agent(2, "late", &["--label", "load"]);
    two.signal("-KILL");
    two.wait();
    std::fs::write(bench.path("steps/quick"), "").unwrap();
    assert_eq!(run.wait_within(Duration::from_secs(90)), Some(0));
    let records = bench.records();
    assert_eq!(records.len(), 2, "{records:?}");
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(why.contains("agent two was lost"), "{why}");
    assert!(records[0]["agents"].get("late").is_none(), "{records:?}");
    assert!(records[1]["agents"].get("late").is_some(), "{records:?}");
    assert_eq!(records[1]["values"]["pieces"], 2.0, "{records:?}");
    [one, three, late].into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
    wait("removed files", || bench.count_temporary_files() == 0);
}

#[test]
fn a_function_that_exits_on_another_agent_discards_the_run() {
    let Some(bench) = Bench::new("dies", &[], "0") else {
        return;
    };
    bench.once();
    let ill = bench.path("steps/ill");
    // The HTTP server is a child process that outlives the function, so the requests of the sinks
    // succeed.
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
    let agents = bench.start_three_agents();
    assert_eq!(bench.run_command().output().unwrap().status.code(), Some(1));
    let records = bench.records();
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(why.contains("agent one: function origin: exited"), "{why}");
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
}

#[test]
fn a_disconnected_agent_is_lost_and_ends_its_processes() {
    let Some(bench) = Bench::new("cut", &[], "30") else {
        return;
    };
    bench.once();
    let agents = bench.start_three_agents();
    let run = bench.run_command().stderr(Stdio::null()).spawn();
    let mut run = Process(run.unwrap());
    bench.midway();
    std::fs::write(bench.path("steps/quick"), "").unwrap();
    bench.network.ip(0, "link set v3 down").unwrap();
    assert_eq!(run.wait(), Some(0));
    let records = bench.records();
    let why = records[0]["thrown"].as_str().unwrap();
    assert!(why.contains("agent three was lost"), "{why}");
    assert_eq!(records[1]["values"]["pieces"], 1.0, "{records:?}");
    // The processes end on both load agents. One agent receives the controller's order, and the
    // other notices that it is disconnected.
    wait("sleeps end", || {
        let left = bench.mark.processes();
        !left.iter().any(|(_, line)| line.contains("sleep 30"))
    });
    agents.into_iter().for_each(Process::end);
    bench.mark.nothing_stays();
    assert_eq!(bench.count_temporary_files(), 0);
}

#[test]
fn agents_are_free_again_after_their_controller_was_stopped_or_killed() {
    for how in ["-INT", "-KILL"] {
        let Some(bench) = Bench::new(&format!("run{how}"), &[], "30") else {
            return;
        };
        bench.once();
        let agents = bench.start_three_agents();
        let run = bench.run_command().stderr(Stdio::null()).spawn();
        let mut run = Process(run.unwrap());
        bench.midway();
        run.signal(how);
        assert_eq!(run.wait(), (how != "-KILL").then_some(130));
        // The agents notice that the controller is gone, end their processes, and serve the next
        // controller.
        std::fs::write(bench.path("steps/quick"), "").unwrap();
        wait("sleeps end", || {
            !bench
                .mark
                .processes()
                .iter()
                .any(|(_, line)| line.contains("sleep 30"))
        });
        assert_success(&bench.run_command().output().unwrap());
        assert_eq!(bench.records().len(), 1);
        agents.into_iter().for_each(Process::end);
        bench.mark.nothing_stays();
        assert_eq!(bench.count_temporary_files(), 0);
    }
}
