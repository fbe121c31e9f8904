//! Whether a run says more about the machine than about its arm.

use super::{Plan, Record};
use net::config::duration;
use std::time::Duration;

const LINK_LATE: Duration = Duration::from_millis(2);
const SINK_LATE: Duration = Duration::from_millis(2);
const STEAL: f64 = 0.05;

/// # Errors
/// Which bound, and how far beyond it.
pub(super) fn within(plan: &Plan, record: &Record) -> Result<(), String> {
    let bounds = &plan.document.bounds;
    let late = bounds
        .link_late
        .as_ref()
        .and_then(|text| duration(text.get_ref()).ok());
    let late = late.unwrap_or(LINK_LATE);
    for (name, late_us) in &record.link_late_us {
        if Duration::from_micros(*late_us) > late {
            return Err(format!(
                "link {name} was {late_us} us late at p99; at most {late:?}"
            ));
        }
    }
    let most = bounds
        .sink_late
        .as_ref()
        .and_then(|text| duration(text.get_ref()).ok());
    let most = most.unwrap_or(SINK_LATE);
    for (name, late_ms) in &record.sink_late_ms {
        if *late_ms > most.as_secs_f64() * 1e3 {
            return Err(format!(
                "sink {name} was {late_ms} ms late at p99; at most {most:?}"
            ));
        }
    }
    let steal = bounds
        .steal
        .as_ref()
        .and_then(|text| crate::link::fraction(text.get_ref()).ok());
    let steal = steal.unwrap_or(STEAL);
    if record.noise.steal > steal {
        let percent = record.noise.steal * 100.0;
        return Err(format!(
            "{percent:.1} % of processor time was stolen; at most {}",
            steal * 100.0
        ));
    }
    Ok(())
}
