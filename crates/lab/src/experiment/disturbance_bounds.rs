//! Discards runs that the machine disturbed.

use super::{RunPlan, RunRecord};
use net::config::parse_duration;
use std::time::Duration;

/// A bound that a run exceeds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum BoundExceeded {
    #[error("link {name} was {late_us} us late at p99; the bound is {bound:?}")]
    LinkLateness {
        name: String,
        late_us: u64,
        bound: Duration,
    },
    #[error("sink {name} was {late_ms} ms late at p99; the bound is {bound:?}")]
    SinkLateness {
        name: String,
        late_ms: f64,
        bound: Duration,
    },
    #[error("{percent:.1} % of processor time was stolen; the bound is {bound_percent}")]
    Steal { percent: f64, bound_percent: f64 },
}

const LINK_LATE: Duration = Duration::from_millis(2);
const SINK_LATE: Duration = Duration::from_millis(2);
const STEAL: f64 = 0.05;

/// Checks a run against the bounds of its document, or against the default bounds.
///
/// # Errors
/// The run exceeds a bound; the error describes the first such bound.
pub(super) fn check_run_bounds(plan: &RunPlan, record: &RunRecord) -> Result<(), BoundExceeded> {
    let bounds = &plan.document.bounds;
    let read = |text: &Option<toml::Spanned<String>>| {
        let text = text.as_ref()?;
        parse_duration(text.get_ref()).ok()
    };
    let bound = read(&bounds.link_late).unwrap_or(LINK_LATE);
    for (name, late_us) in &record.link_late_us {
        if Duration::from_micros(*late_us) > bound {
            return Err(BoundExceeded::LinkLateness {
                name: name.clone(),
                late_us: *late_us,
                bound,
            });
        }
    }
    let bound = read(&bounds.sink_late).unwrap_or(SINK_LATE);
    for (name, late_ms) in &record.sink_late_ms {
        if *late_ms > bound.as_secs_f64() * 1e3 {
            return Err(BoundExceeded::SinkLateness {
                name: name.clone(),
                late_ms: *late_ms,
                bound,
            });
        }
    }
    let steal = bounds.steal.as_ref();
    let steal = steal.and_then(|text| crate::link::parse_percentage(text.get_ref()).ok());
    let steal = steal.unwrap_or(STEAL);
    if record.noise.steal > steal {
        return Err(BoundExceeded::Steal {
            percent: record.noise.steal * 100.0,
            bound_percent: steal * 100.0,
        });
    }
    Ok(())
}
