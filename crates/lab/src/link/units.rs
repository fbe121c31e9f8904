//! Values of links with their unit: `10mbit`, `0.5bdp`, `1%`.

use super::{Loss, Queue};

const RATES: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

/// Bits a second: `10mbit`, `500kbit`, `1.5gbit`.
///
/// # Errors
/// A sentence that says what a rate looks like.
pub fn rate(text: &str) -> Result<u64, String> {
    let wrong = || "a rate is a number and kbit, mbit or gbit a second, such as 20mbit".to_owned();
    let (number, scale) = RATES
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .ok_or_else(wrong)?;
    let bits = positive(number).ok_or_else(wrong)? * scale;
    if !(1e3..=1e11).contains(&bits) {
        return Err("a rate is from 1kbit to 100gbit".into());
    }
    Ok(bits as u64)
}

/// A share: `1%`, `0.2%`.
///
/// # Errors
/// A sentence that says what a share looks like.
pub fn fraction(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(positive);
    match percent {
        Some(percent) if percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("it is from 0% to 100%, such as 0.5%".into()),
    }
}

/// `1%`, each packet by itself; `1%/4`, in bursts of four on average; `ge:1%,25%,0%,100%`, the
/// chances of turning bad and good, and of losing in the good and the bad state.
///
/// # Errors
/// A sentence that says what losses look like.
pub fn loss(text: &str) -> Result<Loss, String> {
    let wrong =
        || "losses are 1%, in bursts of four 1%/4, or ge:TO_BAD,TO_GOOD,GOOD,BAD".to_owned();
    if let Some(model) = text.strip_prefix("ge:") {
        let shares: Result<Vec<f64>, String> = model.split(',').map(fraction).collect();
        let [to_bad, to_good, good, bad] = shares?[..] else {
            return Err(wrong());
        };
        return Ok(Loss::GilbertElliott {
            to_bad,
            to_good,
            good,
            bad,
        });
    }
    if let Some((share, length)) = text.split_once('/') {
        let length = positive(length).filter(|length| (1.0..=1e6).contains(length));
        return match (fraction(share)?, length.ok_or_else(wrong)?) {
            (share, length) if share <= 0.5 => Ok(Loss::bursts(share, length)),
            _ => Err("in bursts at most 50% are lost".into()),
        };
    }
    match fraction(text)? {
        0.0 => Ok(Loss::None),
        share => Ok(Loss::Independent(share)),
    }
}

/// `64KiB`, or a multiple of rate × round trip: `0.5bdp`.
///
/// # Errors
/// A sentence that says what a queue looks like.
pub fn queue(text: &str) -> Result<Queue, String> {
    if let Some(number) = text.strip_suffix("bdp") {
        return match positive(number) {
            Some(multiple) if multiple <= 100.0 => Ok(Queue::Bdp(multiple)),
            _ => Err("a queue in bdp is from 0bdp to 100bdp".into()),
        };
    }
    let bytes = net::config::bytes(text);
    bytes
        .map(Queue::Bytes)
        .map_err(|_| "a queue is bytes or a multiple of rate × round trip: 64KiB, 0.5bdp".into())
}

fn positive(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, bits) in [
            ("10mbit", 10_000_000),
            ("1.5gbit", 1_500_000_000),
            ("56kbit", 56_000),
        ] {
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
        for wrong in [
            "10", "mbit", "-1mbit", "10Mb", "1bit", "nanmbit", "1e3mbit", "101gbit",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_and_queues() {
        assert_eq!(fraction("0.5%"), Ok(0.005));
        assert_eq!(queue("0.5bdp"), Ok(Queue::Bdp(0.5)));
        assert_eq!(queue("64KiB"), Ok(Queue::Bytes(65536)));
        for wrong in ["", "1", "101%", "-1%", "%", "inf%"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
        assert_eq!(loss("0%"), Ok(Loss::None));
        assert_eq!(loss("1%/4"), Ok(Loss::bursts(0.01, 4.0)));
        assert!(loss("ge:1%,25%,0%,100%").is_ok());
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
            assert!(loss(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "64", "bdp", "-1bdp", "1000bdp"] {
            assert!(queue(wrong).is_err(), "{wrong}");
        }
    }
}
