//! Link settings as flags.

use crate::link::{LinkSettingError, LinkShape};
use net::config::{Setting, SettingLayers, UsageError};

/// Settings of a link.
pub const SHAPE: &[Setting] = &[
    Setting::new(
        "rate",
        "RATE",
        "",
        "Rate of each direction, such as 20mbit, or trace:FILE [default: unlimited]",
    ),
    Setting::new(
        "up-rate",
        "RATE",
        "",
        "Rate from client to server [default: as --rate]",
    ),
    Setting::new("delay", "DURATION", "0ms", "Delay of each direction"),
    Setting::new(
        "jitter",
        "DURATION",
        "0ms",
        "Each delay varies uniformly by up to +/- this; packets stay in order",
    ),
    Setting::new(
        "queue",
        "SIZE",
        "1bdp",
        "Queue before each bottleneck: bytes (64KiB), or a multiple of rate × round trip",
    ),
    Setting::new(
        "loss",
        "LOSS",
        "0%",
        "Packet loss each way: 1%, 1%/4 (bursts of 4), Gilbert-Elliott ge:TO_BAD,TO_GOOD,GOOD,BAD",
    ),
    Setting::new(
        "up-loss",
        "LOSS",
        "",
        "Loss from client to server [default: as --loss]",
    ),
    Setting::new(
        "seed",
        "N",
        "1",
        "Seed of losses: the same seed loses the same packets",
    ),
];

/// Reads the shape of a link from the settings.
///
/// # Errors
/// A value is invalid, or the queue size is relative to the bandwidth-delay product, which is 0
/// without a delay.
pub fn read_link_shape(layers: &SettingLayers) -> Result<LinkShape, UsageError> {
    let wrong = |error: LinkSettingError| {
        let (key, fault) = (error.key, error.fault.to_string());
        // `parse_setting` adds the setting's value and its source to the error message.
        let described = layers.parse_setting::<()>(key, |_| Err(fault.clone()));
        described
            .err()
            .unwrap_or_else(|| UsageError(format!("--{key}: {fault}")))
    };
    LinkShape::from_settings(&|key| layers.setting_text(key).map(str::to_owned)).map_err(wrong)
}
