//! The settings of traces and `Server-Timing`.

use std::io;
use std::path::PathBuf;

use super::{Setting, SettingLayers, UsageError};
use crate::access_token::{RequiredTokenHeader, TIMING_TOKEN, read_token_file};

/// The settings of traces and `Server-Timing`. Every server has these settings.
pub const TRACING: &[Setting] = &[
    Setting::new(
        "otlp-endpoint",
        "URL",
        "",
        "Collector of traces (OTLP over HTTP), such as http://localhost:4318/v1/traces",
    ),
    Setting::new(
        "otlp-headers-file",
        "FILE",
        "",
        "File with headers for the collector, such as an API key: one Name: value per line",
    ),
    Setting::new(
        "otlp-sample-percent",
        "PERCENT",
        "0",
        "Percentage of requests without traceparent that are traced",
    ),
    Setting::new(
        "server-timing-token-file",
        "FILE",
        "",
        "File with a token; requests with Headwater-Timing: TOKEN receive Server-Timing",
    ),
];

/// The parsed values of [`TRACING`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracingSettings {
    /// The URL of the trace collector.
    pub otlp_endpoint: Option<String>,
    /// The file with HTTP headers for the trace collector.
    pub otlp_headers: Option<PathBuf>,
    /// The number of requests that are traced, per million requests that have no `traceparent`.
    pub sample_ppm: u32,
    /// The file with the token of clients that may request `Server-Timing`.
    pub timing_token: Option<PathBuf>,
}

impl TracingSettings {
    /// Parses the settings.
    ///
    /// # Errors
    /// [`UsageError`] for the first invalid value, and for a setting that needs a collector when
    /// `otlp-endpoint` is not set.
    pub(super) fn new(layers: &SettingLayers) -> Result<TracingSettings, UsageError> {
        let sample_ppm = layers.parse_setting("otlp-sample-percent", parse_sample_percent)?;
        let settings = TracingSettings {
            otlp_endpoint: layers.setting_text("otlp-endpoint").map(str::to_owned),
            otlp_headers: layers.setting_path("otlp-headers-file"),
            sample_ppm: sample_ppm.unwrap_or(0),
            timing_token: layers.setting_path("server-timing-token-file"),
        };
        let orphan = match &settings {
            found if found.otlp_endpoint.is_some() => None,
            found if found.sample_ppm > 0 => Some("otlp-sample-percent"),
            found => found.otlp_headers.as_ref().map(|_| "otlp-headers-file"),
        };
        match orphan {
            Some(name) => Err(UsageError(format!(
                "{name} requires a collector; set otlp-endpoint"
            ))),
            None => Ok(settings),
        }
    }

    /// Returns the share of requests without `traceparent` that are traced, from 0 to 1.
    pub fn sample_ratio(&self) -> f64 {
        f64::from(self.sample_ppm) / 1e6
    }

    /// Reads the token with which clients request `Server-Timing`, if the token file is set.
    ///
    /// # Errors
    /// An error with the file's name when the file cannot be read or the token is too short.
    pub fn read_timing_token(&self) -> io::Result<Option<RequiredTokenHeader>> {
        let token = self
            .timing_token
            .as_deref()
            .map(read_token_file)
            .transpose()?;
        Ok(token.map(|token| RequiredTokenHeader::new(TIMING_TOKEN, token)))
    }
}

fn parse_sample_percent(text: &str) -> Result<u32, String> {
    let percent = text.parse().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    let ppm = percent.map(|percent: f64| (percent * 1e4).round() as u32);
    ppm.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}
