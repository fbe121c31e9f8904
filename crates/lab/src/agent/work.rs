//! What an agent does for a session, on a thread of its own, order by order.

use super::protocol::{Answer, Deploy, Order, now_ns};
use crate::experiment::{Deployed, Document, Folders, Machine, Ticks, Where, check, sources};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A common beginning further away is a mistake, of a clock or of whoever asks.
const AHEAD_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// An order, and where its answer goes.
pub(super) struct Errand {
    pub(super) order: Order,
    pub(super) reply: String,
}

/// A session's place on this machine.
pub(super) struct Work {
    /// Media that documents name by paths is here.
    pub(super) base: PathBuf,
    /// Its own; it goes with it.
    pub(super) folder: PathBuf,
    /// Ends what is under way.
    pub(super) stop: Arc<AtomicBool>,
    pub(super) answer: Box<dyn Fn(String, Answer) + Send>,
}

impl Work {
    /// Until nobody gives orders any more.
    pub(super) fn go(self, orders: &Receiver<Errand>) {
        let mut found = BTreeMap::new();
        while let Ok(Errand { order, reply }) = orders.recv() {
            let result = match order {
                Order::Machine { versions } => {
                    let here = Machine::here(None, &versions);
                    Ok(Some(Answer::Machine(Box::new(here))))
                }
                Order::Sources { text, names } => self.sources(&text, &names, &mut found),
                Order::Deploy(deploy) => self.run(&deploy, &found, reply.clone(), orders),
                Order::TakeAway => {
                    self.stop.store(false, Ordering::Relaxed);
                    Ok(Some(Answer::Done))
                }
                _ => Err("nothing is deployed here".into()),
            };
            if let Some(answer) = result.unwrap_or_else(|what| Some(Answer::Failed(what))) {
                (self.answer)(reply, answer);
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn sources(
        &self,
        text: &str,
        names: &[String],
        found: &mut BTreeMap<String, PathBuf>,
    ) -> Result<Option<Answer>, String> {
        let folders = Folders {
            base: self.base.clone(),
            out: self.folder.clone(),
        };
        let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
        found.extend(sources(&document(text)?, &wanted, &folders, &self.stop)?);
        Ok(Some(Answer::Done))
    }

    /// One run, from its deployment until it is to be taken away or nobody gives orders any more.
    /// It answers by itself.
    fn run(
        &self,
        deploy: &Deploy,
        sources: &BTreeMap<String, PathBuf>,
        reply: String,
        orders: &Receiver<Errand>,
    ) -> Result<Option<Answer>, String> {
        let document = document(&deploy.text)?;
        let at = Where {
            folder: self.folder.join("scratch"),
            sources: sources.clone(),
            round: deploy.round,
            seed: deploy.seed,
            share: Some(deploy.share.clone()),
            ..Where::default()
        };
        let ticks = Ticks::now();
        let deployed = Deployed::start(&document, &deploy.arm, at)?;
        (self.answer)(reply, Answer::Done);
        while let Ok(Errand { order, reply }) = orders.recv() {
            if let Order::TakeAway = order {
                drop(deployed);
                self.stop.store(false, Ordering::Relaxed);
                (self.answer)(reply, Answer::Noise(ticks.since()));
                return Ok(None);
            }
            let answer = self.step(&deployed, order);
            (self.answer)(reply, answer.unwrap_or_else(Answer::Failed));
        }
        Ok(None)
    }

    fn step(&self, deployed: &Deployed<'_>, order: Order) -> Result<Answer, String> {
        let stop = &self.stop;
        match order {
            Order::Function { name } => deployed.function(&name, stop).map(|()| Answer::Done),
            Order::WarmUp { sinks } => {
                let sinks: Vec<&str> = sinks.iter().map(String::as_str).collect();
                deployed.warm_up(&sinks, stop).map(|()| Answer::Done)
            }
            Order::Measure { sinks, at_ns } => {
                let late_ns = self.until(at_ns)?;
                let sinks: Vec<&str> = sinks.iter().map(String::as_str).collect();
                let measured = deployed.measure(&sinks, stop)?;
                Ok(Answer::Measured(Box::new(measured), late_ns))
            }
            Order::Look => deployed.runs().map(|()| Answer::Done),
            _ => Err("a run is deployed here".into()),
        }
    }

    /// Waits for a time of this machine's clock. How long after it that was, in nanoseconds.
    fn until(&self, at_ns: u64) -> Result<u64, String> {
        let ahead = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
        if ahead > AHEAD_MAX {
            return Err(format!("to begin in {ahead:?}; at most in {AHEAD_MAX:?}"));
        }
        loop {
            let left = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
            if left.is_zero() {
                return Ok(now_ns().saturating_sub(at_ns));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err("stopped".into());
            }
            std::thread::sleep(left.min(PAUSE));
        }
    }
}

/// As whoever runs it has read it; nobody is believed.
fn document(text: &str) -> Result<Document, String> {
    let document = Document::read(text).map_err(|fault| fault.to_string())?;
    match check(text, &document).first() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(document),
    }
}
