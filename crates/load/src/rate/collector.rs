//! Merges the reports of all threads for each second, and writes the output files.

use super::RequestKind;
use super::plan::RateRunPlan;
use super::request_target::TargetSet;
use super::shared_run::SharedRun;
use super::thread_main::run_thread;
use super::thread_stats::RateIntervalReport;
use crate::generator_threads::{self, GeneratorError, GeneratorEvent, cpu_s};
use crate::result::{
    OutputError, RequestStats, RunOutputs, RunResult, SecondStats, StepResult, url_group_or_other,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

/// The state of a run at the end of a second.
pub struct RateProgress<'a> {
    /// The statistics of the finished second.
    pub second: &'a SecondStats,
    /// The planned length of the run, in seconds.
    pub of_s: f64,
    /// Number of requests that were due but not sent, since the start of the run.
    pub unsent: u64,
}

/// Executes the plan of a run. If `stop` is set, the run ends early, and the results so far are
/// returned. `on_second` is called once for every second.
///
/// # Errors
/// The run could not start, or an output file cannot be written.
pub fn run_rate_plan(
    plan: Arc<RateRunPlan>,
    stop: &AtomicBool,
    mut outputs: RunOutputs,
    mut on_second: impl FnMut(&RateProgress<'_>),
) -> Result<RunResult, GeneratorError> {
    let common = Arc::new(SharedRun {
        targets: Arc::new(
            plan.prepare_targets()
                .map_err(GeneratorError::EncodeRequest)?,
        ),
        start: OnceLock::new(),
        ready: Barrier::new(plan.threads),
        stop: AtomicBool::new(false),
        keep_records: outputs.records.is_some(),
        plan: plan.clone(),
    });
    let cpu = cpu_s();
    let mut sum = RateCollector::new(&plan, common.targets.clone());
    let shared = common.clone();
    let work = move |number, out: &Sender<_>| run_thread(shared.clone(), number, out);
    generator_threads::run_threads("load", plan.threads, stop, work, |heard| {
        match heard {
            GeneratorEvent::Report(report) => sum.add_thread_report(*report, &mut outputs)?,
            GeneratorEvent::Nothing => {}
            GeneratorEvent::Stop => {
                common.stop.store(true, Ordering::Relaxed);
                sum.run.stopped = true;
            }
        }
        Ok(sum.close_seconds(&mut outputs, &mut on_second)?)
    })?;
    let mut run = sum.run;
    let begun = common.start.get().copied();
    run.wall_s = begun.map_or(0.0, |start: Instant| start.elapsed().as_secs_f64());
    run.cpu_s = cpu_s() - cpu;
    run.connections = plan.dialer.connection_counts().opened_total();
    outputs.finish_files()?;
    Ok(run)
}

/// The statistics of a second that some threads have not reported yet.
#[derive(Default)]
struct PendingSecond {
    cells: BTreeMap<(u32, RequestKind), RequestStats>,
    due: u64,
    /// Number of open connections at the end of the second.
    open: u64,
}

struct RateCollector {
    run: RunResult,
    plan: Arc<RateRunPlan>,
    targets: Arc<TargetSet>,
    open: BTreeMap<u64, PendingSecond>,
    /// Number of seconds that each thread has reported; `u64::MAX` after its final report.
    reported: Vec<u64>,
}

impl RateCollector {
    fn new(plan: &Arc<RateRunPlan>, targets: Arc<TargetSet>) -> RateCollector {
        let steps = plan
            .profile
            .measured_steps()
            .into_iter()
            .map(|step| StepResult {
                start_s: step.start_s,
                end_s: step.end_s,
                ..StepResult::default()
            });
        let run = RunResult::result_starting_now(&plan.offered, steps.collect());
        RateCollector {
            run,
            plan: plan.clone(),
            targets,
            open: BTreeMap::new(),
            reported: vec![0; plan.threads],
        }
    }

    fn add_thread_report(
        &mut self,
        report: RateIntervalReport,
        outputs: &mut RunOutputs,
    ) -> Result<(), OutputError> {
        let second = self
            .open
            .entry(report.second.saturating_sub(1))
            .or_default();
        self.reported[report.thread] = if report.last { u64::MAX } else { report.second };
        for ((step, kind), cell) in report.cells {
            self.run.add_stats(step, kind, &cell);
            second.cells.entry((step, kind)).or_default().merge(&cell);
        }
        second.open = second.open.max(report.open);
        for (step, count) in report.due {
            second.due += count;
            if let Some(stretch) = self.run.steps.get_mut(step as usize) {
                stretch.due += count;
            }
        }
        for (index, group) in report.url_groups {
            let name = self.targets.groups.group_name(index);
            url_group_or_other(&mut self.run.url_groups, name).merge(&group);
        }
        self.run.unsent += report.unsent;
        self.run.abandoned += report.abandoned;
        self.run.lag.merge(&report.lag);
        self.run.connect.merge(&report.connect);
        for (fault, example) in report.examples {
            self.run.examples.entry(fault).or_insert(example);
        }
        outputs.write_records(&report.records)
    }

    /// Logs the statistics of each second that all threads have reported, and passes these
    /// statistics to `on_second`.
    fn close_seconds(
        &mut self,
        outputs: &mut RunOutputs,
        on_second: &mut impl FnMut(&RateProgress<'_>),
    ) -> Result<(), OutputError> {
        while let Some(entry) = self.open.first_entry() {
            if self.reported.iter().any(|seconds| *seconds <= *entry.key()) {
                return Ok(());
            }
            let (number, open) = entry.remove_entry();
            outputs.log_second(number, &open.cells)?;
            let second = SecondStats {
                due: open.due,
                open: open.open,
                ..SecondStats::from_stats(number, open.cells.values())
            };
            if self.is_over()
                && second
                    == (SecondStats {
                        second: number,
                        ..SecondStats::default()
                    })
            {
                continue;
            }
            on_second(&RateProgress {
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
