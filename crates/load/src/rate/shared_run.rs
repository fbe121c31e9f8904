//! State that all threads of a run share.

use super::plan::RateRunPlan;
use super::request_target::TargetSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

/// State that all threads of a run share.
pub(super) struct SharedRun {
    pub(super) plan: Arc<RateRunPlan>,
    pub(super) targets: Arc<TargetSet>,
    /// Start of the run. This time is set once all threads are ready.
    pub(super) start: OnceLock<Instant>,
    pub(super) ready: Barrier,
    /// The user requested an early stop.
    pub(super) stop: AtomicBool,
    pub(super) keep_records: bool,
}

/// Returns the share of thread `number` if `total` is divided among all threads.
pub(super) fn share_of_thread(total: usize, threads: usize, number: usize) -> usize {
    total / threads + usize::from(number < total % threads)
}
