//! What a run is held to: `p99 < 50ms`.

use crate::players::told as viewers;
use crate::rate::Kind;
use crate::result::{Cell, Run};
use std::fmt;

/// An expectation: a quantity, a comparison, a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Of this kind of request alone.
    kind: Option<Kind>,
    quantity: Quantity,
    comparison: Comparison,
    bound: f64,
    text: String,
}

/// Whether it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// It does.
    pub holds: bool,
    /// What was measured, with its unit.
    pub found: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    /// Quantile of the latency from due, sent, or of the first byte; in milliseconds.
    Quantile(Latency, f64),
    /// Share of failures, 0 to 1.
    ErrorShare,
    Errors,
    Unsent,
    Late,
    Requests,
    /// Requests a second.
    Rate,
    /// Bits a second.
    Throughput,
    /// The generator's own lateness at the 99th percentile, in milliseconds.
    Lag,
    /// Of viewers.
    Viewing(viewers::Quantity),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Latency {
    Due,
    Sent,
    First,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

const GRAMMAR: &str = "an expectation is a quantity, <, <=, >, >= or =, and a bound: 'p99 < 50ms', \
     'sent.p50 < 5ms', 'first.p90 < 20ms', 'segment.p99.9 < 1s', 'max < 2s', 'errors = 0', \
     'errors < 1%', 'unsent = 0', 'late = 0', 'requests >= 1000', 'rate >= 95/s', \
     'throughput > 100Mbps', 'lag < 2ms'";

impl Expectation {
    /// Reads one.
    ///
    /// # Errors
    /// What it should look like.
    pub fn parse(text: &str) -> Result<Expectation, String> {
        let at = text.find(['<', '>', '=']).ok_or(GRAMMAR)?;
        let (left, rest) = text.split_at(at);
        let (comparison, bound) = if let Some(rest) = rest.strip_prefix("<=") {
            (Comparison::AtMost, rest)
        } else if let Some(rest) = rest.strip_prefix(">=") {
            (Comparison::AtLeast, rest)
        } else if let Some(rest) = rest.strip_prefix('<') {
            (Comparison::Less, rest)
        } else if let Some(rest) = rest.strip_prefix('>') {
            (Comparison::More, rest)
        } else {
            (Comparison::Equal, rest.trim_start_matches('='))
        };
        let mut left = left.trim();
        let mut kind = None;
        for of in Kind::ALL {
            if let Some(rest) = left
                .strip_prefix(of.name())
                .and_then(|rest| rest.strip_prefix('.'))
            {
                (kind, left) = (Some(of), rest);
            }
        }
        let bound = bound.trim();
        let quantity = quantity(left, bound)?;
        Ok(Expectation {
            kind,
            quantity,
            comparison,
            bound: value(quantity, bound)?,
            text: text.trim().to_owned(),
        })
    }

    /// Judges a run. Where nothing was measured, nothing holds.
    pub fn judge(&self, run: &Run) -> Verdict {
        let cell = match self.kind {
            None => run.total(),
            Some(kind) => run.kinds().remove(&kind).unwrap_or_default(),
        };
        let Some(found) = self.measure(run, &cell) else {
            return Verdict {
                holds: false,
                found: "nothing".into(),
            };
        };
        let holds = match self.comparison {
            Comparison::Less => found < self.bound,
            Comparison::AtMost => found <= self.bound,
            Comparison::More => found > self.bound,
            Comparison::AtLeast => found >= self.bound,
            Comparison::Equal => found == self.bound,
        };
        let found = match self.quantity {
            Quantity::Quantile(..) | Quantity::Lag => format!("{found:.3} ms"),
            Quantity::ErrorShare => format!("{:.3} %", found * 100.0),
            Quantity::Rate => format!("{found:.1}/s"),
            Quantity::Throughput | Quantity::Viewing(viewers::Quantity::Bitrate(_)) => {
                format!("{:.1} Mb/s", found / 1e6)
            }
            Quantity::Viewing(viewers::Quantity::StallRatio) => format!("{:.3} %", found * 100.0),
            Quantity::Viewing(viewers::Quantity::Startup(_) | viewers::Quantity::Late(_)) => {
                format!("{found:.3} ms")
            }
            _ => format!("{found}"),
        };
        Verdict { holds, found }
    }

    fn measure(&self, run: &Run, cell: &Cell) -> Option<f64> {
        let wall = run.wall_s.max(1e-9);
        Some(match self.quantity {
            Quantity::Quantile(latency, q) => {
                let times = match latency {
                    Latency::Due => &cell.from_due,
                    Latency::Sent => &cell.from_sent,
                    Latency::First => &cell.first_byte,
                };
                match (times.count(), q) {
                    (0, _) => return None,
                    (_, 1.0) => times.max_ms(),
                    _ => times.quantile_ms(q),
                }
            }
            Quantity::ErrorShare if cell.requests == 0 => return None,
            Quantity::ErrorShare => cell.errors() as f64 / cell.requests as f64,
            Quantity::Errors => cell.errors() as f64,
            Quantity::Unsent => run.unsent as f64,
            Quantity::Late => cell.late as f64,
            Quantity::Requests => cell.requests as f64,
            Quantity::Rate => cell.requests as f64 / wall,
            Quantity::Throughput => cell.bytes as f64 * 8.0 / wall,
            Quantity::Lag => run.lag.quantile_ms(0.99),
            Quantity::Viewing(quantity) => quantity.measure(run.viewing.as_deref()?)?,
        })
    }
}

fn quantity(text: &str, bound: &str) -> Result<Quantity, String> {
    if let Some(found) = viewers::Quantity::parse(text) {
        return Ok(Quantity::Viewing(found));
    }
    let (latency, rest) = match text.split_once('.') {
        Some(("due", rest)) => (Latency::Due, rest),
        Some(("sent", rest)) => (Latency::Sent, rest),
        Some(("first", rest)) => (Latency::First, rest),
        _ => (Latency::Due, text),
    };
    if rest == "max" {
        return Ok(Quantity::Quantile(latency, 1.0));
    }
    if let Some(percent) = rest
        .strip_prefix('p')
        .and_then(|digits| digits.parse::<f64>().ok())
    {
        return match (0.0..=100.0).contains(&percent) {
            true => Ok(Quantity::Quantile(latency, percent / 100.0)),
            false => Err("a percentile is between 0 and 100".into()),
        };
    }
    Ok(match text {
        "errors" if bound.ends_with('%') => Quantity::ErrorShare,
        "errors" => Quantity::Errors,
        "unsent" => Quantity::Unsent,
        "late" => Quantity::Late,
        "requests" => Quantity::Requests,
        "rate" => Quantity::Rate,
        "throughput" => Quantity::Throughput,
        "lag" => Quantity::Lag,
        _ => return Err(GRAMMAR.into()),
    })
}

fn value(quantity: Quantity, text: &str) -> Result<f64, String> {
    let units: &[(&str, f64)] = match quantity {
        Quantity::Quantile(..)
        | Quantity::Lag
        | Quantity::Viewing(viewers::Quantity::Startup(_) | viewers::Quantity::Late(_)) => {
            &[("us", 1e-3), ("ms", 1.0), ("s", 1000.0), ("min", 6e4)]
        }
        Quantity::ErrorShare | Quantity::Viewing(viewers::Quantity::StallRatio) => &[("%", 0.01)],
        Quantity::Rate => &[("", 1.0), ("/s", 1.0), ("/min", 1.0 / 60.0)],
        Quantity::Throughput | Quantity::Viewing(viewers::Quantity::Bitrate(_)) => {
            &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)]
        }
        _ => &[("", 1.0)],
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let names = || {
        units
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let scale = units.iter().find(|(name, _)| *name == unit.trim());
    let (_, scale) = scale.ok_or_else(|| format!("its unit is one of: {}", names()))?;
    let number: f64 = number.parse().map_err(|_| GRAMMAR)?;
    Ok(number * scale)
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Stretch;
    use std::time::Duration;

    fn run() -> Run {
        let mut cell = Cell {
            requests: 100,
            bytes: 1_000_000,
            ..Cell::default()
        };
        for n in 1..=100 {
            cell.from_due.record(Duration::from_millis(n));
            cell.from_sent.record(Duration::from_millis(n / 2));
        }
        cell.statuses.extend([(200, 97), (404, 2)]);
        cell.faults.insert(crate::client::Fault::Reset, 1);
        let kinds = [(Kind::Segment, cell)].into();
        Run {
            wall_s: 10.0,
            steps: vec![Stretch {
                kinds,
                ..Stretch::default()
            }],
            ..Run::default()
        }
    }

    #[test]
    fn expectations_are_judged() {
        for (text, holds) in [
            ("p99 < 50ms", false),
            ("p50 <= 50.1ms", true),
            ("p99 < 1s", true),
            ("sent.p99 < 50ms", true),
            ("due.p99.9 > 99ms", true),
            ("max < 99ms", false),
            ("segment.p50 < 60ms", true),
            ("manifest.p50 < 60ms", false),
            ("errors = 3", true),
            ("errors == 0", false),
            ("errors < 5%", true),
            ("errors < 1%", false),
            ("unsent = 0", true),
            ("late=0", true),
            ("requests >= 100", true),
            ("rate >= 10/s", true),
            ("rate > 601/min", false),
            ("throughput > 0.7Mbps", true),
            ("first.p50 < 1s", false),
            ("lag < 2ms", true),
        ] {
            let verdict = Expectation::parse(text).unwrap().judge(&run());
            assert_eq!(verdict.holds, holds, "{text}: {verdict:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "p99",
            "p99 < 5",
            "p101 < 5ms",
            "x < 5ms",
            "p99 < ms",
            "errors < 5ms",
            "< 5",
        ] {
            assert!(Expectation::parse(text).is_err(), "{text}");
        }
    }
}
