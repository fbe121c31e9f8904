//! Words of the command line, as what they mean.

use super::super::abr::Fixed;
use super::super::cmcd::Style;
use super::super::device::{DEVICES, Device};
use super::{Rule, Watch};

impl Watch {
    /// `all`, `10min`, `exp:10min`, `uniform:1min..30min`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(text: &str) -> Result<Watch, String> {
        let seconds = |text: &str| net::config::duration(text).map(|time| time.as_secs_f64());
        match text.split_once(':') {
            None if text == "all" => Ok(Watch::All),
            None => seconds(text).map(Watch::Fixed),
            Some(("exp", mean)) => seconds(mean).map(Watch::Exponential),
            Some(("uniform", range)) => {
                let (from, to) = range.split_once("..").ok_or("a range is 1min..30min")?;
                Ok(Watch::Uniform(seconds(from)?, seconds(to)?))
            }
            Some(_) => Err("watch time is all, 10min, exp:10min or uniform:1min..30min".into()),
        }
    }
}

impl Rule {
    /// `highest`, `lowest`, `random`, `throughput`, `bba`, `bola`, `dynamic`, `mpc` or a bitrate such
    /// as `3894k`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(text: &str) -> Result<Rule, String> {
        Ok(match text {
            "highest" => Rule::Fixed(Fixed::Highest),
            "lowest" => Rule::Fixed(Fixed::Lowest),
            "random" => Rule::Random,
            "throughput" => Rule::Throughput,
            "bba" => Rule::Bba,
            "bola" => Rule::Bola,
            "dynamic" => Rule::Dynamic,
            "mpc" => Rule::Mpc,
            other => Rule::Fixed(Fixed::Given(bitrate(other).map_err(|_| {
                "a rule is highest, lowest, random, throughput, bba, bola, dynamic, mpc or a bitrate such as 3894k"
            })?)),
        })
    }
}

/// `132k`, `4.5M`, `128000`: bits a second.
///
/// # Errors
/// What is wrong, for people.
pub fn bitrate(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().ok().map(|value| value * scale);
    value
        .filter(|bps| (1.0..1e12).contains(bps))
        .ok_or_else(|| format!("a bitrate is 132k, 4.5M or 128000, not {text}"))
}

/// `phone`, or `phone:3,tv:1` with weights.
///
/// # Errors
/// What is wrong, for people.
pub fn devices(text: &str) -> Result<Vec<(Device, f64)>, String> {
    let names = || DEVICES.map(|device| device.name).join(", ");
    let one = |word: &str| {
        let (name, weight) = word.split_once(':').unwrap_or((word, "1"));
        let device = Device::named(name.trim())
            .ok_or_else(|| format!("a device is one of {}, not {name}", names()))?;
        let weight = weight
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|weight| *weight > 0.0 && weight.is_finite());
        Ok((
            device,
            weight.ok_or_else(|| format!("a device's weight is a number, not {word}"))?,
        ))
    };
    text.split(',').map(one).collect()
}

/// `1`, `2`, `1-header`, `2-query`, …
///
/// # Errors
/// What is wrong, for people.
pub fn cmcd(text: &str) -> Result<Style, String> {
    let (version, place) = text.split_once('-').unwrap_or((text, "query"));
    match (version, place) {
        ("1" | "2", "query" | "header") => Ok(Style {
            version: if version == "1" { 1 } else { 2 },
            in_headers: place == "header",
        }),
        _ => Err("CMCD is 1-query, 1-header, 2-query or 2-header".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_they_say() {
        assert_eq!(Watch::parse("exp:10min"), Ok(Watch::Exponential(600.0)));
        assert_eq!(Watch::parse("uniform:1s..2s"), Ok(Watch::Uniform(1.0, 2.0)));
        assert_eq!(
            Rule::parse("3894k"),
            Ok(Rule::Fixed(Fixed::Given(3_894_000.0)))
        );
        assert_eq!(Rule::parse("bola"), Ok(Rule::Bola));
        let found = devices("phone:3,tv").unwrap();
        assert_eq!(
            (found[0].0.name, found[0].1, found[1].1),
            ("phone", 3.0, 1.0)
        );
        assert_eq!(
            cmcd("2-header"),
            Ok(Style {
                version: 2,
                in_headers: true
            })
        );
        for bad in ["best", "", "-5k", "4.5G"] {
            assert!(Rule::parse(bad).is_err(), "{bad}");
        }
        assert!(devices("fridge").is_err() && devices("tv:-1").is_err() && cmcd("3").is_err());
        assert!(Watch::parse("exp").is_err() && Watch::parse("uniform:1s").is_err());
    }
}
