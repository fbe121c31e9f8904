//! Progress of an experiment.

use super::{Arm, RunPlan, RunRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// Progress at the start or the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentProgress {
    /// Number of finished runs. A run is finished when an attempt succeeds or when the last attempt
    /// is discarded.
    pub done: usize,
    /// Number of all runs.
    pub all: usize,
    /// Estimated seconds until all runs are finished. The estimate uses the mean duration of each
    /// arm's runs and the concurrency. `None` until the first run has ended.
    pub left_s: Option<f64>,
    /// Round of the run, from 0.
    pub round: u32,
    /// Attempt of the run, from 0.
    pub attempt: u32,
    /// Values of the variables in the run.
    pub arm: Arm,
    /// The record of the run; `None` while the run is in progress.
    pub ended: Option<RunRecord>,
    #[serde(skip)]
    rounds: u32,
    #[serde(skip)]
    parallel: u32,
    #[serde(skip)]
    arms: BTreeMap<Arm, ArmDuration>,
}

/// An event of a run.
pub(super) enum RunEvent {
    /// A run starts, with its round, attempt and arm.
    Started(u32, u32, Arm),
    /// A run ends, with its record. The flag is true if this attempt of the run was the last
    /// allowed attempt.
    Ended(Box<RunRecord>, bool),
}

/// Total duration of the runs of an arm.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ArmDuration {
    seconds: f64,
    /// Number of runs, including all discarded runs.
    runs: u32,
    /// Number of finished runs, as in [`ExperimentProgress::done`].
    done: u32,
}

impl ExperimentProgress {
    pub(super) fn new(plan: &RunPlan, records: &[RunRecord]) -> ExperimentProgress {
        let arms = plan
            .arms
            .iter()
            .map(|arm| (arm.clone(), ArmDuration::default()));
        let mut progress = ExperimentProgress {
            done: 0,
            all: plan.rounds as usize * plan.arms.len(),
            left_s: None,
            round: 0,
            attempt: 0,
            arm: Arm::new(),
            ended: None,
            rounds: plan.rounds,
            parallel: plan.parallel.max(1),
            arms: arms.collect(),
        };
        let ours = records.iter().filter(|record| record.round < plan.rounds);
        for record in ours {
            progress.count_run(record, false);
        }
        progress
    }

    pub(super) fn record_event(&mut self, event: RunEvent) {
        match event {
            RunEvent::Started(round, attempt, arm) => {
                (self.round, self.attempt, self.arm) = (round, attempt, arm);
                self.ended = None;
            }
            RunEvent::Ended(record, last) => {
                (self.round, self.attempt) = (record.round, record.attempt);
                self.arm.clone_from(&record.arm);
                self.count_run(&record, last);
                self.ended = Some(*record);
            }
        }
    }

    fn count_run(&mut self, record: &RunRecord, given_up: bool) {
        let Some(took) = self.arms.get_mut(&record.arm) else {
            return;
        };
        took.seconds += record.took_s;
        took.runs += 1;
        if record.discard_reason.is_none() || given_up {
            took.done += 1;
            self.done += 1;
        }
        self.left_s = self.estimate_remaining();
    }

    fn estimate_remaining(&self) -> Option<f64> {
        let seconds: f64 = self.arms.values().map(|took| took.seconds).sum();
        let runs: u32 = self.arms.values().map(|took| took.runs).sum();
        let mean = (runs > 0).then(|| seconds / f64::from(runs))?;
        let of_arm = |took: &ArmDuration| {
            let each = match took.runs {
                0 => mean,
                runs => took.seconds / f64::from(runs),
            };
            each * f64::from(self.rounds.saturating_sub(took.done))
        };
        let all: f64 = self.arms.values().map(of_arm).sum();
        Some(all / f64::from(self.parallel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ExperimentDocument;

    #[test]
    fn the_estimate_uses_the_mean_duration_of_each_arm() {
        let text = "name='x'\nquestion='x'\nrounds=3\nsweep.a=[1, 2]\n";
        let plan = RunPlan::new(ExperimentDocument::parse_toml(text).unwrap(), None).unwrap();
        let ran = |round, n: usize, took_s, discarded: Option<&str>| {
            let mut record = RunRecord::new(round, 0, 0, &plan.arms[n]);
            record.took_s = took_s;
            record.discard_reason = discarded.map(str::to_owned);
            record
        };
        let mut progress = ExperimentProgress::new(&plan, &[]);
        assert_eq!((progress.done, progress.all, progress.left_s), (0, 6, None));
        progress.record_event(RunEvent::Started(0, 0, plan.arms[0].clone()));
        progress.record_event(RunEvent::Ended(Box::new(ran(0, 0, 10.0, None)), false));
        assert_eq!((progress.done, progress.left_s), (1, Some(50.0)));
        progress.record_event(RunEvent::Started(0, 0, plan.arms[1].clone()));
        progress.record_event(RunEvent::Ended(Box::new(ran(0, 1, 2.0, None)), false));
        assert_eq!((progress.done, progress.left_s), (2, Some(24.0)));
        // A discarded run is repeated. After the last attempt, the run is given up.
        progress.record_event(RunEvent::Ended(
            Box::new(ran(1, 1, 2.0, Some("late"))),
            false,
        ));
        assert_eq!((progress.done, progress.left_s), (2, Some(24.0)));
        progress.record_event(RunEvent::Ended(
            Box::new(ran(1, 1, 2.0, Some("late"))),
            true,
        ));
        assert_eq!((progress.done, progress.left_s), (3, Some(22.0)));
        // A resumed experiment repeats runs that had been given up.
        let before = [ran(0, 0, 10.0, None), ran(1, 1, 2.0, Some("late"))];
        assert_eq!(ExperimentProgress::new(&plan, &before).done, 1);
    }
}
