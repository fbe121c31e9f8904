//! Through the rounds: every run carried out, written down, and taken away again.

use super::folder::{Folders, claim, opened};
use super::names::Where;
use super::one::one;
use super::progress::{Event, Progress};
use super::source::sources;
use super::{Arm, Machine, Plan, Record, bounds};
use crate::agent::{Fleet, Meeting, conduct};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// A run that is thrown away is repeated at once, at most this often.
const ATTEMPTS: u32 = 3;

/// What is to be run, and where its files are.
#[derive(Debug, Clone)]
pub struct Job {
    /// What will be done.
    pub plan: Plan,
    /// The document as it was written.
    pub text: String,
    /// Paths in the document are from here.
    pub base: PathBuf,
    /// Gets `document.toml`, `runs.jsonl` (a [`Record`] a line), `machine.jsonl`
    /// (a [`Machine`] a line, also of agents), `sources`, and while it lasts `scratch-N`.
    pub out: PathBuf,
    /// Where agents meet that carry runs out; none where this machine does.
    pub meeting: Option<Meeting>,
}

/// How an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All runs were tried.
    Complete,
    /// Told to stop; the same job goes on from here.
    Stopped,
}

/// Runs what has not been run yet. `say` is told how far it is before and after every run. `stop`
/// ends it at the next moment at which it can.
///
/// # Errors
/// A sentence, for what concerns all runs: files that cannot be written, a source that cannot be
/// made, a folder that holds another experiment. What concerns one run is in its record.
pub fn run(
    job: &Job,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&Progress),
) -> Result<Outcome, String> {
    let folders = Folders::of(job)?;
    claim(&folders.out, &job.text)?;
    let path = folders.out.join("runs.jsonl");
    // Before records are read: they are ours alone from here.
    let mut file = opened(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let machine = Machine::here(job.plan.scale.as_deref(), &job.plan.document.versions);
    machine.note(&folders.out)?;
    let done = Record::read_all(&path)?;
    let ground = match Ground::of(job, &folders, stop) {
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(Outcome::Stopped),
        ground => ground?,
    };
    let mut progress = Progress::new(&job.plan, &done);
    let rounds = Rounds {
        job,
        ground,
        folders,
        stop,
        broken: AtomicBool::new(false),
    };
    for round in 0..job.plan.rounds {
        let undone = |(_, arm): &(usize, &Arm)| {
            let same = |record: &&Record| record.round == round && record.arm == **arm;
            done.iter()
                .filter(same)
                .all(|record| record.thrown.is_some())
        };
        let order = job.plan.order(round);
        let arms = order.iter().filter_map(|number| job.plan.arms.get(*number));
        let todo: Vec<(usize, &Arm)> = arms.enumerate().filter(undone).collect();
        let mut written = Ok(());
        rounds.round(round, &todo, &mut |event| {
            if let Event::Ends(record, _) = &event
                && let Err(error) = write(&mut file, record)
            {
                rounds.broken.store(true, Ordering::Relaxed);
                written = Err(format!("{}: {error}", path.display()));
            }
            progress.note(event);
            say(&progress);
        });
        written?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped);
        }
    }
    Ok(Outcome::Complete)
}

/// Whole or not at all: a line is one write.
fn write(file: &mut File, record: &Record) -> std::io::Result<()> {
    let line = serde_json::to_string(record)?;
    file.write_all((line + "\n").as_bytes())
}

/// What all runs have in common.
struct Rounds<'a> {
    job: &'a Job,
    ground: Ground,
    folders: Folders,
    stop: &'a AtomicBool,
    /// What is measured could not be written down.
    broken: AtomicBool,
}

impl Rounds<'_> {
    /// A round's runs, as many at a time as the plan says, each in namespaces of its own; told of
    /// in the order in which they begin and end.
    fn round(&self, round: u32, todo: &[(usize, &Arm)], tell: &mut dyn FnMut(Event)) {
        let lanes = match self.ground {
            Ground::Here(_) => self.job.plan.parallel,
            // Agents do one thing at a time.
            Ground::There(_) => 1,
        };
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let (told, events) = std::sync::mpsc::channel();
            for lane in 0..lanes {
                let (next, told) = (&next, told.clone());
                scope.spawn(move || {
                    while let Some((place, arm)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.attempts(lane, round, (*place, arm), &|event| {
                            // Who listens does so until all have ended.
                            let _ = told.send(event);
                        });
                    }
                });
            }
            drop(told);
            events.into_iter().for_each(tell);
        });
    }

    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed)
    }

    /// One arm's run of a round, until one counts.
    fn attempts(&self, lane: u32, round: u32, (place, arm): (usize, &Arm), tell: &dyn Fn(Event)) {
        for attempt in 0..ATTEMPTS {
            if self.over() {
                return;
            }
            tell(Event::Begins(round, attempt, arm.clone()));
            let mut record = Record::new(round, place, attempt, arm);
            let began = Instant::now();
            let ended = self.carry_out(lane, &mut record);
            record.took_s = began.elapsed().as_secs_f64();
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let ended = ended.and_then(|()| bounds::within(&self.job.plan, &record));
            record.thrown = ended.err();
            let counts = record.thrown.is_none();
            tell(Event::Ends(Box::new(record), attempt + 1 == ATTEMPTS));
            if counts {
                return;
            }
        }
    }

    /// One run, here or there.
    fn carry_out(&self, lane: u32, record: &mut Record) -> Result<(), String> {
        let plan = &self.job.plan;
        // The same losses for every arm of a round.
        let seed = plan.document.seed.wrapping_add(record.round.into());
        let sources = match &self.ground {
            Ground::There(fleet) => {
                let conducted = conduct(fleet, (plan, &self.job.text), record, seed, self.stop);
                for machine in fleet.new_machines() {
                    machine.note(&self.folders.out)?;
                }
                return conducted;
            }
            Ground::Here(sources) => sources.clone(),
        };
        let at = Where {
            folder: self.folders.out.join(format!("scratch-{lane}")),
            sources,
            round: record.round,
            seed,
            ..Where::default()
        };
        one(&plan.document, at, record, self.stop)
    }
}

/// Where runs are carried out.
enum Ground {
    /// On this machine, where sources are here.
    Here(BTreeMap<String, PathBuf>),
    /// On agents'.
    There(Box<Fleet>),
}

impl Ground {
    fn of(job: &Job, folders: &Folders, stop: &AtomicBool) -> Result<Ground, String> {
        match &job.meeting {
            Some(meeting) => Fleet::join(meeting).map(|fleet| Ground::There(Box::new(fleet))),
            None => sources(&job.plan.document, &|_| true, folders, stop).map(Ground::Here),
        }
    }
}
