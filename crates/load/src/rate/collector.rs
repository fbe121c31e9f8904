//! Adds up what the threads see, second by second, and writes it down as it comes.

use super::tally::Tick;
use super::worker::{Common, work};
use super::{Kind, Plan};
use crate::generator::{self, Heard, cpu_s};
use crate::result::{Cell, Outputs, Run, Second, Stretch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

/// What there is to see of a run at a second's end.
pub struct Sight<'a> {
    /// The second that ended.
    pub second: &'a Second,
    /// The run's length in seconds.
    pub of_s: f64,
    /// Requests that were never sent, so far.
    pub unsent: u64,
}

/// Runs a plan to its end; `stop` ends it early, with what it has. `see` is called every second.
///
/// # Errors
/// What kept it from running, or its files from being written.
pub fn run(
    plan: Arc<Plan>,
    stop: &AtomicBool,
    mut outputs: Outputs,
    mut see: impl FnMut(&Sight<'_>),
) -> Result<Run, String> {
    let common = Arc::new(Common {
        targets: Arc::new(plan.prepare().map_err(|failure| failure.to_string())?),
        start: OnceLock::new(),
        ready: Barrier::new(plan.threads),
        stop: AtomicBool::new(false),
        keep_records: outputs.records.is_some(),
        plan: plan.clone(),
    });
    let cpu = cpu_s();
    let mut sum = Sum::new(&plan);
    let shared = common.clone();
    let work = move |number, out: &Sender<_>| work(shared.clone(), number, out);
    generator::run("load", plan.threads, stop, work, |heard| {
        match heard {
            Heard::Report(tick) => sum.take(*tick, &mut outputs)?,
            Heard::Nothing => {}
            Heard::Stop => {
                common.stop.store(true, Ordering::Relaxed);
                sum.run.stopped = true;
            }
        }
        sum.close(&mut outputs, &mut see)
    })?;
    let mut run = sum.run;
    let begun = common.start.get().copied();
    run.wall_s = begun.map_or(0.0, |start: Instant| start.elapsed().as_secs_f64());
    run.cpu_s = cpu_s() - cpu;
    run.connections = plan.dialer.connections().opened();
    outputs.finish()?;
    Ok(run)
}

/// A second whose reports are not all in.
#[derive(Default)]
struct Open {
    cells: BTreeMap<(u32, Kind), Cell>,
    due: u64,
    /// Connections at its end.
    open: u64,
}

struct Sum {
    run: Run,
    plan: Arc<Plan>,
    open: BTreeMap<u64, Open>,
    /// Seconds that each thread has reported.
    reported: Vec<u64>,
}

impl Sum {
    fn new(plan: &Arc<Plan>) -> Sum {
        let steps = plan.profile.steps().into_iter().map(|step| Stretch {
            start_s: step.start_s,
            end_s: step.end_s,
            ..Stretch::default()
        });
        let run = Run::begin(&plan.offered, steps.collect());
        Sum {
            run,
            plan: plan.clone(),
            open: BTreeMap::new(),
            reported: vec![0; plan.threads],
        }
    }

    fn take(&mut self, tick: Tick, outputs: &mut Outputs) -> Result<(), String> {
        let second = self.open.entry(tick.second.saturating_sub(1)).or_default();
        self.reported[tick.thread] = if tick.last { u64::MAX } else { tick.second };
        for ((step, kind), cell) in tick.cells {
            self.run.count(step, kind, &cell);
            second.cells.entry((step, kind)).or_default().add(&cell);
        }
        second.open = second.open.max(tick.open);
        for (step, count) in tick.due {
            second.due += count;
            if let Some(stretch) = self.run.steps.get_mut(step as usize) {
                stretch.due += count;
            }
        }
        self.run.unsent += tick.unsent;
        self.run.abandoned += tick.abandoned;
        self.run.lag.add(&tick.lag);
        self.run.connect.add(&tick.connect);
        for (fault, example) in tick.examples {
            self.run.examples.entry(fault).or_insert(example);
        }
        outputs.record(&tick.records)
    }

    /// Closes the seconds that every thread has reported.
    fn close(
        &mut self,
        outputs: &mut Outputs,
        see: &mut impl FnMut(&Sight<'_>),
    ) -> Result<(), String> {
        while let Some(entry) = self.open.first_entry() {
            if self.reported.iter().any(|seconds| *seconds <= *entry.key()) {
                return Ok(());
            }
            let (number, open) = entry.remove_entry();
            outputs.log(number, &open.cells)?;
            let second = Second {
                due: open.due,
                open: open.open,
                ..Second::of(number, open.cells.values())
            };
            if self.is_over()
                && second
                    == (Second {
                        second: number,
                        ..Second::default()
                    })
            {
                continue;
            }
            see(&Sight {
                second: &second,
                of_s: self.plan.profile.duration_s(),
                unsent: self.run.unsent,
            });
            self.run.seconds.push(second);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.reported.iter().all(|seconds| *seconds == u64::MAX)
    }
}
