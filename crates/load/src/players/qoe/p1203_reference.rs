//! Compares scores with the reference implementation of P.1203 (github.com/itu-p1203/itu-p1203).
//! The license of the reference implementation forbids redistribution, so this repository does not
//! contain it. The tests run only if `P1203=DIR` names the folder that contains the reference
//! implementation. `P1203_PYTHON` names the Python interpreter; the default is `python3`.

use super::p1203::{integrate_over_time, mos, score_components};
use super::{LevelQualityFactors, PlaybackJournal, PlayedStretch, StallEvent};
use crate::random::Random;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A Python script that reads sessions from standard input, and prints the scores of each session.
const REFERENCE_SCRIPT: &str = "
import json, logging, sys
logging.disable(logging.CRITICAL)
from itu_p1203 import P1203Standalone
out = []
for session in json.load(sys.stdin):
    scores = P1203Standalone(session).calculate_complete(print_intermediate=True)
    out.append([scores['O22'], scores['O21'], scores['O34'], scores['O35'], scores['O23'], scores['O46']])
json.dump(out, sys.stdout)
";

const LADDER: [(u32, (u32, u32)); 5] = [
    (250, (426, 240)),
    (600, (640, 360)),
    (1500, (1280, 720)),
    (3000, (1920, 1080)),
    (6000, (1920, 1080)),
];

impl PlaybackJournal {
    /// Returns the level that is played at a media time, or none after the end of the media.
    fn level_at(&self, at_ms: u64) -> Option<u16> {
        let mut end_ms = 0;
        let stretch = self.played.iter().find(|stretch| {
            end_ms += u64::from(stretch.ms);
            at_ms < end_ms
        });
        stretch.map(|stretch| stretch.level)
    }
}

fn ladder_quality_factors(level: u16, fps: f64) -> LevelQualityFactors {
    LevelQualityFactors {
        resolution: LADDER[usize::from(level)].1,
        frame_rate: fps,
        screen_lines: 1080,
        audio_kbps: Some(128.0),
        handheld: false,
    }
}

/// Generates a session of one to five minutes, with changing levels and bitrates, and with up to
/// six stalls.
fn generate_session(n: u64, fps: f64) -> (PlaybackJournal, Value) {
    let mut random = Random::derive_stream(7, n);
    let mut journal = PlaybackJournal {
        start_delay_ms: Some(300 + random.next_below(4000)),
        ..PlaybackJournal::default()
    };
    let steady = n.is_multiple_of(3);
    let mut level = random.next_below(5) as i64;
    let (mut video, mut audio, mut at_s) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..15 + random.next_below(60) {
        if !steady || random.next_below(12) == 0 {
            level = (level + random.next_below(3) as i64 - 1).clamp(0, 4);
        }
        let (kbps, (width, height)) = LADDER[level as usize];
        let kbps = kbps * (70 + random.next_below(60) as u32) / 100;
        journal.add_played(PlayedStretch {
            ms: 4000,
            level: level as u16,
            kbps,
        });
        video.push(json!({"bitrate": kbps, "codec": "h264", "duration": 4.0, "fps": fps,
            "resolution": format!("{width}x{height}"), "start": at_s, "representation": level.to_string()}));
        audio.push(json!({"bitrate": 128.0, "codec": "aaclc", "duration": 4.0, "start": at_s}));
        at_s += 4.0;
    }
    let mut places: Vec<u64> = (0..random.next_below(7))
        .map(|_| 1 + random.next_below(at_s as u64 - 2))
        .collect();
    places.sort_unstable();
    places.dedup();
    journal.stalls = places
        .iter()
        .map(|at_s| StallEvent {
            at_ms: at_s * 1000,
            ms: 300 + random.next_below(5000),
        })
        .collect();
    let first = journal
        .start_delay_ms
        .map(|ms| json!([0, ms as f64 / 1000.0]));
    let later = journal
        .stalls
        .iter()
        .map(|stall| json!([stall.at_ms as f64 / 1000.0, stall.ms as f64 / 1000.0]));
    let stalling: Vec<Value> = first.into_iter().chain(later).collect();
    let session = json!({
        "I11": {"segments": audio, "streamId": 1}, "I13": {"segments": video, "streamId": 1},
        "I23": {"stalling": stalling, "streamId": 1},
        "IGen": {"device": "pc", "displaySize": "1920x1080", "viewingDistance": "150cm"},
    });
    (journal, session)
}

