//! Executes the rounds of an experiment. Each run is deployed, measured, removed and recorded.

use super::common_failure::CommonFailureDetector;
use super::experiment_error::ExperimentError;
use super::file_error::FileError;
use super::local_run::execute_locally;
use super::placeholders::RunContext;
use super::progress::{ExperimentProgress, RunEvent};
use super::result_folder::{
    DocumentAndOutputFolders, open_run_records, reserve_folder_for_document,
};
use super::run_error::RunError;
use super::source::prepare_sources;
use super::time_slice::TimeSlice;
use super::{Arm, MachineDescription, RunPlan, RunRecord, disturbance_bounds};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of attempts of a run. A discarded run is repeated.
const ATTEMPTS: u32 = 3;

/// An experiment to run, with its folders.
#[derive(Debug, Clone)]
pub(crate) struct ExperimentJob {
    /// The plan.
    pub(crate) plan: RunPlan,
    /// The document as written.
    pub(crate) text: String,
    /// Base folder of relative paths in the document.
    pub(crate) base: PathBuf,
    /// Result folder. It contains `document.toml`, `runs.jsonl` (one [`RunRecord`] per line),
    /// `machine.jsonl` (one [`MachineDescription`] per line, for this machine and for agents) and
    /// `sources`. While runs are in progress, it also contains `scratch-N`.
    pub(crate) out: PathBuf,
    /// Time limit of this session. A run that would probably exceed the limit is not started.
    pub(crate) time_slice: Option<Duration>,
}

/// Executes runs on other hosts.
pub(crate) trait RemoteExecutor: Sync {
    /// Executes one run and fills in its record.
    ///
    /// # Errors
    /// The run failed or was stopped.
    fn execute_run(
        &self,
        job: &ExperimentJob,
        record: &mut RunRecord,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<(), RunError>;

    /// Returns the machine descriptions that have been received since the last call.
    fn take_machine_descriptions(&self) -> Vec<MachineDescription>;
}

/// Connects to the hosts that execute the runs.
pub(crate) type ExecutorConnector =
    Box<dyn Fn() -> Result<Box<dyn RemoteExecutor>, ExperimentError>>;

/// The reason why the execution of an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExperimentOutcome {
    /// All runs were attempted.
    Complete,
    /// The experiment was stopped. Running the same job again resumes the experiment.
    Stopped,
    /// The time slice is over. Running the same job again resumes the experiment.
    TimeOver,
}

/// Executes the runs that are still missing. Calls `on_progress` with the progress before and after
/// every run. Setting `stop` ends the experiment as soon as possible.
///
/// # Errors
/// An error concerns all runs, such as an unwritable file, an unavailable source, or a result
/// folder of another experiment. The error of a single run is in the record of that run.
pub(crate) fn execute_missing_runs(
    job: &ExperimentJob,
    connect: Option<&ExecutorConnector>,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(&ExperimentProgress),
) -> Result<ExperimentOutcome, ExperimentError> {
    let folders = DocumentAndOutputFolders::from_paths(&job.base, &job.out)?;
    reserve_folder_for_document(&folders.out, &job.text)?;
    let path = folders.out.join("runs.jsonl");
    // Locks the file before reading its records, because another process may be appending records.
    let mut file = open_run_records(&path)?;
    let machine = MachineDescription::describe_this_machine(
        job.plan.scale.as_deref(),
        &job.plan.document.versions,
    );
    machine.append_if_changed(&folders.out)?;
    let done = RunRecord::read_record_file(&path)?;
    let ground = match RunLocation::connect_or_prepare_sources(job, connect, &folders, stop) {
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(ExperimentOutcome::Stopped),
        ground => ground?,
    };
    let mut progress = ExperimentProgress::new(&job.plan, &done);
    let took_s = done.iter().map(|record| record.took_s);
    let rounds = RoundRunner {
        job,
        ground,
        folders,
        stop,
        broken: AtomicBool::new(false),
        is_cut_short: AtomicBool::new(false),
        slice: TimeSlice::start_now(job.time_slice, took_s),
        first: CommonFailureDetector::new(
            job.plan.arms.len(),
            done.iter().any(|record| record.discard_reason.is_none()),
        ),
    };
    for round in 0..job.plan.rounds {
        let undone = |(_, arm): &(usize, &Arm)| {
            let same = |record: &&RunRecord| record.round == round && record.arm == **arm;
            done.iter()
                .filter(same)
                .all(|record| record.discard_reason.is_some())
        };
        let order = job.plan.arm_order(round);
        let arms = order.iter().filter_map(|number| job.plan.arms.get(*number));
        let todo: Vec<(usize, &Arm)> = arms.enumerate().filter(undone).collect();
        let mut written = Ok(());
        let mut last_reason = None;
        rounds.run_round(round, &todo, &mut |event| {
            if let RunEvent::Ended(record, _) = &event
                && let Err(error) = append_record(&mut file, record)
            {
                rounds.broken.store(true, Ordering::Relaxed);
                written = Err(FileError::new(&path, error));
            }
            if let RunEvent::Ended(record, _) = &event {
                last_reason.clone_from(&record.discard_reason);
            }
            progress.record_event(event);
            on_progress(&progress);
        });
        written?;
        if stop.load(Ordering::Relaxed) {
            return Ok(ExperimentOutcome::Stopped);
        }
        if rounds.is_cut_short.load(Ordering::Relaxed) {
            return Ok(ExperimentOutcome::TimeOver);
        }
        if rounds.first.has_common_failure() {
            return Err(ExperimentError::EveryArmFailed {
                arms: job.plan.arms.len(),
                reason: last_reason.unwrap_or_default(),
                out: job.out.clone(),
            });
        }
    }
    Ok(ExperimentOutcome::Complete)
}

