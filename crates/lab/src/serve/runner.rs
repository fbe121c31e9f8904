//! The one thread that runs what was posted, in its order.

use super::answer::Manager;
use super::book::{Entry, Name};
use super::report;
use crate::experiment::{Job, Outcome, Progress, Record, run};
use crate::link::available;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Until the end is asked for.
pub(super) fn work(manager: &Manager) {
    while let Some((name, entry)) = manager.book.next() {
        let reporter = report::Reporter::start(manager, &name, &entry);
        let one = AssertUnwindSafe(|| one(manager, &name, &entry));
        let ended = catch_unwind(one).unwrap_or_else(|_| Err("it panicked; see the log".into()));
        if let Err(why) = &ended {
            tracing::warn!(id = name.1, why, "in error");
        }
        manager.book.done(&name, ended.err());
        drop(reporter);
    }
}

fn one(manager: &Manager, name: &Name, entry: &Entry) -> Result<(), String> {
    available()?;
    let prepared = &entry.prepared;
    let out = manager.folder(name);
    let plan = &prepared.plan;
    let runs = plan.rounds as usize * plan.arms.len();
    let mut before = Record::read_all(&out.join("runs.jsonl"))?;
    // What was measured in another size is there too.
    before.retain(|record| record.round < plan.rounds && plan.arms.contains(&record.arm));
    let thrown = before
        .iter()
        .filter(|record| record.thrown.is_some())
        .count();
    manager.book.note(name, |figures| {
        figures.runs = runs;
        figures.done = before.len() - thrown;
        figures.thrown = thrown;
    });
    let mut counted = before.len() - thrown;
    let mut last = None;
    let mut say = |progress: &Progress| {
        let Some(record) = &progress.ended else {
            return;
        };
        counted += usize::from(record.thrown.is_none());
        last.clone_from(&record.thrown);
        manager.book.note(name, |figures| match &record.thrown {
            Some(_) => figures.thrown += 1,
            None => {
                figures.done += 1;
                figures.values.clone_from(&record.values);
            }
        });
    };
    let job = Job {
        plan: plan.clone(),
        text: prepared.text.clone(),
        base: manager.settings.base.clone(),
        out,
        meeting: None,
    };
    let outcome = run(&job, &entry.stop, &mut say)?;
    match (outcome, last) {
        (Outcome::Complete, last) if counted < runs => {
            let why = last.map(|why| format!(": {why}")).unwrap_or_default();
            Err(format!(
                "{} of {runs} runs could not be measured{why}",
                runs - counted
            ))
        }
        _ => Ok(()),
    }
}
