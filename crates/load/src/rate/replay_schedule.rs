//! Computes when each request of a replay is due.

use super::rate_profile::{ProfileStep, RateProfile};
use super::request_target::RequestTarget;

/// Maximum speed of a replay, relative to the recording.
const SPEED_MAX: f64 = 1_000_000.0;

/// Maximum length of a replay, in seconds (366 days).
const LENGTH_S_MAX: f64 = 31_622_400.0;

/// The reason why a replay cannot be scheduled.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A target has no recorded time.
    #[error("replay needs recorded requests; use har:FILE or log:FILE for all targets")]
    NotRecorded,
    /// No request is due within the duration.
    #[error("no request would be due; use a longer --duration")]
    NothingDue,
    /// The replay would be too long.
    #[error("the replay would take more than 366 days; use a higher --speed or split the file")]
    TooLong,
}

/// Sorts the targets by their recorded times, and returns a profile that requests each target once,
/// in this order. The replay is `speed` times as fast as the recording. If `duration_s` is set,
/// removes the targets that are not due before this time.
///
/// # Errors
/// See [`ReplayError`].
pub fn schedule_replay(
    targets: &mut Vec<RequestTarget>,
    speed: f64,
    duration_s: Option<f64>,
) -> Result<RateProfile, ReplayError> {
    let times: Option<Vec<f64>> = targets.iter().map(|target| target.recorded_at_s).collect();
    let times = times.ok_or(ReplayError::NotRecorded)?;
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let due = |target: &RequestTarget| (target.recorded_at_s.unwrap_or(first) - first) / speed;
    if let Some(limit) = duration_s {
        targets.retain(|target| due(target) < limit);
    }
    targets.sort_by(|a, b| due(a).total_cmp(&due(b)));
    let due_s: Vec<f64> = targets.iter().map(due).collect();
    let end_s = due_s.last().copied().ok_or(ReplayError::NothingDue)?;
    if end_s > LENGTH_S_MAX {
        return Err(ReplayError::TooLong);
    }
    let step = ProfileStep {
        start_s: 0.0,
        end_s,
    };
    Ok(RateProfile::Replay {
        due_s: due_s.into(),
        step,
    })
}

/// Parses the speed of a replay.
///
/// # Errors
/// The text is not a positive number, or it is above the maximum speed.
pub fn parse_replay_speed(text: &str) -> Result<f64, &'static str> {
    let speed = text.parse().ok();
    speed
        .filter(|speed| *speed > 0.0 && *speed <= SPEED_MAX)
        .ok_or("expected a number above 0 and up to 1000000, such as 2 for twice as fast")
}

#[cfg(test)]
mod tests {
    use super::super::arrival_times::{ArrivalSpacing, ArrivalTimes};
    use super::*;
    use url::Url;

    fn recorded(times: &[f64]) -> Vec<RequestTarget> {
        let target = |at: &f64| RequestTarget {
            recorded_at_s: Some(*at),
            ..RequestTarget::from_url(Url::parse(&format!("http://a/{at}")).unwrap())
        };
        times.iter().map(target).collect()
    }

    #[test]
    fn requests_are_due_at_their_recorded_distances_divided_by_the_speed() {
        let mut targets = recorded(&[103.0, 100.0, 101.0]);
        let profile = schedule_replay(&mut targets, 2.0, None).unwrap();
        let due: Vec<f64> = ArrivalTimes::new(&profile, ArrivalSpacing::Even, 1).collect();
        assert_eq!(due, [0.0, 0.5, 1.5]);
        assert_eq!(targets[1].url.path(), "/101");
        assert_eq!(profile.duration_s(), 1.5);
        let profile = schedule_replay(&mut targets, 1.0, Some(2.0)).unwrap();
        assert_eq!((targets.len(), profile.duration_s()), (2, 1.0));
    }

    #[test]
    fn targets_without_a_time_cannot_be_replayed() {
        let mut targets = recorded(&[1.0, 2.0]);
        targets.push(RequestTarget::from_url(Url::parse("http://a/").unwrap()));
        assert!(schedule_replay(&mut targets, 1.0, None).is_err());
        for text in ["0", "-1", "nan", "inf", "fast", "1e9"] {
            assert!(parse_replay_speed(text).is_err(), "{text}");
        }
        assert_eq!(parse_replay_speed("0.5"), Ok(0.5));
    }
}
