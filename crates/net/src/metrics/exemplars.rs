//! OpenMetrics exemplars. The exemplar of a bucket is its most recent traced request.
//!
//! `prometheus-client` supports exemplars only in its own histograms, which take two locks per
//! request. This module therefore inserts exemplars into the text that `prometheus-client` writes.
//! Only traced requests take a lock.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A traced request.
#[derive(Debug, Clone, Copy)]
struct Exemplar {
    trace_id: u128,
    duration: Duration,
    /// Time since 1970.
    recorded_at: Duration,
}

/// The exemplars of all buckets, at most one per bucket.
#[derive(Debug, Default)]
pub(super) struct ExemplarTable {
    /// The key is the bucket's name with its labels, as in the text of the metrics.
    by_bucket: Mutex<HashMap<String, Exemplar>>,
}

impl ExemplarTable {
    /// Replaces the exemplar of a bucket.
    pub(super) fn store_exemplar(&self, bucket: String, trace_id: u128, duration: Duration) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let exemplar = Exemplar {
            trace_id,
            duration,
            recorded_at: now.unwrap_or_default(),
        };
        self.lock().insert(bucket, exemplar);
    }

    /// Appends each exemplar to the line of its bucket. `text` must not contain timestamps.
    pub(super) fn add_exemplars(&self, text: String) -> String {
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
        // Ignores the result because writing to a string cannot fail.
        let _ = write!(
            out,
            " # {{trace_id=\"{:032x}\"}} {seconds:.9} {at:.3}",
            self.trace_id
        );
    }
}
