//! What will be done: a sweep's arms, their order in each round, and texts with names filled in.

use super::{Document, Fault};
use stats::Random;
use std::collections::BTreeMap;
use toml::Value;

/// A combination of the variables' values.
pub type Arm = BTreeMap<String, String>;

/// A document in one of its sizes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// As written.
    pub document: Document,
    /// Every combination.
    pub arms: Vec<Arm>,
    /// How often each is measured.
    pub rounds: u32,
    /// How many runs go on beside each other.
    pub parallel: u32,
    /// The size's name.
    pub scale: Option<String>,
}

impl Plan {
    /// A document as written, or in the size of this name.
    ///
    /// # Errors
    /// That there is no such size, and which there are.
    pub fn new(document: Document, scale: Option<&str>) -> Result<Plan, String> {
        let none = super::document::Scale::default();
        let name = scale.map(str::to_owned);
        let scale = match scale {
            None => &none,
            Some(name) => document.scale.get(name).ok_or_else(|| {
                let known: Vec<&String> = document.scale.keys().collect();
                format!("--scale {name}: the document has {known:?}")
            })?,
        };
        let mut variables: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in document.sweep.iter().chain(&scale.sweep) {
            let values = values.iter().filter_map(|value| plain(value.get_ref()));
            variables.insert(name.get_ref().clone(), values.collect());
        }
        let rounds = *scale.rounds.as_ref().unwrap_or(&document.rounds).get_ref();
        let parallel = scale.parallel.as_ref().or(document.parallel.as_ref());
        Ok(Plan {
            arms: arms(&variables),
            rounds,
            parallel: parallel.map_or(1, |n| *n.get_ref()).max(1),
            scale: name,
            document,
        })
    }

    /// The arms of a round, by number: each begins one further than the round before, so that none
    /// always follows the same other.
    pub fn order(&self, round: u32) -> Vec<usize> {
        let n = self.arms.len();
        let first = Random::of(self.document.seed, 0).below(n as u64) as usize;
        (0..n).map(|k| (first + round as usize + k) % n).collect()
    }
}

fn arms(variables: &BTreeMap<String, Vec<String>>) -> Vec<Arm> {
    let mut arms = vec![Arm::new()];
    for (name, values) in variables {
        let with = |arm: &Arm, value: &String| {
            let mut arm = arm.clone();
            arm.insert(name.clone(), value.clone());
            arm
        };
        let each = |arm: &Arm| {
            values
                .iter()
                .map(|value| with(arm, value))
                .collect::<Vec<_>>()
        };
        arms = arms.iter().flat_map(each).collect();
    }
    arms
}

/// A value of a variable as text; none for what has no short one.
pub(crate) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}

/// A text with `{name}` replaced by what it stands for, and `{{name}}` by `{name}`. Braces around
/// anything that could not be a name (capitals, underscores, quotes) stay.
///
/// # Errors
/// The first name that stands for nothing.
pub(super) fn fill(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let doubled = from.starts_with("{{");
        let inner = from.trim_start_matches('{');
        let end = inner.find('}').unwrap_or(0);
        let name = inner.get(..end).unwrap_or_default();
        let opened = from.len() - inner.len();
        if !is_name(name) || opened > 2 {
            filled.push_str(from.get(..opened).unwrap_or_default());
            rest = inner;
        } else if doubled {
            filled.push_str(&format!("{{{name}}}"));
            let after = inner.get(end + 1..).unwrap_or_default();
            rest = after.strip_prefix('}').unwrap_or(after);
        } else {
            filled.push_str(&value(name).ok_or(name)?);
            rest = inner.get(end + 1..).unwrap_or_default();
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Lower case, digits, dashes and dots, beginning with a letter.
pub(super) fn is_name(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(rest)
}

impl Document {
    /// Reads one.
    ///
    /// # Errors
    /// The first place where it is no TOML, or none of ours.
    pub fn read(text: &str) -> Result<Document, Fault> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            Fault::at(text, error.span(), "", error.message().to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_other_braces_stay() {
        let value = |name: &str| (name == "loss").then(|| "1%".to_owned());
        for (text, filled) in [
            ("a {loss} b", "a 1% b"),
            ("{loss}{loss}", "1%1%"),
            ("-w '%{time_total}' ${HOME}", "-w '%{time_total}' ${HOME}"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
            ("awk '{{print}}'", "awk '{print}'"),
            ("{", "{"),
            ("{}", "{}"),
            ("{loss", "{loss"),
            ("{{{loss}}}", "{{{loss}}}"),
        ] {
            assert_eq!(fill(text, &value), Ok(filled.to_owned()), "{text}");
        }
        assert_eq!(fill("{lose}", &value), Err("lose".to_owned()));
    }

    #[test]
    fn every_combination_is_an_arm_and_orders_rotate() {
        let text = "name = 'x'\nquestion = 'x'\nrounds = 4\nsweep.a = [1, 2]\nsweep.b = ['x', true]\n\
                    [scale.small]\nrounds = 1\nsweep.a = [2]";
        let document = Document::read(text).unwrap();
        let whole = Plan::new(document.clone(), None).unwrap();
        assert_eq!((whole.arms.len(), whole.rounds), (4, 4));
        for round in 0..4 {
            let mut order = whole.order(round);
            let next = whole.order(round + 1);
            assert_eq!(order[1..], next[..3]);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
        let small = Plan::new(document.clone(), Some("small")).unwrap();
        assert_eq!((small.arms.len(), small.rounds), (2, 1));
        assert!(
            Plan::new(document, Some("tiny"))
                .unwrap_err()
                .contains("small")
        );
    }
}
