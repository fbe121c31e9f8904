//! The settings of the CMCD collector.

use std::path::PathBuf;
use std::time::Duration;

use super::{Setting, SettingLayers, UsageError, units};

/// The settings of the CMCD collector, which every server has.
pub const COLLECTOR: &[Setting] = &[
    Setting::new(
        "cmcd-collector",
        "yes|no",
        "no",
        "Collect CMCD of requests and of POST /cmcd, for metrics and /viewers on the admin port",
    )
    .as_switch(),
    Setting::new(
        "cmcd-sessions-max",
        "N",
        "10000",
        "Limit on sessions of the collector; beyond it, the session idle for longest is evicted",
    ),
    Setting::new(
        "cmcd-session-idle",
        "DURATION",
        "2min",
        "Time without a report after which a session has ended",
    ),
    Setting::new(
        "cmcd-records",
        "FILE",
        "",
        "File for a JSON record of each report that the collector receives",
    ),
    Setting::new(
        "cmcd-sample",
        "PERCENT",
        "100",
        "Share of the sessions whose reports are written to cmcd-records",
    ),
];

/// The parsed values of [`COLLECTOR`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorSettings {
    /// Whether CMCD is collected.
    pub is_enabled: bool,
    /// Limit on the number of sessions.
    pub sessions_max: usize,
    /// Time without a report after which a session has ended.
    pub idle_timeout: Duration,
    /// File for records of reports.
    pub records: Option<PathBuf>,
    /// Share of the recorded sessions, from 0 to 100.
    pub sample_percent: u8,
}

/// Limit on `cmcd-sessions-max`: about 2 GB.
const SESSIONS_MAX: usize = 1_000_000;

impl CollectorSettings {
    /// Parses the settings.
    ///
    /// # Errors
    /// [`UsageError`] for the first invalid value, and for records without a collector.
    pub(super) fn new(layers: &SettingLayers) -> Result<CollectorSettings, UsageError> {
        let settings = CollectorSettings {
            is_enabled: layers
                .with("cmcd-collector", units::switch)?
                .unwrap_or(false),
            sessions_max: layers
                .with("cmcd-sessions-max", parse_sessions)?
                .unwrap_or(1),
            idle_timeout: layers
                .with("cmcd-session-idle", units::duration)?
                .unwrap_or_default(),
            records: layers.path("cmcd-records"),
            sample_percent: layers.with("cmcd-sample", parse_percent)?.unwrap_or(100),
        };
        match settings.records.is_some() && !settings.is_enabled {
            true => {
                let what = "cmcd-records requires the collector; set cmcd-collector = true";
                Err(UsageError(what.into()))
            }
            false => Ok(settings),
        }
    }
}

fn parse_sessions(text: &str) -> Result<usize, String> {
    match units::count(text)? {
        count if (1..=SESSIONS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("expected 1 to {SESSIONS_MAX} sessions")),
    }
}

fn parse_percent(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| *percent <= 100);
    percent.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}
