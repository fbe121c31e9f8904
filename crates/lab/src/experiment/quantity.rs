//! Where a quantity is found in what a sink has said or written, and how parts of a sink add up.

use super::histograms::{add, decode, encode, read_log};
use super::printed::Printed;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// As it is written: `/pointer`, `sum /pointer` (of a sink's parts), `/pointer p99`,
/// `FILE TAG p99 / 1e6`. What is said of a histogram is said of all parts' counts together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    from: At,
    what: What,
    divisor: f64,
}

/// Where.
#[derive(Debug, Clone, PartialEq)]
enum At {
    /// A pointer (RFC 6901) into the JSON that a sink printed: a number, or an HDR histogram (V2,
    /// base64).
    Said(String),
    /// An HDR interval log in the run's folder, and which tags of it (`*` stands for anything).
    Log(String, String),
}

/// What is said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    /// A number; parts are put together like this, and cannot be where there is nothing.
    Number(Option<Parts>),
    /// The value that this share of a histogram does not exceed.
    Quantile(f64),
    Count,
    Mean,
}

/// How numbers of parts become one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Parts {
    Sum,
    Mean,
    Least,
    Most,
}

/// What was found of a quantity at one part of a sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Found {
    /// A number.
    Number(f64),
    /// An HDR histogram: V2, deflated, in base64.
    Histogram(String),
}

impl Quantity {
    /// As it is written.
    ///
    /// # Errors
    /// What is wrong in it, and what would be right.
    pub(super) fn read(text: &str) -> Result<Quantity, String> {
        let (text, divisor) = match text.rsplit_once(" / ") {
            Some((text, divisor)) => (text, divisor.trim().parse().unwrap_or(0.0)),
            None => (text, 1.0),
        };
        if !f64::is_normal(divisor) {
            return Err("after ` / ` there is a number other than 0".into());
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (from, what) = match words[..] {
            [pointer] if pointer.starts_with('/') => (said(pointer), What::Number(None)),
            [parts, pointer] if pointer.starts_with('/') => {
                (said(pointer), What::Number(Some(Parts::read(parts)?)))
            }
            [pointer, of] if pointer.starts_with('/') => (said(pointer), What::read(of)?),
            [file, of] => (At::Log(local(file)?, "*".into()), What::read(of)?),
            [file, tags, of] => (At::Log(local(file)?, tags.into()), What::read(of)?),
            _ => return Err(FORMS.into()),
        };
        Ok(Quantity {
            from,
            what,
            divisor,
        })
    }

    /// Whether a sink in parts can have it.
    pub(super) fn adds_up(&self) -> bool {
        self.what != What::Number(None)
    }

    /// Looks for it in what a sink printed, and in the folder where it ran.
    ///
    /// # Errors
    /// That it is not there, and where it was sought.
    pub(super) fn find(&self, printed: &Printed, folder: &Path) -> Result<Found, String> {
        let histogram = match &self.from {
            At::Said(pointer) => {
                let value = printed.json()?.pointer(pointer);
                let none = |what: &str| format!("no {what} at {pointer} of what it printed");
                if let What::Number(_) = self.what {
                    let number = value.and_then(Value::as_f64);
                    return number.map(Found::Number).ok_or_else(|| none("number"));
                }
                let text = value.and_then(Value::as_str);
                decode(text.ok_or_else(|| none("histogram"))?)?
            }
            At::Log(file, tags) => {
                read_log(&folder.join(file), tags).map_err(|what| format!("{file}: {what}"))?
            }
        };
        encode(&histogram).map(Found::Histogram)
    }

    /// Its value, of all parts together.
    ///
    /// # Errors
    /// That parts cannot be put together.
    pub(super) fn value(&self, parts: &[Found]) -> Result<f64, String> {
        let value = match self.what {
            What::Number(how) => numbers(how, parts)?,
            What::Quantile(share) => added(parts)?.value_at_quantile(share) as f64,
            What::Count => added(parts)?.len() as f64,
            What::Mean => added(parts)?.mean(),
        };
        Ok(value / self.divisor)
    }
}

const FORMS: &str = "a quantity is `/pointer` (a number in the JSON that it prints), \
    `sum /pointer` (or mean, least, most: of parts), `/pointer p99` (of a histogram there) or \
    `FILE TAGS p99 / 1e6` (of an HDR log; or max, min, mean, count)";

fn said(pointer: &str) -> At {
    At::Said(pointer.to_owned())
}

/// A file of the run's own folder.
fn local(file: &str) -> Result<String, String> {
    let inside = Path::new(file)
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_)));
    match inside {
        true => Ok(file.to_owned()),
        false => Err(format!(
            "{file}: a file's path is from {{folder}}, and within it"
        )),
    }
}

