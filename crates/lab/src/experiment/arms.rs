//! The plan of an experiment (the arms of a sweep and their order in each round), and the
//! replacement of placeholders.

use super::{DocumentFault, ExperimentDocument, scalar_text};
use stats::Random;
use std::collections::BTreeMap;

/// One value for each variable, by the name of the variable.
pub type Arm = BTreeMap<String, String>;

/// A document together with the settings of one of its scales.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The document as written.
    pub document: ExperimentDocument,
    /// All combinations of the variables' values.
    pub arms: Vec<Arm>,
    /// Number of rounds.
    pub rounds: u32,
    /// Number of concurrent runs.
    pub parallel: u32,
    /// Name of the scale; `None` if the document is used as written.
    pub scale: Option<String>,
}

/// A scale that the document does not define.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scale {name}; the document defines: {}", known.join(", "))]
pub struct UnknownScale {
    name: String,
    known: Vec<String>,
}

/// A placeholder without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder {{{0}}}; define a source, function or variable of that name")]
pub(crate) struct UnknownPlaceholder(pub(crate) String);

impl RunPlan {
    /// Returns the fingerprints of the document's claims, in the order of the document.
    pub fn claim_fingerprints(&self) -> Vec<String> {
        let expect = self.document.expect.iter();
        expect
            .map(|expect| expect.get_ref().fingerprint())
            .collect()
    }

    /// Plans a document as written, or at the named scale.
    ///
    /// # Errors
    /// The document does not define the scale.
    pub fn new(document: ExperimentDocument, scale: Option<&str>) -> Result<RunPlan, UnknownScale> {
        let none = super::document::ScaleSpec::default();
        let name = scale.map(str::to_owned);
        let scale = match scale {
            None => &none,
            Some(name) => document.scale.get(name).ok_or_else(|| UnknownScale {
                name: name.to_owned(),
                known: document.scale.keys().cloned().collect(),
            })?,
        };
        let mut variables: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in document.sweep.iter().chain(&scale.sweep) {
            let values = values
                .iter()
                .filter_map(|value| scalar_text(value.get_ref()));
            variables.insert(name.get_ref().clone(), values.collect());
        }
        let rounds = *scale.rounds.as_ref().unwrap_or(&document.rounds).get_ref();
        let parallel = scale.parallel.as_ref().or(document.parallel.as_ref());
        Ok(RunPlan {
            arms: create_arms(&variables),
            rounds,
            parallel: parallel.map_or(1, |n| *n.get_ref()).max(1),
            scale: name,
            document,
        })
    }

    /// Returns the plan of the document as written and the plans of all its scales.
    pub(super) fn plan_all_scales(document: &ExperimentDocument) -> impl Iterator<Item = RunPlan> {
        let names = document.scale.keys().map(|name| Some(name.as_str()));
        let all = names.chain([None]);
        all.filter_map(|name| RunPlan::new(document.clone(), name).ok())
    }

    /// Returns the order of the arms in a round. Each round starts with the second arm of the
    /// previous round, so that different arms run first.
    pub fn arm_order(&self, round: u32) -> Vec<usize> {
        let n = self.arms.len();
        let first = Random::derive_stream(self.document.seed, 0).next_below(n as u64) as usize;
        (0..n).map(|k| (first + round as usize + k) % n).collect()
    }
}

fn create_arms(variables: &BTreeMap<String, Vec<String>>) -> Vec<Arm> {
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

/// Replaces `{name}` by the value of `name`, and `{{name}}` by `{name}`. Leaves braces as they are
/// if their content cannot be a name, for example because of capitals, underscores or quotes.
///
/// # Errors
/// A name has no value; the error contains the first such name.
pub(crate) fn fill_placeholders(
    text: &str,
    value: &dyn Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
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
            filled.push_str(&value(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()))?);
            rest = inner.get(end + 1..).unwrap_or_default();
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Returns whether a text consists of lower-case letters, digits, dashes and dots, and starts with
/// a letter.
pub(super) fn is_name(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(rest)
}

impl ExperimentDocument {
    /// Parses a document.
    ///
    /// # Errors
    /// The syntax is invalid, a key is unknown, or a value has the wrong type. Only the first fault
    /// is returned.
    pub fn parse_toml(text: &str) -> Result<ExperimentDocument, DocumentFault> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            DocumentFault::at_span(text, error.span(), "", error.message().to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_and_other_braces_remain() {
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
            assert_eq!(
                fill_placeholders(text, &value),
                Ok(filled.to_owned()),
                "{text}"
            );
        }
        assert_eq!(
            fill_placeholders("{lose}", &value),
            Err(UnknownPlaceholder("lose".to_owned()))
        );
    }

    #[test]
    fn every_combination_is_an_arm_and_orders_rotate() {
        let text = "name = 'x'\nquestion = 'x'\nrounds = 4\nsweep.a = [1, 2]\nsweep.b = ['x', true]\n\
                    [scale.small]\nrounds = 1\nsweep.a = [2]";
        let document = ExperimentDocument::parse_toml(text).unwrap();
        let whole = RunPlan::new(document.clone(), None).unwrap();
        assert_eq!((whole.arms.len(), whole.rounds), (4, 4));
        for round in 0..4 {
            let mut order = whole.arm_order(round);
            let next = whole.arm_order(round + 1);
            assert_eq!(order[1..], next[..3]);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
        let small = RunPlan::new(document.clone(), Some("small")).unwrap();
        assert_eq!((small.arms.len(), small.rounds), (2, 1));
        assert!(
            RunPlan::new(document, Some("tiny"))
                .unwrap_err()
                .to_string()
                .contains("small")
        );
    }
}
