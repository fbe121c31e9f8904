//! Counts the stalls of a session from the reports of its player.

use std::time::Instant;

use crate::cmcd::CmcdData;

use super::session::{ReportMode, ViewerReport};

/// Maximum number of stalls that a player's own total may contain.
const COUNT_MAX: f64 = 1e6;
/// Maximum length of one stall, and of the total that a player reports, in milliseconds (one hour).
const STALL_MS_MAX: f64 = 3.6e6;

/// Stalls of a session. Players report stalls in up to three forms: as states, as flags and as
/// totals. Each form is counted separately, because most players report the same stall in two
/// forms. The highest of the three counts is used.
#[derive(Debug, Clone, Default)]
pub(super) struct StallCount {
    /// Number of times that the state changed to rebuffering (`sta=r`).
    by_state: u64,
    /// Total length of these stalls in milliseconds, without the current stall.
    by_state_ms: f64,
    since: Option<StallStart>,
    /// Number of requests that report an empty buffer (`bs`). The first element counts requests for
    /// audio, the second element requests for other objects.
    by_flag: [u64; 2],
    /// Whether the player has reported a non-empty buffer. The first element is for audio, the
    /// second element for other objects. Before this report, an empty buffer is part of the
    /// start-up.
    has_buffered: [bool; 2],
    /// Number of stalls (`bsa`) and total length (`bsda`), as the player reports them.
    by_total: u64,
    by_total_ms: f64,
}

/// The start of the current stall. `timestamp_ms` is the time of the player's clock, if the player
/// reports this time.
#[derive(Debug, Clone, Copy)]
struct StallStart {
    timestamp_ms: Option<f64>,
    at: Instant,
}

impl StallCount {
    /// Returns the number of stalls.
    pub(super) fn stalls_so_far(&self) -> u64 {
        let by_flag = self.by_flag.iter().copied().max().unwrap_or(0);
        self.by_state.max(by_flag).max(self.by_total)
    }

    /// Returns the total length of all stalls in milliseconds, including the current stall.
    pub(super) fn total_stall_ms(&self, now: Instant) -> u64 {
        let current = self.since.map_or(0.0, |start| start.length_ms(None, now));
        (self.by_state_ms + current).max(self.by_total_ms) as u64
    }

    /// Counts the stalls that a report contains as a flag or as totals.
    pub(super) fn count_reported_stalls(&mut self, report: &ViewerReport<'_>) {
        let data = report.data;
        if let Some(count) = data.numeric_value("bsa") {
            self.by_total = self.by_total.max(count.clamp(0.0, COUNT_MAX) as u64);
        }
        if let Some(ms) = data.numeric_value("bsda") {
            self.by_total_ms = self.by_total_ms.max(ms.clamp(0.0, STALL_MS_MAX));
        }
        if report.mode == ReportMode::Request {
            self.count_stall_flag(data);
        }
    }

    fn count_stall_flag(&mut self, data: &CmcdData) {
        let group = usize::from(data.string_value("ot") != Some("a"));
        let (Some(count), Some(buffered)) = (
            self.by_flag.get_mut(group),
            self.has_buffered.get_mut(group),
        ) else {
            return;
        };
        *count += u64::from(*buffered && data.has_flag("bs"));
        *buffered |= data.numeric_value("bl").is_some_and(|ms| ms > 0.0);
    }

    /// Starts a stall.
    pub(super) fn start_stall(&mut self, report: &ViewerReport<'_>) {
        if self.since.is_none() {
            self.by_state += 1;
            self.since = Some(StallStart {
                timestamp_ms: report.data.numeric_value("ts"),
                at: report.now,
            });
        }
    }

    /// Ends the current stall, if there is one.
    pub(super) fn end_stall(&mut self, report: &ViewerReport<'_>) {
        if let Some(start) = self.since.take() {
            self.by_state_ms += start.length_ms(report.data.numeric_value("ts"), report.now);
        }
    }
}

impl StallStart {
    /// Returns the length of a stall in milliseconds. Reports may arrive in batches, so the
    /// player's clock is more exact than the arrival times.
    fn length_ms(self, timestamp_ms: Option<f64>, now: Instant) -> f64 {
        let arrived = now.saturating_duration_since(self.at).as_secs_f64() * 1000.0;
        let by_player = self.timestamp_ms.zip(timestamp_ms);
        let length = by_player.map_or(arrived, |(start, end)| end - start);
        length.clamp(0.0, STALL_MS_MAX)
    }
}
