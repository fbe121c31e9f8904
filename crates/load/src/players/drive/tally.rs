//! What a thread has seen since it last told the collector.

use super::super::player::What;
use super::super::viewer::{Glance, Viewer};
use super::viewing::{PlayerRecord, Viewing};
use crate::client::{Fault, Outcome};
use crate::rate::Kind;
use crate::result::{Cell, Record};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A thread's report of about a second.
#[derive(Default)]
pub(super) struct Tick {
    pub(super) second: u64,
    pub(super) cells: BTreeMap<(u32, Kind), Box<Cell>>,
    pub(super) viewing: Box<Viewing>,
    pub(super) glances: Vec<(u64, Glance)>,
    pub(super) examples: BTreeMap<Fault, String>,
    pub(super) records: Vec<Record>,
    pub(super) players: Vec<PlayerRecord>,
    pub(super) abandoned: u64,
}

/// Counts as they come.
pub(super) struct Tally {
    tick: Box<Tick>,
    start: Instant,
    keep_records: bool,
    number: u64,
}

impl Tally {
    pub(super) fn new(start: Instant, keep_records: bool) -> Tally {
        Tally {
            tick: Box::default(),
            start,
            keep_records,
            number: 0,
        }
    }

    /// Takes what there is and starts anew.
    pub(super) fn flush(&mut self, second: u64) -> Box<Tick> {
        let mut tick = std::mem::take(&mut self.tick);
        tick.second = second;
        tick
    }

    pub(super) fn late(&mut self, late: Duration) {
        self.tick.viewing.late.record(late);
    }

    pub(super) fn glance(&mut self, place: u64, glance: Glance) {
        self.tick.glances.push((place, glance));
    }

    pub(super) fn abandoned(&mut self, count: u64) {
        self.tick.abandoned += count;
    }

    pub(super) fn unreadable(&mut self, what: String) {
        *self.tick.viewing.unreadable.entry(what).or_default() += 1;
    }

    pub(super) fn notes(&mut self, notes: &[String]) {
        let known = &mut self.tick.viewing.notes;
        for note in notes {
            if known.len() < 32 && !known.contains(note) {
                known.push(note.clone());
            }
        }
    }

    pub(super) fn viewer(&mut self, viewer: &Viewer) {
        let bytes = viewer.memory_bytes() as u64;
        let most = &mut self.tick.viewing.state_bytes_max;
        *most = (*most).max(bytes);
    }

    pub(super) fn gone(&mut self, record: PlayerRecord) {
        self.tick.viewing.take(record.end, &record.summary);
        if self.keep_records {
            self.tick.players.push(record);
        }
    }

    /// A request that ended.
    pub(super) fn ended(&mut self, step: u32, what: What, outcome: &Outcome) {
        let kind = kind(what);
        let cell = self.tick.cells.entry((step, kind)).or_default();
        cell.requests += 1;
        cell.bytes += outcome.body_bytes;
        cell.from_due.record(outcome.latency_from_due());
        if let Some(sent) = outcome.sent {
            cell.from_sent
                .record(outcome.last_byte.saturating_duration_since(sent));
            if let Some(first) = outcome.first_byte {
                cell.first_byte
                    .record(first.saturating_duration_since(sent));
            }
        }
        match outcome.fault {
            Some(fault) => {
                *cell.faults.entry(fault).or_default() += 1;
                let told = || {
                    format!(
                        "{}: {}",
                        outcome.url,
                        outcome.detail.as_deref().unwrap_or_default()
                    )
                };
                self.tick
                    .examples
                    .entry(fault)
                    .or_insert_with(|| PlayerRecord::text(&told()));
            }
            None => *cell.statuses.entry(outcome.status).or_default() += 1,
        }
        if self.keep_records {
            let ms =
                |moment: Instant| moment.saturating_duration_since(self.start).as_secs_f64() * 1e3;
            self.tick.records.push(Record {
                n: self.number,
                due_ms: ms(outcome.due),
                sent_ms: outcome.sent.map(ms),
                first_ms: outcome.first_byte.map(ms),
                end_ms: ms(outcome.last_byte),
                step,
                kind,
                status: outcome.status,
                bytes: outcome.body_bytes,
                fault: outcome.fault,
                late: false,
            });
            self.number += 1;
        }
    }
}

fn kind(what: What) -> Kind {
    match what {
        What::Manifest | What::Playlist | What::Index => Kind::Manifest,
        What::Init => Kind::Init,
        What::Video | What::Audio => Kind::Segment,
        What::Range => Kind::Range,
    }
}