/// Appends a record as one line. A single write makes an incomplete line unlikely.
fn append_record(file: &mut File, record: &RunRecord) -> std::io::Result<()> {
    let line = serde_json::to_string(record)?;
    file.write_all((line + "\n").as_bytes())
}

/// The reason why the attempts of an arm ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArmCompletion {
    /// An attempt succeeded, no further attempts are allowed, or the experiment ends.
    Finished,
    /// The first attempt failed in the same way as all first attempts of other arms so far.
    Postponed,
}

/// State that all runs share.
struct RoundRunner<'a> {
    job: &'a ExperimentJob,
    ground: RunLocation,
    folders: DocumentAndOutputFolders,
    stop: &'a AtomicBool,
    /// Whether a record could not be written.
    broken: AtomicBool,
    slice: TimeSlice,
    /// Whether a run was not started because of the time slice.
    is_cut_short: AtomicBool,
    first: CommonFailureDetector,
}

impl RoundRunner<'_> {
    /// Executes the runs of a round. Calls `on_event` in the order in which runs start and end. As
    /// long as all first attempts of the experiment have failed in the same way, further attempts
    /// are postponed. The postponed attempts are made only if another arm succeeds or fails in a
    /// different way.
    fn run_round(&self, round: u32, todo: &[(usize, &Arm)], on_event: &mut dyn FnMut(RunEvent)) {
        let postponed = self.run_attempts_of_arms(round, todo, 0, on_event);
        if !self.first.has_common_failure() {
            self.run_attempts_of_arms(round, &postponed, 1, on_event);
        }
    }

    /// Executes attempt number `first` and the following attempts of these arms. The plan limits
    /// the number of concurrent runs, and each run has its own namespaces. Returns the arms whose
    /// further attempts are postponed.
    fn run_attempts_of_arms<'p>(
        &self,
        round: u32,
        todo: &[(usize, &'p Arm)],
        first: u32,
        on_event: &mut dyn FnMut(RunEvent),
    ) -> Vec<(usize, &'p Arm)> {
        let lanes = match self.ground {
            RunLocation::Local(_) => self.job.plan.parallel,
            // Agents execute one run at a time.
            RunLocation::Remote(_) => 1,
        };
        let next = AtomicUsize::new(0);
        let postponed = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let (sender, events) = std::sync::mpsc::channel();
            for lane in 0..lanes {
                let (next, sender, postponed) = (&next, sender.clone(), &postponed);
                scope.spawn(move || {
                    while let Some((place, arm)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let run = self.run_attempts(lane, round, (*place, arm), first, &|event| {
                            // Cannot fail, because the receiver outlives all senders.
                            let _ = sender.send(event);
                        });
                        if run == ArmCompletion::Postponed
                            && let Ok(mut postponed) = postponed.lock()
                        {
                            postponed.push((*place, *arm));
                        }
                    }
                });
            }
            drop(sender);
            events.into_iter().for_each(on_event);
        });
        postponed.into_inner().unwrap_or_default()
    }

    fn is_stopping(&self) -> bool {
        if self.slice.is_too_short_for_run() {
            self.is_cut_short.store(true, Ordering::Relaxed);
        }
        [self.stop, &self.broken, &self.is_cut_short]
            .into_iter()
            .any(|flag| flag.load(Ordering::Relaxed))
    }

    /// Repeats one run of a round until an attempt succeeds or no further attempts are allowed. The
    /// number of the first attempt is `first`.
    fn run_attempts(
        &self,
        lane: u32,
        round: u32,
        (place, arm): (usize, &Arm),
        first: u32,
        on_event: &dyn Fn(RunEvent),
    ) -> ArmCompletion {
        for attempt in first..ATTEMPTS {
            if self.is_stopping() {
                return ArmCompletion::Finished;
            }
            on_event(RunEvent::Started(round, attempt, arm.clone()));
            let mut record = RunRecord::new(round, place, attempt, arm);
            record.claims = self.job.plan.claim_fingerprints();
            let started = Instant::now();
            let ended = self.execute_attempt(lane, &mut record);
            record.took_s = started.elapsed().as_secs_f64();
            self.slice.note_run(record.took_s);
            if self.stop.load(Ordering::Relaxed) {
                return ArmCompletion::Finished;
            }
            let ended = ended.and_then(|()| {
                Ok(disturbance_bounds::check_run_bounds(
                    &self.job.plan,
                    &record,
                )?)
            });
            let is_fault = matches!(&ended, Err(error) if !error.can_succeed_on_retry());
            record.failed = ended.is_err().then_some(is_fault);
            record.discard_reason = ended.err().map(|error| error.to_string());
            let counts = record.discard_reason.is_none();
            let fault = record.discard_reason.as_deref().filter(|_| is_fault);
            let like_others = attempt == 0 && self.first.record_first_attempt(fault);
            on_event(RunEvent::Ended(Box::new(record), attempt + 1 == ATTEMPTS));
            if counts {
                return ArmCompletion::Finished;
            }
            if like_others {
                return ArmCompletion::Postponed;
            }
        }
        ArmCompletion::Finished
    }

    /// Executes one attempt, either on this machine or on agents.
    fn execute_attempt(&self, lane: u32, record: &mut RunRecord) -> Result<(), RunError> {
        let plan = &self.job.plan;
        // All arms of a round use the same seed, so that they have the same packet losses.
        let seed = plan.document.seed.wrapping_add(record.round.into());
        let sources = match &self.ground {
            RunLocation::Remote(executor) => {
                let executed = executor.execute_run(self.job, record, seed, self.stop);
                for machine in executor.take_machine_descriptions() {
                    machine.append_if_changed(&self.folders.out)?;
                }
                return executed;
            }
            RunLocation::Local(sources) => sources.clone(),
        };
        let at = RunContext {
            folder: self.folders.out.join(format!("scratch-{lane}")),
            sources,
            round: record.round,
            seed,
            ..RunContext::default()
        };
        execute_locally(&plan.document, at, record, self.stop)
    }
}

/// The machines that execute the runs.
enum RunLocation {
    /// This machine, with the paths of the sources.
    Local(BTreeMap<String, PathBuf>),
    /// Other hosts.
    Remote(Box<dyn RemoteExecutor>),
}

impl RunLocation {
    fn connect_or_prepare_sources(
        job: &ExperimentJob,
        connect: Option<&ExecutorConnector>,
        folders: &DocumentAndOutputFolders,
        stop: &AtomicBool,
    ) -> Result<RunLocation, ExperimentError> {
        match connect {
            Some(connect) => connect().map(RunLocation::Remote),
            None => {
                let sources = prepare_sources(&job.plan.document, &|_| true, folders, stop)?;
                Ok(RunLocation::Local(sources))
            }
        }
    }
}
