//! Compares the rules with the published simulator Sabre (github.com/UMass-LIDS/sabre, commit
//! 09b03bb). This file contains Sabre's results for a test movie and test traces. With `SABRE=DIR`
//! in the environment, a test also runs Sabre. That test uses the movie and traces of this file,
//! and also the movie and traces that Sabre includes.

use super::playback_simulator::{NetworkPeriod, PlaybackTotals, SimulatedMovie, simulate_playback};
use super::{AbrRule, BolaRule, DynamicRule, ThroughputRule};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const BUFFER_S: f64 = 25.0;

/// Our rules, and the options that select the same rules in Sabre.
fn compared_rules() -> Vec<(&'static str, Box<dyn AbrRule>, &'static [&'static str])> {
    vec![
        (
            "throughput",
            Box::new(ThroughputRule::default()),
            &["-a", "throughput", "-noa"],
        ),
        (
            "throughput alone",
            Box::new(ThroughputRule::without_buffer_rule()),
            &["-a", "throughput", "-noibr", "-noa"],
        ),
        (
            "bola",
            Box::new(BolaRule::with_sabre_parameters()),
            &["-a", "bolae", "-ao", "-noa"],
        ),
        (
            "dynamic",
            Box::new(DynamicRule::with_sabre_parameters()),
            &["-a", "dynamicdash", "-ao", "-noa"],
        ),
    ]
}

/// Returns a generator of pseudo-random numbers that are the same on every machine.
fn noise(seed: u32) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1_u32 << 24)
    }
}

fn test_movie() -> SimulatedMovie {
    let mut noise = noise(1);
    let bitrates_kbps = vec![300.0, 600.0, 1200.0, 2400.0, 4000.0, 6000.0];
    let mut segment = || {
        let factor = 0.6 + 0.8 * noise();
        bitrates_kbps
            .iter()
            .map(|kbps| (kbps * 4000.0 * factor).round())
            .collect()
    };
    let sizes_bits = (0..150).map(|_| segment()).collect();
    SimulatedMovie {
        segment_ms: 4000.0,
        bitrates_kbps,
        sizes_bits,
    }
}

/// Returns traces with cliffs, steps, large variation and low bandwidth.
fn test_traces() -> Vec<(&'static str, Vec<NetworkPeriod>)> {
    let mut noise = noise(2);
    let mut wild = |most: f64| {
        (0..200)
            .map(|_| {
                (
                    1000.0 + (noise() * 9000.0).round(),
                    (200.0 + noise() * most).round(),
                    80.0,
                )
            })
            .collect()
    };
    vec![
        (
            "cliffs",
            vec![(25_000.0, 7000.0, 40.0), (40_000.0, 350.0, 300.0)],
        ),
        (
            "stepping",
            vec![
                (30_000.0, 5000.0, 75.0),
                (30_000.0, 3000.0, 150.0),
                (30_000.0, 900.0, 200.0),
            ],
        ),
        ("wild", wild(8000.0)),
        ("poor", wild(900.0)),
    ]
}

fn movie_json(movie: &SimulatedMovie) -> Value {
    json!({
        "segment_duration_ms": movie.segment_ms,
        "bitrates_kbps": movie.bitrates_kbps,
        "segment_sizes_bits": movie.sizes_bits,
    })
}

fn trace_json(trace: &[NetworkPeriod]) -> Value {
    let period = |(ms, kbps, latency): &NetworkPeriod| json!({"duration_ms": ms, "bandwidth_kbps": kbps, "latency_ms": latency});
    trace.iter().map(period).collect()
}

