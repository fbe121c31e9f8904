//! Metrics of the collector. No label contains a session, a title or an address, because each
//! different value would create a time series of its own. Viewers are distinguished only by their
//! class, and the settings limit the number of classes.

use std::sync::Arc;
use std::time::Instant;

use crate::cmcd::CmcdData;
use crate::metrics::{Counter, CounterFamily, Histogram, MetricSpec, Metrics, SampleLabels};

use super::session::ReportMode;
use super::session_table::{ViewerSessionTable, ViewerSessionTableChange};
use super::viewer_class::{ViewerClass, ViewerClasses};

const SESSIONS: MetricSpec = MetricSpec {
    name: "sessions",
    unit: "",
    help: "Sessions of viewers whose players sent CMCD within cmcd-session-idle",
};
const EVICTED: MetricSpec = MetricSpec {
    name: "sessions_evicted",
    unit: "",
    help: "Sessions evicted because cmcd-sessions-max was reached",
};
const REPORTS: MetricSpec = MetricSpec {
    name: "cmcd_reports",
    unit: "",
    help: "CMCD reports received, by event of CTA-5004-B; request: sent with a request",
};
const MALFORMED: MetricSpec = MetricSpec {
    name: "cmcd_malformed",
    unit: "",
    help: "Lines of POST /cmcd that were dropped: malformed, or too many",
};
const REBUFFERS: MetricSpec = MetricSpec {
    name: "cmcd_rebuffers",
    unit: "",
    help: "Stalls that players reported",
};
const ERRORS: MetricSpec = MetricSpec {
    name: "cmcd_errors",
    unit: "",
    help: "Errors that players reported",
};
const BITRATE: MetricSpec = MetricSpec {
    name: "cmcd_bitrate",
    unit: "kbps",
    help: "Bitrate of requested video segments; of intervals, if a player sends events only",
};
const BUFFER: MetricSpec = MetricSpec {
    name: "cmcd_buffer",
    unit: "seconds",
    help: "Length of the buffer in reports",
};
const START_UP: MetricSpec = MetricSpec {
    name: "cmcd_startup",
    unit: "seconds",
    help: "Time from the decision to play to the first frame, once per session",
};

const BITRATE_KBPS: &[f64] = &[
    150.0, 300.0, 600.0, 1000.0, 1500.0, 2500.0, 4000.0, 6000.0, 9000.0, 14_000.0, 20_000.0,
    40_000.0,
];
const BUFFER_S: &[f64] = &[0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0];
const START_UP_S: &[f64] = &[
    0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0,
];

/// Values of the label `event`: `request`, the events of CTA-5004-B, and `other` for all other
/// events.
const EVENTS: &[&str] = &[
    "request",
    "ps",
    "bc",
    "pr",
    "e",
    "t",
    "c",
    "b",
    "m",
    "um",
    "pe",
    "pc",
    "rr",
    "h",
    "as",
    "ae",
    "abs",
    "abe",
    "sk",
    "ce",
    OTHER_EVENT,
];
const OTHER_EVENT: &str = "other";

/// Maximum number of stalls that one report adds, so that a false report cannot distort the total.
const STALLS_MAX: u64 = 100;

