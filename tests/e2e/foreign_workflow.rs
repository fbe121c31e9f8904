//! Tests `headwater lab run` with an NBMP description that another program wrote.

use crate::support::TempFolder;
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const FOREIGN: &str = include_str!("../../crates/lab/tests/foreign.wdd.json");

/// Returns two ports that were free a moment ago.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

#[test]
fn a_description_of_another_program_runs() {
    let folder = TempFolder::new();
    let [origin, edge] = free_ports();
    let text = FOREIGN
        .replace("8081", &origin.to_string())
        .replace("8082", &edge.to_string());
    folder.write_file("foreign.json", text.as_bytes());
    let programs = Path::new(env!("CARGO_BIN_EXE_headwater")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(env!("CARGO_BIN_EXE_headwater"))
        .args(["lab", "run", "foreign.json", "--out", "out"])
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    let records = std::fs::read_to_string(folder.0.join("out/runs.jsonl")).unwrap_or_default();
    let records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let counted = records.iter().find(|record| record["thrown"].is_null());
    let counted = counted.unwrap_or_else(|| panic!("{output_text}\n{records:#?}"));
    assert!(
        counted["values"]["requests"].as_f64().unwrap() > 0.0,
        "{counted}"
    );
    assert_eq!(counted["values"]["errors"], 0.0, "{counted}");
    assert!(
        output_text.contains("$.processing['connection-map'][0].from"),
        "{output_text}"
    );
}
