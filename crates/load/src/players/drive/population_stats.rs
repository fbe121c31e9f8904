//! Statistics of a population. The statistics of several threads, generators or runs can be merged.

use super::super::qoe::SessionSummary;
use super::super::viewer::SessionEnd;
use crate::result::LatencyHistogram;
use net::record::BoundedText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limit on the 99th percentile of the generator's lateness, in milliseconds. Above this limit, the
/// report warns that the generator fell behind. The limit is approximately the duration of one
/// video frame, and short compared with the viewers' buffers.
pub const LATE_P99_MAX_MS: f64 = 50.0;

/// Maximum number of viewers whose individual bitrates, stall ratios and scores are stored.
const VIEWER_FIGURES_MAX: usize = 200_000;

/// Maximum number of different errors of documents, including [`UNREADABLE_OTHER`].
const UNREADABLE_MAX: usize = 64;

/// The name under which further errors of documents are counted.
const UNREADABLE_OTHER: &str = "other";

/// The population at one moment of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationSample {
    /// Seconds since the start of the run.
    pub second: u64,
    /// Number of viewers.
    pub viewers: u64,
    /// Number of viewers whose video is playing.
    pub playing: u64,
    /// Number of stalled viewers.
    pub stalled: u64,
    /// 10th percentile of the viewers' buffered seconds.
    pub buffer_p10_s: f64,
    /// Median of the viewers' buffered seconds.
    pub buffer_p50_s: f64,
    /// 90th percentile of the viewers' buffered seconds.
    pub buffer_p90_s: f64,
    /// Mean bitrate of the chosen levels, in kilobits per second.
    pub bitrate_kbps: f64,
}

/// The buffer and the bitrate of one place over time, for plots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewerTrace {
    /// Index of the place.
    pub place: u64,
    /// Each point contains the second of the run, the buffered seconds, and the bitrate in kilobits
    /// per second.
    pub points: Vec<(u64, f32, f32)>,
}

/// Statistics of a population.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationStats {
    /// Number of viewers who arrived.
    pub viewers: u64,
    /// Number of viewers for each reason why a session ended.
    pub ends: BTreeMap<SessionEnd, u64>,
    /// Time from the play request to the first frame.
    pub start_delay: LatencyHistogram,
    /// Number of stalls of all viewers.
    pub stalls: u64,
    /// Stalled seconds of all viewers.
    pub stalled_s: f64,
    /// Seconds of media played.
    pub played_s: f64,
    /// Number of level changes of all viewers.
    pub switches: u64,
    /// Number of segments that were abandoned and requested again at another level.
    #[serde(default)]
    pub abandoned: u64,
    /// Number of bytes received for the abandoned segments.
    #[serde(default)]
    pub abandoned_bytes: u64,
    /// Mean bitrate of each viewer, in kilobits per second.
    pub bitrates_kbps: Vec<f32>,
    /// Stall ratio of each viewer.
    pub stall_ratios: Vec<f32>,
    /// Linear QoE score of each viewer.
    pub linear: Vec<f32>,
    /// Score of each viewer by P.1203, mode 0 (parametric part only).
    pub mos: Vec<f32>,
    /// Number of documents that could not be parsed, for each error.
    pub unreadable: BTreeMap<String, u64>,
    /// Descriptions of the parts of manifests that were ignored.
    pub notes: Vec<String>,
    /// Lateness of the generator's reactions to timers and responses.
    pub late: LatencyHistogram,
    /// Memory of the largest player without its connections, in bytes.
    pub state_bytes_max: u64,
    /// Largest growth of the process memory during a run, divided by the number of places, in
    /// bytes.
    pub memory_bytes_per_place: u64,
    /// Samples, one per second.
    pub samples: Vec<PopulationSample>,
    /// Traces of the first places.
    pub traces: Vec<ViewerTrace>,
}

impl PopulationStats {
    /// Returns whether the generator reacted too late to timers and responses.
    pub fn fell_behind(&self) -> bool {
        self.late.count() > 0 && self.late.quantile_ms(0.99) > LATE_P99_MAX_MS
    }

