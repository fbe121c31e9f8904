//! What is known of a run when it is over; runs add up.

use super::{Cell, Times};
use crate::client::Fault;
use crate::players::drive::Viewing;
use crate::rate::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The generator's own lateness at which a run is said to have fallen behind, in milliseconds
/// at the 99th percentile.
pub const LAG_P99_MAX_MS: f64 = 2.0;

/// A stretch of the run with its own counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// When it began, in seconds of the run.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// Requests that were due in it; 0 in a closed loop.
    pub due: u64,
    /// Counts by kind of request.
    pub kinds: BTreeMap<Kind, Cell>,
}

impl Stretch {
    /// All kinds together.
    pub fn total(&self) -> Cell {
        let mut total = Cell::default();
        self.kinds.values().for_each(|cell| total.add(cell));
        total
    }
}

/// A second of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Which, from the run's start.
    pub second: u64,
    /// Requests that became due in it.
    pub due: u64,
    /// Requests that ended in it.
    pub ended: u64,
    /// Of those, failures and statuses of 400 and more.
    pub errors: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Connections open at its end.
    pub open: u64,
    /// Quantiles of the latency from due, in milliseconds.
    pub due_p50_ms: f64,
    /// See `due_p50_ms`.
    pub due_p90_ms: f64,
    /// See `due_p50_ms`.
    pub due_p99_ms: f64,
    /// See `due_p50_ms`.
    pub due_max_ms: f64,
    /// The same of the latency from sent.
    pub sent_p50_ms: f64,
    /// See `sent_p50_ms`.
    pub sent_p99_ms: f64,
}

impl Second {
    /// What was counted in a second, whatever the step and kind; who counted says what was due and
    /// is open.
    pub(crate) fn of<'a>(second: u64, cells: impl Iterator<Item = &'a Cell>) -> Second {
        let mut total = Cell::default();
        cells.for_each(|cell| total.add(cell));
        Second {
            second,
            ended: total.requests,
            errors: total.errors(),
            bytes: total.bytes,
            due_p50_ms: total.from_due.quantile_ms(0.5),
            due_p90_ms: total.from_due.quantile_ms(0.9),
            due_p99_ms: total.from_due.quantile_ms(0.99),
            due_max_ms: total.from_due.max_ms(),
            sent_p50_ms: total.from_sent.quantile_ms(0.5),
            sent_p99_ms: total.from_sent.quantile_ms(0.99),
            ..Second::default()
        }
    }
}

/// A run, or several that were merged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What says that a JSON file is one of these.
    pub headwater_load: u32,
    /// What it is called in reports.
    pub name: String,
    /// The offered rate, in words.
    pub offered: String,
    /// Milliseconds since 1970 at its start.
    pub started_unix_ms: u64,
    /// Its length in seconds, until the last answer.
    pub wall_s: f64,
    /// Processor time of the generator, in seconds.
    pub cpu_s: f64,
    /// Generators whose counts are in it.
    pub generators: u64,
    /// Steps of the profile.
    pub steps: Vec<Stretch>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Requests that were due and never sent.
    pub unsent: u64,
    /// Requests still under way when the run was stopped.
    pub abandoned: u64,
    /// Whether a person stopped it before its end.
    pub stopped: bool,
    /// How late the generator itself was to start requests that had a connection to go on.
    pub lag: Times,
    /// Connections that were made.
    pub connections: u64,
    /// Time to make one, TLS included.
    pub connect: Times,
    /// An example of each kind of failure, in words.
    pub examples: BTreeMap<Fault, String>,
    /// How viewers watched, where there were some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewing: Option<Box<Viewing>>,
}

/// The version of [`Run`] in files.
pub const VERSION: u32 = 1;

impl Run {
    /// A run that begins now.
    pub(crate) fn begin(offered: &str, steps: Vec<Stretch>) -> Run {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Run {
            headwater_load: VERSION,
            offered: offered.to_owned(),
            started_unix_ms: since.unwrap_or_default().as_millis() as u64,
            generators: 1,
            steps,
            ..Run::default()
        }
    }

    /// Adds what was counted in a step.
    pub(crate) fn count(&mut self, step: u32, kind: Kind, cell: &Cell) {
        if let Some(stretch) = self.steps.get_mut(step as usize) {
            stretch.kinds.entry(kind).or_default().add(cell);
        }
    }

    /// All steps and kinds together.
    pub fn total(&self) -> Cell {
        let mut total = Cell::default();
        self.steps.iter().for_each(|step| total.add(&step.total()));
        total
    }

    /// All steps together, by kind.
    pub fn kinds(&self) -> BTreeMap<Kind, Cell> {
        let mut kinds: BTreeMap<Kind, Cell> = BTreeMap::new();
        for (kind, cell) in self.steps.iter().flat_map(|step| &step.kinds) {
            kinds.entry(*kind).or_default().add(cell);
        }
        kinds
    }

    /// Requests that became due.
    pub fn due(&self) -> u64 {
        self.steps.iter().map(|step| step.due).sum()
    }

    /// Whether the generator could not keep its own schedule.
    pub fn fell_behind(&self) -> bool {
        self.lag.count() > 0 && self.lag.quantile_ms(0.99) > LAG_P99_MAX_MS
    }

    /// Adds another generator's run of the same plan, or another repetition.
    pub fn add(&mut self, other: &Run) {
        for (n, step) in other.steps.iter().enumerate() {
            if n >= self.steps.len() {
                self.steps.push(Stretch {
                    start_s: step.start_s,
                    end_s: step.end_s,
                    ..Stretch::default()
                });
            }
            let mine = &mut self.steps[n];
            mine.due += step.due;
            for (kind, cell) in &step.kinds {
                mine.kinds.entry(*kind).or_default().add(cell);
            }
        }
        self.add_seconds(&other.seconds);
        self.wall_s = self.wall_s.max(other.wall_s);
        self.cpu_s += other.cpu_s;
        self.generators += other.generators;
        self.unsent += other.unsent;
        self.abandoned += other.abandoned;
        self.stopped |= other.stopped;
        self.lag.add(&other.lag);
        self.connections += other.connections;
        self.connect.add(&other.connect);
        match (&mut self.viewing, &other.viewing) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
        for (fault, text) in &other.examples {
            self.examples.entry(*fault).or_insert_with(|| text.clone());
        }
    }

    /// Counts add up; quantiles cannot, so the worse one stands (and the report says so).
    fn add_seconds(&mut self, others: &[Second]) {
        for other in others {
            match self
                .seconds
                .binary_search_by_key(&other.second, |mine| mine.second)
            {
                Err(place) => self.seconds.insert(place, *other),
                Ok(place) => {
                    let mine = &mut self.seconds[place];
                    mine.due += other.due;
                    mine.ended += other.ended;
                    mine.errors += other.errors;
                    mine.bytes += other.bytes;
                    mine.open += other.open;
                    mine.due_p50_ms = mine.due_p50_ms.max(other.due_p50_ms);
                    mine.due_p90_ms = mine.due_p90_ms.max(other.due_p90_ms);
                    mine.due_p99_ms = mine.due_p99_ms.max(other.due_p99_ms);
                    mine.due_max_ms = mine.due_max_ms.max(other.due_max_ms);
                    mine.sent_p50_ms = mine.sent_p50_ms.max(other.sent_p50_ms);
                    mine.sent_p99_ms = mine.sent_p99_ms.max(other.sent_p99_ms);
                }
            }
        }
    }
}
