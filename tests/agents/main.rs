//! Experiments on several hosts: agents in network namespaces around a real NATS server.

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
    let machines: Vec<Value> = bench.lines("out/machine.jsonl");
    let agents_of: Vec<&Value> = machines.iter().map(|machine| &machine["agent"]).collect();
    // Whoever ran it, and each agent once.
    assert_eq!(
        agents_of,
        [&Value::Null, &"one".into(), &"three".into(), &"two".into()]
    );
    let mut said: Vec<&str> = machines
        .iter()
        .map(|machine| machine["versions"]["name"].as_str().unwrap())
        .collect();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), 4, "each on its own host: {said:?}");
    for name in ["one", "two", "three"] {
        let heading = format!("## Machine of agent {name}\n");
        assert!(bench.text("out/report.md").contains(&heading), "{name}");
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
