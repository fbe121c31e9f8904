//! The settings of the CMCD collector.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::{Setting, SettingLayers, UsageError, units};
use crate::Cidr;

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
        "Limit on sessions; beyond it, the network with the most loses its longest-idle session",
    ),
    Setting::new(
        "cmcd-network",
        "NAME=NETWORK",
        "",
        "Name of a network in the metrics of the collector, such as office=10.0.0.0/8",
    )
    .as_list(),
    Setting::new(
        "cmcd-title-class",
        "NAME=PREFIX",
        "",
        "Name for titles with this prefix in the metrics of the collector: kids=films/kids/",
    )
    .as_list(),
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
pub struct CmcdCollectorSettings {
    /// Whether CMCD is collected.
    pub is_enabled: bool,
    /// Limit on the number of sessions.
    pub sessions_max: usize,
    /// A session ends when no report has arrived for this time.
    pub idle_timeout: Duration,
    /// File for a record of each report.
    pub records: Option<PathBuf>,
    /// Percentage of the sessions whose reports are recorded, from 0 to 100.
    pub sample_percent: u8,
    /// For each value of `cmcd-network`, the network's name in the metrics and its address range.
    pub networks: Vec<(String, Cidr)>,
    /// For each value of `cmcd-title-class`, the class's name in the metrics and the prefix of its
    /// titles.
    pub title_classes: Vec<(String, String)>,
}

/// Largest permitted value of `cmcd-sessions-max`. That many sessions need about 2 GB of memory.
const SESSIONS_MAX: usize = 1_000_000;
/// Limit on the number of different names in `cmcd-network`. The same limit applies to
/// `cmcd-title-class`. The metrics also use default names, two for networks and one for title
/// classes. Each metric therefore has at most 18 × 17 series.
const NAMES_MAX: usize = 16;
/// Limit on the bytes of a name.
const NAME_BYTES_MAX: usize = 64;
/// Limit on the number of values of `cmcd-network`, because each report is compared with all
/// values. The same limit applies to `cmcd-title-class`.
const RULES_MAX: usize = 256;

impl CmcdCollectorSettings {
    /// Parses the settings.
    ///
    /// # Errors
    /// [`UsageError`] for the first invalid value, and for `cmcd-records` when the collector is
    /// disabled.
    pub(crate) fn new(layers: &SettingLayers) -> Result<CmcdCollectorSettings, UsageError> {
        let settings = CmcdCollectorSettings {
            is_enabled: layers
                .parse_setting("cmcd-collector", units::parse_switch)?
                .unwrap_or(false),
            sessions_max: layers
                .parse_setting("cmcd-sessions-max", parse_sessions_max)?
                .unwrap_or(1),
            idle_timeout: layers
                .parse_setting("cmcd-session-idle", units::parse_duration)?
                .unwrap_or_default(),
            records: layers.setting_path("cmcd-records"),
            sample_percent: layers
                .parse_setting("cmcd-sample", parse_percent)?
                .unwrap_or(100),
            networks: layers.parse_list_setting("cmcd-network", |text| {
                let (name, network) = split_name_value(text)?;
                Ok((name, Cidr::parse_network(network)?))
            })?,
            title_classes: layers.parse_list_setting("cmcd-title-class", |text| {
                let (name, prefix) = split_name_value(text)?;
                Ok((name, prefix.trim_start_matches('/').to_owned()))
            })?,
        };
        check_name_count("cmcd-network", &settings.networks)?;
        check_name_count("cmcd-title-class", &settings.title_classes)?;
        match settings.records.is_some() && !settings.is_enabled {
            true => {
                let what = "cmcd-records requires the collector; set cmcd-collector = true";
                Err(UsageError(what.into()))
            }
            false => Ok(settings),
        }
    }
}

/// Splits `NAME=VALUE`.
fn split_name_value(text: &str) -> Result<(String, &str), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.split_once('=') {
        Some((name, value))
            if (1..=NAME_BYTES_MAX).contains(&name.len())
                && name.chars().all(is_allowed)
                && !value.is_empty() =>
        {
            Ok((name.to_owned(), value))
        }
        _ => Err("expected NAME=VALUE; a name has letters, digits, -, _ and .".into()),
    }
}

fn check_name_count<T>(setting: &str, rules: &[(String, T)]) -> Result<(), UsageError> {
    let names: BTreeSet<&String> = rules.iter().map(|(name, _)| name).collect();
    if names.len() <= NAMES_MAX && rules.len() <= RULES_MAX {
        return Ok(());
    }
    let what = format!("{setting}: at most {NAMES_MAX} names and {RULES_MAX} values are allowed");
    Err(UsageError(what))
}

fn parse_sessions_max(text: &str) -> Result<usize, String> {
    match units::parse_count(text)? {
        count if (1..=SESSIONS_MAX).contains(&count) => Ok(count),
        _ => Err(format!("expected 1 to {SESSIONS_MAX} sessions")),
    }
}

fn parse_percent(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| *percent <= 100);
    percent.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_values_are_not_empty() {
        assert_eq!(
            split_name_value("kids=films/a=b/"),
            Ok(("kids".to_owned(), "films/a=b/"))
        );
        let long = format!("{}=x", "a".repeat(NAME_BYTES_MAX + 1));
        for wrong in ["", "kids", "=films/", "kids=", "a b=c", "a\"=c", &long] {
            assert!(split_name_value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_number_of_names_is_limited_but_not_that_of_their_values() {
        let rules = |names: usize, values: usize| -> Vec<(String, ())> {
            (0..values)
                .map(|n| (format!("n{}", n % names), ()))
                .collect()
        };
        assert!(check_name_count("x", &rules(NAMES_MAX, RULES_MAX)).is_ok());
        assert!(check_name_count("x", &rules(NAMES_MAX + 1, RULES_MAX)).is_err());
        assert!(check_name_count("x", &rules(1, RULES_MAX + 1)).is_err());
    }
}
