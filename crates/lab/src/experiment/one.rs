//! One run on this machine: deployed, warmed up, measured, collected.

use super::check::starting_order;
use super::collect::collect;
use super::deploy::Deployed;
use super::names::Where;
use super::{Document, Record};
use std::sync::atomic::AtomicBool;

/// Fills the record in. Whatever was started is gone when this returns.
///
/// # Errors
/// Why the run does not count.
pub(super) fn one(
    document: &Document,
    at: Where<'_>,
    record: &mut Record,
    stop: &AtomicBool,
) -> Result<(), String> {
    let arm = record.arm.clone();
    let deployed = Deployed::start(document, &arm, at)?;
    for name in starting_order(document).unwrap_or_default() {
        deployed.function(name, stop)?;
    }
    let sinks: Vec<&str> = document.sink.keys().map(|n| n.get_ref().as_str()).collect();
    deployed.warm_up(&sinks, stop)?;
    let measured = deployed.measure(&sinks, stop)?;
    drop(deployed);
    collect(document, &[measured], record)
}