fn run_sabre(sabre: &Path, movie: &Path, trace: &Path, words: &[&str]) -> PlaybackTotals {
    let output = Command::new("python3")
        .arg(sabre.join("src/sabre.py"))
        .args(["-b", &BUFFER_S.to_string()])
        .args(words)
        .args([
            "-m".as_ref(),
            movie.as_os_str(),
            "-n".as_ref(),
            trace.as_os_str(),
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    PlaybackTotals {
        bitrate_kbps: number("total played bitrate:"),
        stalled_s: number("total rebuffer:"),
        change_kbps: number("total bitrate change:"),
    }
}

fn is_close(ours: PlaybackTotals, theirs: PlaybackTotals) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-3 + 1e-6 * b.abs();
    near(ours.bitrate_kbps, theirs.bitrate_kbps)
        && near(ours.stalled_s, theirs.stalled_s)
        && near(ours.change_kbps, theirs.change_kbps)
}

#[test]
fn rules_match_the_stored_results_of_sabre() {
    let movie = test_movie();
    let mut stored = SABRE_RESULTS.iter();
    for (name, trace) in test_traces() {
        for (rule, mut ours, _) in compared_rules() {
            let ours = simulate_playback(&movie, &trace, &mut *ours, BUFFER_S);
            let (bitrate_kbps, stalled_s, change_kbps) = *stored.next().unwrap();
            let theirs = PlaybackTotals {
                bitrate_kbps,
                stalled_s,
                change_kbps,
            };
            assert!(
                is_close(ours, theirs),
                "{rule} on {name}: {ours:?}, Sabre: {theirs:?}"
            );
        }
    }
}

/// Total bitrate, stalled seconds and total bitrate changes, as printed by Sabre. The results are
/// sorted by trace, and then by rule.
const SABRE_RESULTS: [(f64, f64, f64); 16] = [
    (121800.0, 15.530426, 26100.0), // throughput, cliffs
    (121800.0, 15.530426, 26100.0), // throughput alone, cliffs
    (145800.0, 28.242829, 36300.0), // bola, cliffs
    (145800.0, 28.242829, 36300.0), // dynamic, cliffs
    (223900.0, 0.0, 26900.0),       // throughput, stepping
    (223900.0, 0.0, 26900.0),       // throughput alone, stepping
    (262200.0, 0.0, 27500.0),       // bola, stepping
    (260000.0, 0.0, 27500.0),       // dynamic, stepping
    (408700.0, 1.468531, 52100.0),  // throughput, wild
    (408700.0, 1.468531, 52100.0),  // throughput alone, wild
    (486200.0, 1.468531, 61500.0),  // bola, wild
    (486200.0, 1.468531, 61500.0),  // dynamic, wild
    (50100.0, 0.0, 4500.0),         // throughput, poor
    (50100.0, 0.0, 4500.0),         // throughput alone, poor
    (78000.0, 0.0, 4500.0),         // bola, poor
    (78000.0, 0.0, 5100.0),         // dynamic, poor
];

#[test]
fn rules_match_sabre_on_our_traces_and_its_own() {
    let Ok(sabre) = std::env::var("SABRE") else {
        println!("SKIPPED: SABRE is not set to a folder with the simulator");
        return;
    };
    let sabre = Path::new(&sabre);
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        let path = dir.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path
    };
    let movie = test_movie();
    let movie_path = write("movie.json", &movie_json(&movie));
    let mut runs = Vec::new();
    for (name, trace) in test_traces() {
        let path = write(&format!("{name}.json"), &trace_json(&trace));
        runs.push((name.to_string(), path, trace));
    }
    compare_with_sabre(sabre, &movie, &movie_path, &runs, true);
    compare_on_sabre_traces(sabre);
}

/// Compares the rules with Sabre, using the movie and traces that Sabre includes.
fn compare_on_sabre_traces(sabre: &Path) {
    let movie_path = sabre.join("example/mmsys18/bbb.json");
    let read =
        |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let number = |value: &Value| value.as_f64().unwrap();
    let numbers = |value: &Value| {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(number)
            .collect::<Vec<_>>()
    };
    let value = read(&movie_path);
    let movie = SimulatedMovie {
        segment_ms: number(&value["segment_duration_ms"]),
        bitrates_kbps: numbers(&value["bitrates_kbps"]),
        sizes_bits: value["segment_sizes_bits"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect(),
    };
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(sabre.join("example/mmsys18/3Glogs")).unwrap() {
        let path = entry.unwrap().path();
        let periods = read(&path);
        let period = |value: &Value| {
            (
                number(&value["duration_ms"]),
                number(&value["bandwidth_kbps"]),
                number(&value["latency_ms"]),
            )
        };
        let trace = periods.as_array().unwrap().iter().map(period).collect();
        runs.push((
            path.file_name().unwrap().to_string_lossy().into_owned(),
            path,
            trace,
        ));
    }
    assert!(runs.len() > 50);
    compare_with_sabre(sabre, &movie, &movie_path, &runs, false);
}

fn compare_with_sabre(
    sabre: &Path,
    movie: &SimulatedMovie,
    movie_path: &Path,
    runs: &[(String, std::path::PathBuf, Vec<NetworkPeriod>)],
    print: bool,
) {
    let mut wrong = Vec::new();
    for (name, path, trace) in runs {
        for (rule, mut ours, words) in compared_rules() {
            let ours = simulate_playback(movie, trace, &mut *ours, BUFFER_S);
            let theirs = run_sabre(sabre, movie_path, path, words);
            if print {
                println!(
                    "    ({:?}, {:?}, {:?}), // {rule}, {name}",
                    theirs.bitrate_kbps, theirs.stalled_s, theirs.change_kbps
                );
            }
            if !is_close(ours, theirs) {
                wrong.push(format!("{rule} on {name}: {ours:?}, Sabre: {theirs:?}"));
            }
        }
    }
    println!(
        "{} of {} differ\n{}",
        wrong.len(),
        runs.len() * compared_rules().len(),
        wrong.join("\n")
    );
    // Up to 1 % of the results may differ. If the scores of two levels differ only by rounding,
    // either level may be chosen.
    assert!(
        wrong.len() * 100 <= runs.len() * compared_rules().len(),
        "{}",
        wrong.join("\n")
    );
}
