//! Parses the values of link settings, such as `10mbit`, `0.5bdp` and `1%`.

use super::{LossModel, QueueSize};

/// The reason why the value of a link setting is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text is not a rate.
    #[error("invalid rate; write a number and kbit, mbit or gbit, such as 20mbit")]
    LinkRate,
    /// The rate is outside the supported range.
    #[error("rate out of range; write 1kbit to 100gbit")]
    RateRange,
    /// The text is not a percentage from 0 % to 100 %.
    #[error("invalid share; write 0% to 100%, such as 0.5%")]
    Share,
    /// The text is not a loss model.
    #[error("invalid loss; write 1%, 1%/4 for bursts of four, or ge:TO_BAD,TO_GOOD,GOOD,BAD")]
    LossModel,
    /// The bursts would lose more than half of the packets.
    #[error("loss in bursts out of range; write at most 50%")]
    BurstShare,
    /// The text is not a queue size.
    #[error("invalid queue; write bytes or a multiple of rate × round trip: 64KiB, 0.5bdp")]
    QueueSize,
    /// The queue size is outside the supported range.
    #[error("queue out of range; write 0bdp to 100bdp")]
    QueueRange,
}

const RATES: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Parses a rate such as `10mbit`, `500kbit` or `1.5gbit`. Returns bits per second.
///
/// # Errors
/// The text is not a rate, or the rate is outside the supported range.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let (number, scale) = RATES
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .ok_or(UnitError::LinkRate)?;
    let bits = parse_non_negative(number).ok_or(UnitError::LinkRate)? * scale;
    if !(1e3..=1e11).contains(&bits) {
        return Err(UnitError::RateRange);
    }
    Ok(bits as u64)
}

/// Parses a percentage such as `1%` or `0.2%`. Returns a share from 0 to 1.
///
/// # Errors
/// The text is not a percentage from 0 % to 100 %.
pub fn parse_percentage(text: &str) -> Result<f64, UnitError> {
    let percent = text.strip_suffix('%').and_then(parse_non_negative);
    match percent {
        Some(percent) if percent <= 100.0 => Ok(percent / 100.0),
        _ => Err(UnitError::Share),
    }
}

/// Parses a loss model. `1%` means independent losses. `1%/4` means losses in bursts of four
/// packets on average. `ge:1%,25%,0%,100%` is a Gilbert-Elliott model. The first two values are the
/// probabilities of entering and of leaving the bad state. The last two values are the loss
/// probabilities in the good and in the bad state.
///
/// # Errors
/// The text is not a loss model, or the bursts would lose more than half of the packets.
pub fn parse_loss(text: &str) -> Result<LossModel, UnitError> {
    if let Some(model) = text.strip_prefix("ge:") {
        let shares: Result<Vec<f64>, UnitError> = model.split(',').map(parse_percentage).collect();
        let [to_bad, to_good, good, bad] = shares?[..] else {
            return Err(UnitError::LossModel);
        };
        return Ok(LossModel::GilbertElliott {
            to_bad,
            to_good,
            good,
            bad,
        });
    }
    if let Some((share, length)) = text.split_once('/') {
        let length = parse_non_negative(length).filter(|length| (1.0..=1e6).contains(length));
        return match (
            parse_percentage(share)?,
            length.ok_or(UnitError::LossModel)?,
        ) {
            (share, length) if share <= 0.5 => Ok(LossModel::from_bursts(share, length)),
            _ => Err(UnitError::BurstShare),
        };
    }
    match parse_percentage(text)? {
        0.0 => Ok(LossModel::None),
        share => Ok(LossModel::Independent(share)),
    }
}

/// Parses a queue size in bytes, such as `64KiB`, or as a multiple of the bandwidth-delay product,
/// such as `0.5bdp`.
///
/// # Errors
/// The text is not a queue size, or the queue size is outside the supported range.
pub fn parse_queue_size(text: &str) -> Result<QueueSize, UnitError> {
    if let Some(number) = text.strip_suffix("bdp") {
        return match parse_non_negative(number) {
            Some(multiple) if multiple <= 100.0 => Ok(QueueSize::Bdp(multiple)),
            _ => Err(UnitError::QueueRange),
        };
    }
    let bytes = net::config::parse_bytes(text);
    bytes
        .map(QueueSize::Bytes)
        .map_err(|_| UnitError::QueueSize)
}

fn parse_non_negative(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_and_bounds() {
        for (text, bits) in [
            ("10mbit", 10_000_000),
            ("1.5gbit", 1_500_000_000),
            ("56kbit", 56_000),
        ] {
            assert_eq!(parse_rate(text), Ok(bits), "{text}");
        }
        for wrong in [
            "10", "mbit", "-1mbit", "10Mb", "1bit", "nanmbit", "1e3mbit", "101gbit",
        ] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_and_queues_are_parsed() {
        assert_eq!(parse_percentage("0.5%"), Ok(0.005));
        assert_eq!(parse_queue_size("0.5bdp"), Ok(QueueSize::Bdp(0.5)));
        assert_eq!(parse_queue_size("64KiB"), Ok(QueueSize::Bytes(65536)));
        for wrong in ["", "1", "101%", "-1%", "%", "inf%"] {
            assert!(parse_percentage(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_loss("0%"), Ok(LossModel::None));
        assert_eq!(parse_loss("1%/4"), Ok(LossModel::from_bursts(0.01, 4.0)));
        assert!(parse_loss("ge:1%,25%,0%,100%").is_ok());
        for wrong in [
            "",
            "1",
            "1%/0",
            "60%/2",
            "1%/",
            "ge:1%",
            "ge:1%,2%,3%,4%,5%",
            "ge:1,2,3,4",
        ] {
            assert!(parse_loss(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "64", "bdp", "-1bdp", "1000bdp"] {
            assert!(parse_queue_size(wrong).is_err(), "{wrong}");
        }
    }
}
