//! Exemplars of OpenMetrics: the most recent traced request of each bucket.
//!
//! `prometheus-client` creates exemplars only in its own histograms, which take two locks per
//! request. These exemplars are therefore added to its text, and only traced requests take a lock.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A traced request.
#[derive(Debug, Clone, Copy)]
struct Exemplar {
    trace_id: u128,
    duration: Duration,
    /// Since 1970.
    recorded_at: Duration,
}

/// The exemplar of each bucket. Its size is limited by the number of buckets.
#[derive(Debug, Default)]
pub(super) struct ExemplarTable {
    /// Keyed by the bucket's name and labels, as they are written in the text.
    by_bucket: Mutex<HashMap<String, Exemplar>>,
}

impl ExemplarTable {
    /// Replaces the exemplar of a bucket.
    pub(super) fn record(&self, bucket: String, trace_id: u128, duration: Duration) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let exemplar = Exemplar {
            trace_id,
            duration,
            recorded_at: now.unwrap_or_default(),
        };
        self.lock().insert(bucket, exemplar);
    }

    /// Appends the exemplars to the lines of their buckets. `text` has no timestamps.
    pub(super) fn add_to_text(&self, text: String) -> String {
        let exemplars = self.lock();
        if exemplars.is_empty() {
            return text;
        }
        let mut out = String::with_capacity(text.len() + exemplars.len() * 96);
        for line in text.lines() {
            out += line;
            let bucket = line.rsplit_once(' ').map(|(bucket, _)| bucket);
            if let Some(exemplar) = bucket.and_then(|bucket| exemplars.get(bucket)) {
                exemplar.write_to(&mut out);
            }
            out.push('\n');
        }
        out
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Exemplar>> {
        self.by_bucket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exemplar {
    /// Appends the exemplar in the text format (OpenMetrics 1.0, section "Exemplars").
    fn write_to(&self, out: &mut String) {
        let seconds = self.duration.as_secs_f64();
        let at = self.recorded_at.as_secs_f64();
        // Ignores the result: writing to a string does not fail.
        let _ = write!(
            out,
            " # {{trace_id=\"{:032x}\"}} {seconds:.9} {at:.3}",
            self.trace_id
        );
    }
}
