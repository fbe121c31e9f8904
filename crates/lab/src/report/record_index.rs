//! Indexes the records of runs that were not discarded, by arm and round. Counts the discarded runs
//! that failed.

use super::quantity_names::{axis_title, describe_quantity_name};
use crate::experiment::document::{ExperimentDocument, QuantityLabel, SinkSpec};
use crate::experiment::{Arm, RunPlan, RunRecord};
use stats::PairedRatio;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// An index of the records of runs that were not discarded, with the discarded runs that failed.
pub(super) struct RecordIndex<'a> {
    /// Arms in the order of the plan, and then arms that occur only in records.
    arms: Vec<Arm>,
    by_arm: BTreeMap<&'a Arm, BTreeMap<u32, &'a RunRecord>>,
    /// Discarded runs that failed.
    failed: Vec<&'a RunRecord>,
    document: &'a ExperimentDocument,
}

impl<'a> RecordIndex<'a> {
    pub(super) fn new(plan: &'a RunPlan, records: &'a [RunRecord]) -> RecordIndex<'a> {
        let mut by_arm: BTreeMap<&Arm, BTreeMap<u32, &RunRecord>> = BTreeMap::new();
        for record in records
            .iter()
            .filter(|record| record.discard_reason.is_none())
        {
            let rounds = by_arm.entry(&record.arm).or_default();
            rounds.insert(record.round, record);
        }
        let more = by_arm.keys().filter(|arm| !plan.arms.contains(arm));
        RecordIndex {
            arms: plan.arms.iter().chain(more.copied()).cloned().collect(),
            by_arm,
            failed: records
                .iter()
                .filter(|record| record.is_failed_attempt())
                .collect(),
            document: &plan.document,
        }
    }

    /// Returns an index of only those runs whose records contain the fingerprint of a claim. A
    /// fingerprint includes the bounds, so that runs from before a change of the bounds are
    /// excluded.
    pub(super) fn keep_runs_with_claim(&self, fingerprint: &str) -> RecordIndex<'a> {
        let has_claim = |record: &RunRecord| record.claims.iter().any(|claim| claim == fingerprint);
        let rounds = |rounds: &BTreeMap<u32, &'a RunRecord>| {
            let known = rounds.iter().filter(|(_, record)| has_claim(record));
            known.map(|(round, record)| (*round, *record)).collect()
        };
        let by_arm = self.by_arm.iter();
        let mut failed = self.failed.clone();
        failed.retain(|record| has_claim(record));
        RecordIndex {
            arms: self.arms.clone(),
            by_arm: by_arm.map(|(arm, all)| (*arm, rounds(all))).collect(),
            failed,
            document: self.document,
        }
    }

    pub(super) fn arms(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter()
    }

    /// Returns the records of an arm with their round numbers, in the order of the rounds.
    pub(super) fn records_of_arm(
        &self,
        arm: &Arm,
    ) -> impl Iterator<Item = (u32, &'a RunRecord)> + use<'a> {
        let rounds = self.by_arm.get(arm).cloned().unwrap_or_default();
        rounds.into_iter()
    }

    /// Returns the number of discarded runs of an arm that failed.
    pub(super) fn failed_attempts(&self, arm: &Arm) -> usize {
        let of_arm = |record: &&&RunRecord| record.arm == *arm;
        self.failed.iter().filter(of_arm).count()
    }

    /// Returns the values of a quantity in the order of the rounds.
    pub(super) fn values(&self, arm: &Arm, quantity: &str) -> Vec<f64> {
        let of = self.records_of_arm(arm);
        of.filter_map(|(_, record)| record.values.get(quantity).copied())
            .collect()
    }

    /// Returns the values of two arms in the rounds in which both arms have a value. Returns `None`
    /// if an arm has no runs.
    pub(super) fn paired_values(
        &self,
        arm: &Arm,
        to: &Arm,
        quantity: &str,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let own = self.by_arm.get(arm)?;
        let other = self.by_arm.get(to)?;
        let both = own.iter().filter_map(|(round, record)| {
            let value = record.values.get(quantity)?;
            Some((*value, *other.get(round)?.values.get(quantity)?))
        });
        Some(both.unzip())
    }

    /// Returns the number of rounds in which both arms have a value, and the ratio of the two arms'
    /// values in these rounds.
    pub(super) fn ratio(
        &self,
        arm: &Arm,
        to: &Arm,
        quantity: &str,
    ) -> Option<(usize, PairedRatio)> {
        let (a, b) = self.paired_values(arm, to, quantity)?;
        Some((a.len(), PairedRatio::from_pairs(&a, &b)?))
    }

    /// Returns the label of a quantity. This is the label in the document, or else the words of the
    /// quantity's name.
    pub(super) fn quantity_display_name(&self, name: &str) -> String {
        let given = self.quantity_label(name);
        let given = given.and_then(|given| given.label.clone());
        given.unwrap_or_else(|| describe_quantity_name(name).0)
    }

    /// Returns the axis title of a quantity, which consists of the label and the unit.
    pub(super) fn quantity_axis_title(&self, name: &str) -> String {
        let given = self.quantity_label(name);
        let given = given.and_then(|given| given.unit.clone());
        let unit = given.or_else(|| describe_quantity_name(name).1);
        axis_title(&self.quantity_display_name(name), unit.as_deref())
    }

    fn quantity_label(&self, name: &str) -> Option<&'a QuantityLabel> {
        self.document.quantity.get(name)
    }

    /// Returns the names of all measurements of one kind (`measure`, `series` or `histogram`) in
    /// all sinks.
    pub(super) fn list_measurement_names<T>(
        &self,
        of: fn(&SinkSpec) -> &BTreeMap<Spanned<String>, T>,
    ) -> Vec<String> {
        let sinks = self.document.sink.values();
        let all = sinks.flat_map(|sink| of(sink).keys());
        all.map(|name| name.get_ref().clone()).collect()
    }
}

/// Converts the values of variables to texts, and returns these texts as an [`Arm`].
pub(super) fn arm_from_values(values: &BTreeMap<Spanned<String>, Spanned<Value>>) -> Arm {
    let text = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
        let text = crate::experiment::scalar_text(value.get_ref())?;
        Some((name.get_ref().clone(), text))
    };
    values.iter().filter_map(text).collect()
}

/// Returns whether an arm has all these values.
pub(super) fn arm_has_values(arm: &Arm, values: &Arm) -> bool {
    let same = |(name, value): (&String, &String)| arm.get(name) == Some(value);
    values.iter().all(same)
}