/// The collector's metrics.
#[derive(Debug)]
pub(super) struct CmcdCollectorMetrics {
    reports: Vec<(&'static str, Counter)>,
    malformed: Counter,
    evicted: Counter,
    classes: Arc<ViewerClasses>,
    /// The metrics of each class, in the order of [`ViewerClasses::all_classes`].
    by_class: Vec<ViewerClassMetrics>,
}

/// The metrics of one class of viewers.
#[derive(Debug)]
struct ViewerClassMetrics {
    rebuffers: Counter,
    errors: Counter,
    bitrate: Histogram,
    buffer: Histogram,
    start_up: Histogram,
}

/// Names of the labels that identify a class of viewers.
const CLASS_LABELS: &[&str] = &["network", "title_class"];

impl CmcdCollectorMetrics {
    /// Registers the metrics. The number of sessions is read from `table` whenever the metrics are
    /// requested.
    pub(super) fn new(metrics: &Metrics, table: &Arc<ViewerSessionTable>) -> CmcdCollectorMetrics {
        let counted = Arc::clone(table);
        metrics.register_scrape_gauge_family(&SESSIONS, move || count_sessions(&counted));
        let classes = Arc::clone(table.classes());
        let reports: CounterFamily = metrics.counter_family(&REPORTS, &["event"]);
        let by_event = EVENTS.iter();
        CmcdCollectorMetrics {
            reports: by_event
                .map(|event| (*event, reports.with_labels(&[event])))
                .collect(),
            malformed: metrics.counter(&MALFORMED),
            evicted: metrics.counter(&EVICTED),
            by_class: register_classes(metrics, &classes),
            classes,
        }
    }

    /// Counts a report, and the changes that the report caused.
    pub(super) fn count_report(
        &self,
        mode: ReportMode,
        data: &CmcdData,
        change: &ViewerSessionTableChange,
    ) {
        let event = match mode {
            ReportMode::Request => "request",
            ReportMode::Event => data.string_value("e").unwrap_or(OTHER_EVENT),
        };
        let known = self.reports.iter().find(|(name, _)| *name == event);
        if let Some((_, counter)) = known.or(self.reports.last()) {
            counter.inc();
        }
        self.evicted.inc_by(change.evicted);
        let report = &change.report;
        let Some(class) = self.by_class.get(self.classes.class_position(change.class)) else {
            return;
        };
        class.rebuffers.inc_by(report.stalls.min(STALLS_MAX));
        class.errors.inc_by(report.errors);
        let observe = |histogram: &Histogram, value: Option<f64>| {
            value.into_iter().for_each(|value| histogram.observe(value));
        };
        observe(&class.bitrate, report.bitrate_kbps);
        observe(&class.buffer, report.buffer_ms.map(|ms| ms / 1000.0));
        observe(&class.start_up, report.start_up_ms.map(|ms| ms / 1000.0));
    }

    /// Counts lines that were dropped.
    pub(super) fn count_malformed(&self, lines: u64) {
        self.malformed.inc_by(lines);
    }
}

/// Registers the metrics of all classes at once. If a counter appeared only after its first event,
/// Prometheus would not see the increase from 0 to 1.
fn register_classes(metrics: &Metrics, classes: &ViewerClasses) -> Vec<ViewerClassMetrics> {
    let rebuffers = metrics.counter_family(&REBUFFERS, CLASS_LABELS);
    let errors = metrics.counter_family(&ERRORS, CLASS_LABELS);
    let bitrate = metrics.multi_label_histogram(&BITRATE, CLASS_LABELS, BITRATE_KBPS);
    let buffer = metrics.multi_label_histogram(&BUFFER, CLASS_LABELS, BUFFER_S);
    let start_up = metrics.multi_label_histogram(&START_UP, CLASS_LABELS, START_UP_S);
    let of_class = |class: ViewerClass| {
        let names = classes.network_and_title_names(class);
        ViewerClassMetrics {
            rebuffers: rebuffers.with_labels(&names),
            errors: errors.with_labels(&names),
            bitrate: bitrate.with_labels(&names),
            buffer: buffer.with_labels(&names),
            start_up: start_up.with_labels(&names),
        }
    };
    classes.all_classes().map(of_class).collect()
}

fn count_sessions(table: &ViewerSessionTable) -> Vec<(SampleLabels, u64)> {
    let classes = table.classes();
    let counts = table.count_by_class(Instant::now());
    let samples = classes.all_classes().zip(counts);
    samples
        .map(|(class, count)| {
            let names = classes.network_and_title_names(class).map(str::to_owned);
            (CLASS_LABELS.iter().copied().zip(names).collect(), count)
        })
        .collect()
}
