//! Parses link settings, which are given as flags of a command or as keys of a document.

use super::{
    DirectionShape, LinkRate, LinkShape, LossModel, QueueSize, RateTrace, RateTraceError,
    UnitError, parse_loss, parse_queue_size, parse_rate,
};
use net::config::parse_duration;
use std::time::Duration;

/// An invalid setting of a link.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {fault}")]
pub struct LinkSettingError {
    /// The key of the setting.
    pub key: &'static str,
    /// The fault of the setting.
    pub fault: LinkSettingFault,
}

/// The reason why a setting of a link is invalid.
#[derive(Debug, thiserror::Error)]
pub enum LinkSettingFault {
    /// The text is not a valid value with a unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The text is not a duration.
    #[error("{0}")]
    Duration(String),
    /// The text is not a whole number.
    #[error("invalid seed; write a whole number")]
    Seed,
    /// The jitter exceeds the delay.
    #[error("jitter exceeds the delay; write at most the delay")]
    Jitter,
    /// The queue is given in multiples of the bandwidth-delay product, which is 0 because there is
    /// no delay.
    #[error("a queue in bdp needs a delay; add one, or write bytes, such as 64KiB")]
    EmptyQueue,
    /// A rate trace cannot be read.
    #[error("cannot read {path}: {}", net::describe_io_error(source))]
    TraceFile {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A rate trace is invalid.
    #[error("{path}: {source}")]
    RateTrace {
        /// The file.
        path: String,
        /// The cause.
        source: RateTraceError,
    },
}

impl LinkShape {
    /// Reads the settings `rate`, `up-rate`, `delay`, `jitter`, `queue`, `loss`, `up-loss` and
    /// `seed`. A missing setting has the default value of `headwater lab link`.
    ///
    /// # Errors
    /// A value is invalid, or the queue size is relative to the bandwidth-delay product, which is 0
    /// without a delay.
    pub fn from_settings(
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<LinkShape, LinkSettingError> {
        let delay = parse_optional_setting(get, "delay", read_duration)?.unwrap_or_default();
        let jitter = parse_optional_setting(get, "jitter", read_duration)?.unwrap_or_default();
        if jitter > delay {
            return Err(LinkSettingError {
                key: "jitter",
                fault: LinkSettingFault::Jitter,
            });
        }
        let down = DirectionShape {
            rate: parse_optional_setting(get, "rate", parse_rate_or_trace)?
                .unwrap_or(LinkRate::Unlimited),
            delay,
            jitter,
            queue: parse_optional_setting(get, "queue", parse_queue_size)?
                .unwrap_or(QueueSize::Bdp(1.0)),
            loss: parse_optional_setting(get, "loss", parse_loss)?.unwrap_or(LossModel::None),
        };
        let up = DirectionShape {
            rate: parse_optional_setting(get, "up-rate", parse_rate_or_trace)?
                .unwrap_or_else(|| down.rate.clone()),
            loss: parse_optional_setting(get, "up-loss", parse_loss)?.unwrap_or(down.loss),
            ..down.clone()
        };
        let rated = [&down, &up]
            .iter()
            .any(|way| way.rate != LinkRate::Unlimited);
        if matches!(down.queue, QueueSize::Bdp(_)) && rated && delay.is_zero() {
            return Err(LinkSettingError {
                key: "queue",
                fault: LinkSettingFault::EmptyQueue,
            });
        }
        let whole = |text: &str| text.parse().map_err(|_| LinkSettingFault::Seed);
        let seed = parse_optional_setting(get, "seed", whole)?.unwrap_or(1);
        Ok(LinkShape { down, up, seed })
    }
}

fn read_duration(text: &str) -> Result<Duration, LinkSettingFault> {
    parse_duration(text).map_err(LinkSettingFault::Duration)
}

fn parse_optional_setting<T, E: Into<LinkSettingFault>>(
    get: &dyn Fn(&str) -> Option<String>,
    key: &'static str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, LinkSettingError> {
    let parsed = get(key).map(|text| parse(&text));
    parsed.transpose().map_err(|fault| LinkSettingError {
        key,
        fault: fault.into(),
    })
}

fn parse_rate_or_trace(text: &str) -> Result<LinkRate, LinkSettingFault> {
    let Some(path) = text.strip_prefix("trace:") else {
        return Ok(LinkRate::Constant(parse_rate(text)?));
    };
    let owned = || path.to_owned();
    let text = std::fs::read_to_string(path).map_err(|source| LinkSettingFault::TraceFile {
        path: owned(),
        source,
    })?;
    let trace = RateTrace::parse_trace(&text).map_err(|source| LinkSettingFault::RateTrace {
        path: owned(),
        source,
    })?;
    Ok(LinkRate::RateTrace(trace))
}
