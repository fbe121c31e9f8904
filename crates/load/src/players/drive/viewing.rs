//! How a population watched; adds up over threads, generators and runs.

use super::super::qoe::Summary;
use super::super::viewer::End;
use crate::result::Times;
use net::record::Bounded;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Milliseconds that the generator may be late, at the 99th percentile, before a run is said to have
/// fallen behind: a hundredth of the buffers that its viewers hold, and no more than a few pictures.
pub const LATE_P99_MAX_MS: f64 = 50.0;

/// The most viewers whose figures are kept one by one.
const KEPT_MAX: usize = 200_000;

/// A moment of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start.
    pub second: u64,
    /// Players that were there.
    pub viewers: u64,
    /// Of them, those whose pictures moved.
    pub playing: u64,
    /// Of them, those that had run dry.
    pub stalled: u64,
    /// Quantiles of what they held, in seconds.
    pub buffer_p10_s: f64,
    /// See `buffer_p10_s`.
    pub buffer_p50_s: f64,
    /// See `buffer_p10_s`.
    pub buffer_p90_s: f64,
    /// Mean bitrate of the levels that they had chosen, in kilobits a second.
    pub bitrate_kbps: f64,
}

/// One place over time, for plots: seconds, seconds held, kilobits a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Which place.
    pub place: u64,
    /// Second by second.
    pub points: Vec<(u64, f32, f32)>,
}

/// How a population watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Viewing {
    /// Viewers who came.
    pub viewers: u64,
    /// How they ended.
    pub ends: BTreeMap<End, u64>,
    /// From the wish to play to the first picture.
    pub start_delay: Times,
    /// Stalls of all.
    pub stalls: u64,
    /// Seconds of them.
    pub stalled_s: f64,
    /// Seconds of media that were played.
    pub played_s: f64,
    /// Changes of level.
    pub switches: u64,
    /// Mean bitrate of each viewer, in kilobits a second.
    pub bitrates_kbps: Vec<f32>,
    /// Stall ratio of each viewer.
    pub stall_ratios: Vec<f32>,
    /// Linear score of each viewer.
    pub linear: Vec<f32>,
    /// P.1203 mode 0, parametric part only, of each viewer.
    pub mos: Vec<f32>,
    /// Documents that could not be read, by what is wrong with them.
    pub unreadable: BTreeMap<String, u64>,
    /// What was left out of manifests.
    pub notes: Vec<String>,
    /// How late the generator was to act on timers and answers.
    pub late: Times,
    /// Bytes of state of the largest player, its connections apart.
    pub state_bytes_max: u64,
    /// Bytes of the process's memory that each place took at most, all in all.
    pub memory_bytes_per_place: u64,
    /// Second by second.
    pub samples: Vec<Sample>,
    /// Some places, one by one.
    pub traces: Vec<Trace>,
}

impl Viewing {
    /// Whether the generator could not keep up with its own clock.
    pub fn fell_behind(&self) -> bool {
        self.late.count() > 0 && self.late.quantile_ms(0.99) > LATE_P99_MAX_MS
    }

    /// Share of the time between first pictures and ends that was stalled, of all viewers together.
    pub fn stall_ratio(&self) -> f64 {
        let watched = self.played_s + self.stalled_s;
        if watched > 0.0 {
            self.stalled_s / watched
        } else {
            0.0
        }
    }

    /// A viewer has gone.
    pub(super) fn take(&mut self, end: End, summary: &Summary) {
        self.viewers += 1;
        *self.ends.entry(end).or_default() += 1;
        if let Some(ms) = summary.start_delay_ms {
            self.start_delay
                .record(std::time::Duration::from_millis(ms));
        }
        self.stalls += summary.stalls;
        self.stalled_s += summary.stalled_ms as f64 / 1e3;
        self.played_s += summary.played_ms as f64 / 1e3;
        self.switches += summary.switches;
        if self.stall_ratios.len() < KEPT_MAX && summary.played_ms > 0 {
            self.stall_ratios.push(summary.stall_ratio as f32);
            self.bitrates_kbps.push(summary.bitrate_kbps.round() as f32);
            self.linear
                .extend(summary.linear.map(|score| score.round() as f32));
            self.mos.extend(
                summary
                    .mos
                    .map(|score| ((score * 100.0).round() / 100.0) as f32),
            );
        }
    }

    /// Adds another's figures: another thread of the same run, or another run.
    pub fn add(&mut self, other: &Viewing) {
        self.viewers += other.viewers;
        for (end, count) in &other.ends {
            *self.ends.entry(*end).or_default() += count;
        }
        self.start_delay.add(&other.start_delay);
        self.stalls += other.stalls;
        self.stalled_s += other.stalled_s;
        self.played_s += other.played_s;
        self.switches += other.switches;
        for (mine, theirs) in [
            (&mut self.bitrates_kbps, &other.bitrates_kbps),
            (&mut self.stall_ratios, &other.stall_ratios),
            (&mut self.linear, &other.linear),
            (&mut self.mos, &other.mos),
        ] {
            mine.extend(theirs.iter().take(KEPT_MAX.saturating_sub(mine.len())));
        }
        for (what, count) in &other.unreadable {
            *self.unreadable.entry(what.clone()).or_default() += count;
        }
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        self.late.add(&other.late);
        self.state_bytes_max = self.state_bytes_max.max(other.state_bytes_max);
        self.memory_bytes_per_place = self
            .memory_bytes_per_place
            .max(other.memory_bytes_per_place);
        self.add_samples(&other.samples);
        self.traces.extend(
            other
                .traces
                .iter()
                .take(12_usize.saturating_sub(self.traces.len()))
                .cloned(),
        );
    }

    /// Counts add up, means are weighed; of quantiles the worse stands.
    fn add_samples(&mut self, others: &[Sample]) {
        for other in others {
            match self
                .samples
                .binary_search_by_key(&other.second, |mine| mine.second)
            {
                Err(place) => self.samples.insert(place, *other),
                Ok(place) => {
                    let mine = &mut self.samples[place];
                    let (a, b) = (mine.viewers as f64, other.viewers as f64);
                    if a + b > 0.0 {
                        mine.bitrate_kbps =
                            (mine.bitrate_kbps * a + other.bitrate_kbps * b) / (a + b);
                    }
                    mine.viewers += other.viewers;
                    mine.playing += other.playing;
                    mine.stalled += other.stalled;
                    mine.buffer_p10_s = mine.buffer_p10_s.min(other.buffer_p10_s);
                    mine.buffer_p50_s = mine.buffer_p50_s.min(other.buffer_p50_s);
                    mine.buffer_p90_s = mine.buffer_p90_s.min(other.buffer_p90_s);
                }
            }
        }
    }
}

/// The record of one viewer; docs/records.md says what its fields mean.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlayerRecord {
    /// `player`.
    pub record: String,
    /// Milliseconds of the run at which they came.
    pub start_ms: f64,
    /// When they had gone.
    pub end_ms: f64,
    /// Their place, from 0.
    pub place: u64,
    /// How many sat there before.
    pub nth: u64,
    /// The session's name, as CMCD tells it.
    pub session: String,
    /// The manifest.
    pub manifest: String,
    /// The device.
    pub device: String,
    /// How it ended.
    pub end: End,
    /// Bytes that came.
    pub bytes: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Of them, those that failed.
    pub failed: u64,
    /// How it was.
    #[serde(flatten)]
    pub summary: Summary,
}

impl PlayerRecord {
    /// Text from outside, made safe to print.
    pub(super) fn text(text: &str) -> String {
        Bounded::from(text).as_str().to_owned()
    }
}
