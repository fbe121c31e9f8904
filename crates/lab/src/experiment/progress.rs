//! How far an experiment is.

use super::{Arm, Plan, Record};
use serde::Serialize;
use std::collections::BTreeMap;

/// How far it is, at the beginning or the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    /// Runs that count, and those that were given up.
    pub done: usize,
    /// All that there are.
    pub all: usize,
    /// Seconds that the rest will take, as long as each arm takes what it took so far and as many
    /// go on beside each other; none before anything was run.
    pub left_s: Option<f64>,
    /// The run's round, from 0.
    pub round: u32,
    /// Which try of it, from 0.
    pub attempt: u32,
    /// The variables' values.
    pub arm: Arm,
    /// The run, where it has ended.
    pub ended: Option<Record>,
    #[serde(skip)]
    rounds: u32,
    #[serde(skip)]
    parallel: u32,
    #[serde(skip)]
    arms: BTreeMap<Arm, Took>,
}

/// What happens to runs.
pub(super) enum Event {
    /// Its round, which try of it, and its arm.
    Begins(u32, u32, Arm),
    /// Its record, and whether there is no further try.
    Ends(Box<Record>, bool),
}

/// What an arm's runs took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Took {
    seconds: f64,
    /// Those thrown away are among them.
    runs: u32,
    /// They are not.
    done: u32,
}

impl Progress {
    pub(super) fn new(plan: &Plan, records: &[Record]) -> Progress {
        let arms = plan.arms.iter().map(|arm| (arm.clone(), Took::default()));
        let mut progress = Progress {
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
            progress.count(record, false);
        }
        progress
    }

    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Begins(round, attempt, arm) => {
                (self.round, self.attempt, self.arm) = (round, attempt, arm);
                self.ended = None;
            }
            Event::Ends(record, last) => {
                (self.round, self.attempt) = (record.round, record.attempt);
                self.arm.clone_from(&record.arm);
                self.count(&record, last);
                self.ended = Some(*record);
            }
        }
    }

    fn count(&mut self, record: &Record, given_up: bool) {
        let Some(took) = self.arms.get_mut(&record.arm) else {
            return;
        };
        took.seconds += record.took_s;
        took.runs += 1;
        if record.thrown.is_none() || given_up {
            took.done += 1;
            self.done += 1;
        }
        self.left_s = self.left();
    }

    fn left(&self) -> Option<f64> {
        let seconds: f64 = self.arms.values().map(|took| took.seconds).sum();
        let runs: u32 = self.arms.values().map(|took| took.runs).sum();
        let mean = (runs > 0).then(|| seconds / f64::from(runs))?;
        let of_arm = |took: &Took| {
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
    use crate::experiment::Document;

    #[test]
    fn each_arm_takes_what_it_took() {
        let text = "name='x'\nquestion='x'\nrounds=3\nsweep.a=[1, 2]\n";
        let plan = Plan::new(Document::read(text).unwrap(), None).unwrap();
        let ran = |round, n: usize, took_s, thrown: Option<&str>| {
            let mut record = Record::new(round, 0, 0, &plan.arms[n]);
            record.took_s = took_s;
            record.thrown = thrown.map(str::to_owned);
            record
        };
        let mut progress = Progress::new(&plan, &[]);
        assert_eq!((progress.done, progress.all, progress.left_s), (0, 6, None));
        progress.note(Event::Begins(0, 0, plan.arms[0].clone()));
        progress.note(Event::Ends(Box::new(ran(0, 0, 10.0, None)), false));
        assert_eq!((progress.done, progress.left_s), (1, Some(50.0)));
        progress.note(Event::Begins(0, 0, plan.arms[1].clone()));
        progress.note(Event::Ends(Box::new(ran(0, 1, 2.0, None)), false));
        assert_eq!((progress.done, progress.left_s), (2, Some(24.0)));
        // Thrown away: it is still to be run; the last try: it is given up.
        progress.note(Event::Ends(Box::new(ran(1, 1, 2.0, Some("late"))), false));
        assert_eq!((progress.done, progress.left_s), (2, Some(24.0)));
        progress.note(Event::Ends(Box::new(ran(1, 1, 2.0, Some("late"))), true));
        assert_eq!((progress.done, progress.left_s), (3, Some(22.0)));
        // Another time: what was given up is tried again.
        let before = [ran(0, 0, 10.0, None), ran(1, 1, 2.0, Some("late"))];
        assert_eq!(Progress::new(&plan, &before).done, 1);
    }
}
