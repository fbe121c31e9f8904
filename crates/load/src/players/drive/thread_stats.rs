//! The counts of one thread since its last report.

use super::super::player_interface::FetchPurpose;
use super::super::viewer::{PlayerSnapshot, Viewer};
use super::in_flight_fetch::InFlightFetch;
use super::population_stats::{PlayerRecord, PopulationStats};
use crate::client::{FailureKind, RequestOutcome};
use crate::rate::RequestKind;
use crate::result::{FinishedRequest, RequestRecord, RequestStats};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The report of a thread about one second of the run.
#[derive(Default)]
pub(super) struct ViewerThreadReport {
    pub(super) second: u64,
    pub(super) cells: BTreeMap<(u32, RequestKind), Box<RequestStats>>,
    pub(super) viewing: Box<PopulationStats>,
    pub(super) snapshots: Vec<(u64, PlayerSnapshot)>,
    pub(super) examples: BTreeMap<FailureKind, String>,
    pub(super) records: Vec<RequestRecord>,
    pub(super) players: Vec<PlayerRecord>,
    pub(super) abandoned: u64,
}

/// Counts of one thread, updated when a session or a request ends.
pub(super) struct ViewerThreadStats {
    report: Box<ViewerThreadReport>,
    start: Instant,
    keep_records: bool,
    /// Number of the next record in the run. Each thread uses every nth number, where n is the
    /// number of threads.
    number: u64,
    threads: u64,
}

impl ViewerThreadStats {
    pub(super) fn new(
        start: Instant,
        keep_records: bool,
        thread: usize,
        threads: usize,
    ) -> ViewerThreadStats {
        ViewerThreadStats {
            report: Box::default(),
            start,
            keep_records,
            number: thread as u64,
            threads: threads as u64,
        }
    }

    /// Returns the counts since the last report, and resets the counts.
    pub(super) fn take_report(&mut self, second: u64) -> Box<ViewerThreadReport> {
        let mut report = std::mem::take(&mut self.report);
        report.second = second;
        report
    }

    pub(super) fn record_lateness(&mut self, late: Duration) {
        self.report.viewing.late.record(late);
    }

    pub(super) fn add_player_snapshot(&mut self, place: u64, snapshot: PlayerSnapshot) {
        self.report.snapshots.push((place, snapshot));
    }

    pub(super) fn count_abandoned(&mut self, count: u64) {
        self.report.abandoned += count;
    }

    /// Counts and records a request that the player cancelled.
    pub(super) fn record_abandoned(&mut self, step: u32, fetch: &InFlightFetch, session: &str) {
        self.count_abandoned(1);
        if !self.keep_records {
            return;
        }
        let finished = FinishedRequest {
            due: fetch.start,
            sent: Some(fetch.start),
            first_byte: fetch.progress.first_byte(),
            end: Instant::now(),
            status: 0,
            bytes: fetch.progress.bytes(),
            fault: None,
            late: false,
        };
        let (kind, of) = (
            kind_from_purpose(fetch.purpose),
            (&fetch.url, Some(session)),
        );
        let mut record = finished.to_record(self.number, step, kind, self.start, of);
        record.abandoned = true;
        self.report.records.push(record);
        self.number += self.threads;
    }

    pub(super) fn count_unreadable(&mut self, error: &str) {
        self.report.viewing.add_unreadable(error, 1);
    }

    pub(super) fn add_manifest_notes(&mut self, notes: &[String]) {
        let known = &mut self.report.viewing.notes;
        for note in notes {
            if known.len() < 32 && !known.contains(note) {
                known.push(note.clone());
            }
        }
    }

    pub(super) fn record_viewer_memory(&mut self, viewer: &Viewer) {
        let bytes = viewer.memory_bytes() as u64;
        let most = &mut self.report.viewing.state_bytes_max;
        *most = (*most).max(bytes);
    }

    pub(super) fn record_session(&mut self, record: PlayerRecord) {
        self.report.viewing.add_viewer(record.end, &record.summary);
        if self.keep_records {
            self.report.players.push(record);
        }
    }

    /// Counts a request that completed or failed.
    pub(super) fn count_request(
        &mut self,
        step: u32,
        purpose: FetchPurpose,
        outcome: &RequestOutcome,
        session: &str,
    ) {
        let kind = kind_from_purpose(purpose);
        let finished = FinishedRequest {
            due: outcome.due,
            sent: outcome.sent,
            first_byte: outcome.first_byte,
            end: outcome.last_byte,
            status: outcome.status,
            bytes: outcome.body_bytes,
            fault: outcome.fault,
            late: false,
        };
        let cell = self.report.cells.entry((step, kind)).or_default();
        cell.count_request(&finished);
        if let Some(fault) = outcome.fault {
            let example = || {
                let detail = outcome.detail.as_deref().unwrap_or_default();
                PlayerRecord::bounded_text(&format!("{}: {detail}", outcome.url))
            };
            let examples = &mut self.report.examples;
            examples.entry(fault).or_insert_with(example);
        }
        if self.keep_records {
            let record = {
                let of = (&outcome.url, Some(session));
                finished.to_record(self.number, step, kind, self.start, of)
            };
            self.report.records.push(record);
            self.number += self.threads;
        }
    }
}

fn kind_from_purpose(purpose: FetchPurpose) -> RequestKind {
    match purpose {
        FetchPurpose::Manifest | FetchPurpose::Playlist | FetchPurpose::Index => {
            RequestKind::Manifest
        }
        FetchPurpose::Init => RequestKind::Init,
        FetchPurpose::Video | FetchPurpose::Audio => RequestKind::Segment,
        FetchPurpose::Text => RequestKind::Text,
        FetchPurpose::Range => RequestKind::Range,
    }
}