fn run_reference(folder: &str, sessions: &[Value]) -> Vec<Vec<Value>> {
    let python = std::env::var("P1203_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut child = Command::new(python)
        .args(["-c", REFERENCE_SCRIPT])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_vec(sessions).unwrap();
    child.stdin.take().unwrap().write_all(&text).unwrap();
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

/// Returns the mean, the standard deviation and the largest absolute value of the differences.
fn error_statistics(of: &[f64]) -> (f64, f64, f64) {
    let mean = of.iter().sum::<f64>() / of.len() as f64;
    let variance = of.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / of.len() as f64;
    let largest = of.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
    (mean, variance.sqrt(), largest)
}

#[test]
fn scores_follow_the_reference_on_generated_sessions() {
    let Ok(folder) = std::env::var("P1203") else {
        println!("SKIPPED: P1203 is not set to a folder with the reference implementation");
        return;
    };
    let made: Vec<(PlaybackJournal, Value, f64)> = (0..300)
        .map(|n| {
            let fps = if n % 4 == 0 { 12.0 } else { 25.0 };
            let (journal, session) = generate_session(n, fps);
            (journal, session, fps)
        })
        .collect();
    let session: Vec<Value> = made.iter().map(|(_, session, _)| session.clone()).collect();
    let (mut video, mut audio, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut quality, mut stalls, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for ((journal, _, fps), theirs) in made.iter().zip(run_reference(&folder, &session)) {
        let judge = |level| ladder_quality_factors(level, *fps);
        let ours = score_components(journal, judge);
        let list = |value: &Value| -> Vec<f64> {
            let values = value.as_array().unwrap().iter();
            values.map(|score| score.as_f64().unwrap()).collect()
        };
        let (o22, o21) = (list(&theirs[0]), list(&theirs[1]));
        assert_eq!(
            (ours.seconds.len(), ours.seconds.len()),
            (o22.len(), o21.len())
        );
        // The reference adds floating-point durations to compute the start times of segments.
        // Because of rounding, the reference can assign the last second before a level change to
        // the next segment. These seconds are not compared.
        let level = |t: usize| journal.level_at(t as u64 * 1000 + 500);
        let clear = |t: &usize| level(*t) == level(t + 1);
        video.extend(
            (0..o22.len())
                .filter(clear)
                .map(|t| ours.seconds[t].0 - o22[t]),
        );
        audio.extend(ours.seconds.iter().zip(&o21).map(|(a, b)| a.1 - b));
        let o35 = theirs[3].as_f64().unwrap();
        changes.push(integrate_over_time(&list(&theirs[2])) - o35);
        quality.push(ours.integrate_over_time - o35);
        stalls.push(ours.stalls - theirs[4].as_f64().unwrap());
        all.push(mos(journal, judge).unwrap() - theirs[5].as_f64().unwrap());
    }
    for (name, differences) in [
        ("O.22", &video),
        ("O.21", &audio),
        ("O.35 from the O.34 of the reference", &changes),
        ("O.35", &quality),
        ("O.23", &stalls),
        ("O.46", &all),
    ] {
        let (mean, deviation, largest) = error_statistics(differences);
        println!(
            "{name}: mean {mean:+.4}, standard deviation {deviation:.4}, at most {largest:.4}"
        );
    }
    // The formulas for single seconds and for stalls are implemented completely, so the results
    // must agree.
    assert!(error_statistics(&video).2 < 0.01 && error_statistics(&audio).2 < 1e-6);
    assert!(error_statistics(&stalls).2 < 1e-6);
    // Here, larger errors are allowed, because the terms for quality changes are simplified and the
    // random forest is missing.
    assert!(error_statistics(&changes).0.abs() < 0.01 && error_statistics(&changes).1 < 0.05);
    assert!(error_statistics(&all).0.abs() < 0.25 && error_statistics(&all).1 < 0.2);
}

/// Converts a session of the reference's `examples` folder. Each distinct representation of the
/// session becomes a level.
fn example_session(example: &Value) -> Option<(PlaybackJournal, Vec<LevelQualityFactors>)> {
    let audio_kbps = example["I11"]["segments"][0]["bitrate"].as_f64();
    let screen = example["IGen"]["displaySize"].as_str()?.split_once('x')?;
    let handheld = example["IGen"]["device"].as_str() == Some("mobile");
    let (mut journal, mut factors) = (PlaybackJournal::default(), Vec::new());
    let mut names: Vec<(Value, Value)> = Vec::new();
    for segment in example["I13"]["segments"].as_array()? {
        let name = match &segment["representation"] {
            Value::Null => (segment["resolution"].clone(), segment["bitrate"].clone()),
            name => (name.clone(), Value::Null),
        };
        let level = names.iter().position(|known| *known == name);
        let level = level.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        let (width, height) = segment["resolution"].as_str()?.split_once('x')?;
        if level == factors.len() {
            factors.push(LevelQualityFactors {
                resolution: (width.parse().ok()?, height.parse().ok()?),
                frame_rate: segment["fps"].as_f64()?,
                screen_lines: screen.1.parse().ok()?,
                audio_kbps,
                handheld,
            });
        }
        journal.add_played(PlayedStretch {
            ms: (segment["duration"].as_f64()? * 1000.0).round() as u32,
            level: level as u16,
            kbps: segment["bitrate"].as_f64()?.round() as u32,
        });
    }
    for stall in example["I23"]["stalling"].as_array().into_iter().flatten() {
        let [at_ms, ms] = [0, 1].map(|n| (stall[n].as_f64().unwrap() * 1000.0) as u64);
        match (at_ms, journal.start_delay_ms) {
            (0, None) => journal.start_delay_ms = Some(ms),
            _ => journal.stalls.push(StallEvent { at_ms, ms }),
        }
    }
    Some((journal, factors))
}

#[test]
fn scores_follow_the_reference_on_its_published_examples() {
    let Ok(folder) = std::env::var("P1203") else {
        println!("SKIPPED: P1203 is not set to a folder with the reference implementation");
        return;
    };
    let entries = std::fs::read_dir(PathBuf::from(&folder).join("examples")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_mode_0 = |path: &PathBuf| path.to_string_lossy().contains("/mode0");
    let sessions: Vec<Value> = paths
        .filter(is_mode_0)
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .collect();
    let expected = run_reference(&folder, &sessions);
    let errors = sessions.iter().zip(&expected).map(|(session, expected)| {
        let (journal, factors) = example_session(session).unwrap();
        let score = mos(&journal, |level| factors[usize::from(level)]).unwrap();
        (score - expected[5].as_f64().unwrap()).abs()
    });
    let mean = errors.sum::<f64>() / sessions.len() as f64;
    println!(
        "mean absolute error {mean:.3} over {} examples",
        sessions.len()
    );
    assert!(sessions.len() >= 10 && mean < 0.3, "{mean}");
}