    /// Returns the stalled time divided by the sum of played and stalled time, over all viewers.
    pub fn stall_ratio(&self) -> f64 {
        let watched = self.played_s + self.stalled_s;
        if watched > 0.0 {
            self.stalled_s / watched
        } else {
            0.0
        }
    }

    /// Adds a viewer whose session has ended.
    pub(super) fn add_viewer(&mut self, end: SessionEnd, summary: &SessionSummary) {
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
        self.abandoned += summary.abandoned;
        self.abandoned_bytes += summary.abandoned_bytes;
        if self.stall_ratios.len() < VIEWER_FIGURES_MAX && summary.played_ms > 0 {
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

    /// Adds documents that could not be parsed. A server can cause any number of different errors,
    /// so errors beyond the limit are counted together.
    pub(super) fn add_unreadable(&mut self, error: &str, count: u64) {
        let known = &self.unreadable;
        let room = known.contains_key(error) || known.len() + 1 < UNREADABLE_MAX;
        let error = if room { error } else { UNREADABLE_OTHER };
        *self.unreadable.entry(error.to_owned()).or_default() += count;
    }

    /// Adds the statistics of another thread or run.
    pub fn merge(&mut self, other: &PopulationStats) {
        self.viewers += other.viewers;
        for (end, count) in &other.ends {
            *self.ends.entry(*end).or_default() += count;
        }
        self.start_delay.merge(&other.start_delay);
        self.stalls += other.stalls;
        self.stalled_s += other.stalled_s;
        self.played_s += other.played_s;
        self.switches += other.switches;
        self.abandoned += other.abandoned;
        self.abandoned_bytes += other.abandoned_bytes;
        for (mine, theirs) in [
            (&mut self.bitrates_kbps, &other.bitrates_kbps),
            (&mut self.stall_ratios, &other.stall_ratios),
            (&mut self.linear, &other.linear),
            (&mut self.mos, &other.mos),
        ] {
            mine.extend(
                theirs
                    .iter()
                    .take(VIEWER_FIGURES_MAX.saturating_sub(mine.len())),
            );
        }
        for (error, count) in &other.unreadable {
            self.add_unreadable(error, *count);
        }
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        self.late.merge(&other.late);
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

    /// Merges samples of the same second. Adds counts, and averages bitrates weighted by the number
    /// of viewers. Of two buffer quantiles, keeps the smaller quantile.
    fn add_samples(&mut self, others: &[PopulationSample]) {
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

/// The record of one viewer; see docs/records.md.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlayerRecord {
    /// Always `player`.
    pub record: String,
    /// Arrival of the viewer, in milliseconds since the run started.
    pub start_ms: f64,
    /// End of the session, in milliseconds since the run started.
    pub end_ms: f64,
    /// Index of the place.
    pub place: u64,
    /// Number of earlier viewers in this place.
    pub nth: u64,
    /// Session ID, as in CMCD.
    pub session: String,
    /// The manifest.
    pub manifest: String,
    /// The device.
    pub device: String,
    /// Reason why the session ended.
    pub end: SessionEnd,
    /// Bytes received.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// Failed requests.
    pub failed: u64,
    /// Summary of the playback.
    #[serde(flatten)]
    pub summary: SessionSummary,
}

impl PlayerRecord {
    /// Shortens and escapes untrusted text, so that the text is safe to print.
    pub(super) fn bounded_text(text: &str) -> String {
        BoundedText::from(text).as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_documents_beyond_the_limit_are_counted_together() {
        let mut stats = PopulationStats::default();
        for number in 0..1000 {
            stats.add_unreadable(&format!("error {number}"), 1);
        }
        let mut merged = stats.clone();
        merged.merge(&stats);
        for (stats, count) in [(stats, 1000), (merged, 2000)] {
            assert_eq!(stats.unreadable.len(), UNREADABLE_MAX);
            assert_eq!(stats.unreadable.values().sum::<u64>(), count);
        }
    }
}