impl Parts {
    fn read(text: &str) -> Result<Parts, String> {
        match text {
            "sum" => Ok(Parts::Sum),
            "mean" => Ok(Parts::Mean),
            "least" => Ok(Parts::Least),
            "most" => Ok(Parts::Most),
            _ => Err(FORMS.into()),
        }
    }
}

impl What {
    fn read(text: &str) -> Result<What, String> {
        let share = |percent: f64| (0.0..=100.0).contains(&percent).then_some(percent / 100.0);
        match text {
            "count" => Ok(What::Count),
            "mean" => Ok(What::Mean),
            "max" => Ok(What::Quantile(1.0)),
            "min" => Ok(What::Quantile(0.0)),
            _ => {
                let percent = text.strip_prefix('p').and_then(|p| p.parse().ok());
                let share = percent.and_then(share).ok_or(FORMS)?;
                Ok(What::Quantile(share))
            }
        }
    }
}

fn numbers(how: Option<Parts>, parts: &[Found]) -> Result<f64, String> {
    let mut all = Vec::new();
    for part in parts {
        match part {
            Found::Number(number) => all.push(*number),
            Found::Histogram(_) => return Err("a histogram where a number was asked for".into()),
        }
    }
    match (how, all[..].split_first()) {
        (_, None) => Err("no part said it".into()),
        (None | Some(_), Some((one, []))) => Ok(*one),
        (None, _) => Err("of several parts: say sum, mean, least or most".into()),
        (Some(Parts::Sum), _) => Ok(all.iter().sum()),
        (Some(Parts::Mean), _) => Ok(all.iter().sum::<f64>() / all.len() as f64),
        (Some(Parts::Least), _) => Ok(all.iter().copied().fold(f64::INFINITY, f64::min)),
        (Some(Parts::Most), _) => Ok(all.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    }
}

/// All parts' counts in one.
fn added(parts: &[Found]) -> Result<Histogram<u64>, String> {
    let mut sum: Option<Histogram<u64>> = None;
    for part in parts {
        let Found::Histogram(text) = part else {
            return Err("a number where a histogram was asked for".into());
        };
        add(&mut sum, decode(text)?)?;
    }
    sum.ok_or_else(|| "no part said it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: std::ops::Range<u64>) -> Found {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        values.for_each(|value| histogram.record(value).unwrap());
        Found::Histogram(encode(&histogram).unwrap())
    }

    #[test]
    fn numbers_of_parts_are_put_together_as_told() {
        let parts = [Found::Number(1.0), Found::Number(3.0)];
        for (text, value) in [
            ("sum /x", 4.0),
            ("mean /x", 2.0),
            ("least /x", 1.0),
            ("most /x", 3.0),
            ("most /x / 2", 1.5),
        ] {
            assert_eq!(
                Quantity::read(text).unwrap().value(&parts),
                Ok(value),
                "{text}"
            );
        }
        let alone = Quantity::read("/x").unwrap();
        assert!(!alone.adds_up() && alone.value(&parts).is_err());
        assert_eq!(alone.value(&parts[..1]), Ok(1.0));
    }

    #[test]
    fn percentiles_are_those_of_all_counts_together() {
        let parts = [histogram(1..500), histogram(500..1001)];
        let whole = [histogram(1..1001)];
        for text in [
            "/x p50",
            "/x p99",
            "f.hdr p99.9",
            "f.hdr */due max",
            "/x mean",
            "/x count",
        ] {
            let quantity = Quantity::read(text).unwrap();
            assert_eq!(quantity.value(&parts), quantity.value(&whole), "{text}");
        }
        // Not the mean of the parts' own percentiles, which would be 747.
        assert_eq!(Quantity::read("/x p99").unwrap().value(&parts), Ok(990.0));
        assert_eq!(
            Quantity::read("/x p50 / 1e3").unwrap().value(&parts),
            Ok(0.5)
        );
    }

    #[test]
    fn what_is_printed_is_found_or_missed_with_its_place() {
        let Found::Histogram(text) = histogram(1..11) else {
            unreachable!()
        };
        let printed = Printed::new(format!("noise\n{{\"n\": 7, \"h\": \"{text}\"}}\n"));
        let find = |text: &str| Quantity::read(text).unwrap().find(&printed, Path::new("/"));
        assert_eq!(find("/n"), Ok(Found::Number(7.0)));
        assert_eq!(find("/h count"), Ok(histogram(1..11)));
        assert!(find("/m").unwrap_err().contains("/m"));
        assert!(find("/n p99").unwrap_err().contains("no histogram at /n"));
        assert!(find("no-such.hdr p99").unwrap_err().contains("no-such.hdr"));
    }

    #[test]
    fn wrong_ones_are_refused() {
        for text in [
            "",
            "x",
            "/x / 0",
            "/x / y",
            "/x p101",
            "/x 99",
            "some /x",
            "../x p99",
            "/x p99 p99 /y",
            "a b c d",
        ] {
            assert!(Quantity::read(text).is_err(), "{text}");
        }
    }
}
