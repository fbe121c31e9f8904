//! Parses options of `headwater load players`.

use super::super::abr::FixedLevel;
use super::super::cmcd::CmcdFormat;
use super::super::device_profile::{DEVICES, DeviceProfile};
use super::{AbrSetting, WatchTime};

/// The reason why an option of `headwater load players` cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewerOptionError {
    /// The watch time has none of the known forms.
    #[error("invalid watch time; use all, 10min, exp:10min or uniform:1min..30min")]
    WatchTime,
    /// The watch time is zero, so each viewer would leave at once.
    #[error("the watch time is zero; use at least 1ms")]
    ZeroWatchTime,
    /// A part of the watch time is not a valid duration.
    #[error("invalid duration: {0}")]
    Duration(String),
    /// The rule is unknown.
    #[error(
        "unknown rule; use highest, lowest, random, hls.js, shaka, throughput, bba, bola, dynamic, \
         mpc or a bitrate such as 3894k"
    )]
    AbrSetting,
    /// The bitrate is malformed.
    #[error("invalid bitrate {0}; use 132k, 4.5M or 128000")]
    Bitrate(String),
    /// The device is unknown.
    #[error("unknown device {name}; use one of {known}")]
    UnknownDevice {
        /// The unknown name.
        name: String,
        /// Names of all devices.
        known: String,
    },
    /// The weight of a device is not a positive number.
    #[error("invalid weight in {0}; use a positive number, such as phone:3")]
    Weight(String),
    /// The CMCD style is unknown.
    #[error("unknown CMCD style; use 1-query, 1-header, 2-query or 2-header")]
    Cmcd,
}

impl WatchTime {
    /// Parses `all`, `10min`, `exp:10min` or `uniform:1min..30min`.
    ///
    /// # Errors
    /// The text is not a watch time.
    pub fn parse_watch_time(text: &str) -> Result<WatchTime, ViewerOptionError> {
        let seconds = |text: &str| match net::config::parse_duration(text) {
            Ok(time) => Ok(time.as_secs_f64()),
            Err(error) => Err(ViewerOptionError::Duration(error)),
        };
        let positive = |text: &str| match seconds(text)? {
            0.0 => Err(ViewerOptionError::ZeroWatchTime),
            time => Ok(time),
        };
        match text.split_once(':') {
            None if text == "all" => Ok(WatchTime::All),
            None => positive(text).map(WatchTime::Fixed),
            Some(("exp", mean)) => positive(mean).map(WatchTime::Exponential),
            Some(("uniform", range)) => {
                let (from, to) = range.split_once("..").ok_or(ViewerOptionError::WatchTime)?;
                Ok(WatchTime::Uniform(seconds(from)?, positive(to)?))
            }
            Some(_) => Err(ViewerOptionError::WatchTime),
        }
    }
}

impl AbrSetting {
    /// Parses the name of a rule, or a bitrate such as `3894k`.
    ///
    /// # Errors
    /// The text is neither the name of a rule nor a bitrate.
    pub fn parse_abr_setting(text: &str) -> Result<AbrSetting, ViewerOptionError> {
        Ok(match text {
            "highest" => AbrSetting::Fixed(FixedLevel::Highest),
            "lowest" => AbrSetting::Fixed(FixedLevel::Lowest),
            "random" => AbrSetting::Random,
            "hls.js" => AbrSetting::HlsJs,
            "shaka" => AbrSetting::Shaka,
            "throughput" => AbrSetting::Throughput,
            "bba" => AbrSetting::Bba,
            "bola" => AbrSetting::Bola,
            "dynamic" => AbrSetting::Dynamic,
            "mpc" => AbrSetting::Mpc,
            other => AbrSetting::Fixed(FixedLevel::Given(
                parse_bitrate(other).map_err(|_| ViewerOptionError::AbrSetting)?,
            )),
        })
    }
}

/// Parses a bitrate such as `132k`, `4.5M` or `128000`. Returns bits per second.
///
/// # Errors
/// The text is not a bitrate.
pub fn parse_bitrate(text: &str) -> Result<f64, ViewerOptionError> {
    let (number, scale) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().ok().map(|value| value * scale);
    value
        .filter(|bps| (1.0..1e12).contains(bps))
        .ok_or_else(|| ViewerOptionError::Bitrate(text.into()))
}

/// Parses a list of devices such as `phone`, or `phone:3,tv:1` with weights.
///
/// # Errors
/// A device is unknown or a weight is invalid.
pub fn parse_devices(text: &str) -> Result<Vec<(DeviceProfile, f64)>, ViewerOptionError> {
    let names = || DEVICES.map(|device| device.name).join(", ");
    let one = |word: &str| {
        let (name, weight) = word.split_once(':').unwrap_or((word, "1"));
        let device = DeviceProfile::find_by_name(name.trim()).ok_or_else(|| {
            ViewerOptionError::UnknownDevice {
                name: name.into(),
                known: names(),
            }
        })?;
        let weight = weight
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|weight| *weight > 0.0 && weight.is_finite());
        Ok((
            device,
            weight.ok_or_else(|| ViewerOptionError::Weight(word.into()))?,
        ))
    };
    text.split(',').map(one).collect()
}

/// Parses a CMCD style such as `1-query` or `2-header`. `1` and `2` are short for `1-query` and
/// `2-query`.
///
/// # Errors
/// The text is not a CMCD style.
pub fn parse_cmcd_format(text: &str) -> Result<CmcdFormat, ViewerOptionError> {
    let (version, place) = text.split_once('-').unwrap_or((text, "query"));
    match (version, place) {
        ("1" | "2", "query" | "header") => Ok(CmcdFormat {
            version: if version == "1" { 1 } else { 2 },
            in_headers: place == "header",
        }),
        _ => Err(ViewerOptionError::Cmcd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_invalid_ones_refused() {
        assert_eq!(
            WatchTime::parse_watch_time("exp:10min"),
            Ok(WatchTime::Exponential(600.0))
        );
        assert_eq!(
            WatchTime::parse_watch_time("uniform:1s..2s"),
            Ok(WatchTime::Uniform(1.0, 2.0))
        );
        assert_eq!(
            AbrSetting::parse_abr_setting("3894k"),
            Ok(AbrSetting::Fixed(FixedLevel::Given(3_894_000.0)))
        );
        assert_eq!(AbrSetting::parse_abr_setting("bola"), Ok(AbrSetting::Bola));
        let found = parse_devices("phone:3,tv").unwrap();
        assert_eq!(
            (found[0].0.name, found[0].1, found[1].1),
            ("phone", 3.0, 1.0)
        );
        assert_eq!(
            parse_cmcd_format("2-header"),
            Ok(CmcdFormat {
                version: 2,
                in_headers: true
            })
        );
        for bad in ["best", "", "-5k", "4.5G"] {
            assert!(AbrSetting::parse_abr_setting(bad).is_err(), "{bad}");
        }
        for zero in ["0s", "exp:0s", "uniform:0s..0s"] {
            let parsed = WatchTime::parse_watch_time(zero);
            assert_eq!(parsed, Err(ViewerOptionError::ZeroWatchTime), "{zero}");
        }
        assert!(
            parse_devices("fridge").is_err()
                && parse_devices("tv:-1").is_err()
                && parse_cmcd_format("3").is_err()
        );
        assert!(
            WatchTime::parse_watch_time("exp").is_err()
                && WatchTime::parse_watch_time("uniform:1s").is_err()
        );
    }
}
