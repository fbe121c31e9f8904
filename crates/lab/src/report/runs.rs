//! Records by arm and round.

use crate::experiment::document::{Document, Quantity, Sink};
use crate::experiment::{Arm, Plan, Record};
use stats::Ratio;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The records that count, to be asked.
pub(super) struct Runs<'a> {
    /// In the plan's order, then those that only records have.
    arms: Vec<Arm>,
    by_arm: BTreeMap<&'a Arm, BTreeMap<u32, &'a Record>>,
    document: &'a Document,
}

impl<'a> Runs<'a> {
    pub(super) fn new(plan: &'a Plan, records: &'a [Record]) -> Runs<'a> {
        let mut by_arm: BTreeMap<&Arm, BTreeMap<u32, &Record>> = BTreeMap::new();
        for record in records.iter().filter(|record| record.thrown.is_none()) {
            let rounds = by_arm.entry(&record.arm).or_default();
            rounds.insert(record.round, record);
        }
        let more = by_arm.keys().filter(|arm| !plan.arms.contains(arm));
        Runs {
            arms: plan.arms.iter().chain(more.copied()).cloned().collect(),
            by_arm,
            document: &plan.document,
        }
    }

    pub(super) fn arms(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter()
    }

    /// An arm's records, by round.
    pub(super) fn of(&self, arm: &Arm) -> impl Iterator<Item = (u32, &'a Record)> + use<'a> {
        let rounds = self.by_arm.get(arm).cloned().unwrap_or_default();
        rounds.into_iter()
    }

    /// An arm's values of a quantity, by round.
    pub(super) fn values(&self, arm: &Arm, quantity: &str) -> Vec<f64> {
        let of = self.of(arm);
        of.filter_map(|(_, record)| record.values.get(quantity).copied())
            .collect()
    }

    /// One arm's quantity to another's, in the rounds that have both; with how many these are.
    pub(super) fn ratio(&self, arm: &Arm, to: &Arm, quantity: &str) -> Option<(usize, Ratio)> {
        let own = self.by_arm.get(arm)?;
        let other = self.by_arm.get(to)?;
        let both = own.iter().filter_map(|(round, record)| {
            let value = record.values.get(quantity)?;
            Some((*value, *other.get(round)?.values.get(quantity)?))
        });
        let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
        Some((a.len(), Ratio::of(&a, &b, self.document.seed)?))
    }

    /// A quantity's name for people.
    pub(super) fn label(&self, name: &str) -> String {
        let words = self.words(name);
        words
            .and_then(|words| words.label.clone())
            .unwrap_or_else(|| name.to_owned())
    }

    /// The same with its unit.
    pub(super) fn with_unit(&self, name: &str) -> String {
        match self.words(name).and_then(|words| words.unit.as_ref()) {
            Some(unit) => format!("{}, {unit}", self.label(name)),
            None => self.label(name),
        }
    }

    fn words(&self, name: &str) -> Option<&'a Quantity> {
        self.document.quantity.get(name)
    }

    /// All names that sinks measure in one way.
    pub(super) fn named<T>(&self, of: fn(&Sink) -> &BTreeMap<Spanned<String>, T>) -> Vec<String> {
        let sinks = self.document.sink.values();
        let all = sinks.flat_map(|sink| of(sink).keys());
        all.map(|name| name.get_ref().clone()).collect()
    }
}

/// Values of variables as an arm has them.
pub(super) fn texts(values: &BTreeMap<Spanned<String>, Spanned<Value>>) -> Arm {
    let text = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
        let text = crate::experiment::plain(value.get_ref())?;
        Some((name.get_ref().clone(), text))
    };
    values.iter().filter_map(text).collect()
}

/// Whether an arm has all of these values.
pub(super) fn has(arm: &Arm, values: &Arm) -> bool {
    let same = |(name, value): (&String, &String)| arm.get(name) == Some(value);
    values.iter().all(same)
}
