//! Executes the orders of a session one after another, on the session's own thread.

use super::errors::OrderExecutionError;
use super::protocol::{AgentOrder, AgentReply, DeployOrder, unix_time_ns};
use crate::experiment::distributed::{
    CpuTicks, DeployedRun, DocumentAndOutputFolders, RunContext, prepare_sources,
};
use crate::experiment::{ExperimentDocument, MachineDescription, RunError, check_document};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Maximum time from the order until the start of the measurement. If the time is longer, a clock
/// is wrong.
const AHEAD_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

/// An order, and the NATS subject for the reply.
pub(super) struct QueuedOrder {
    pub(super) order: AgentOrder,
    pub(super) reply: String,
}

/// Executes orders for one session.
pub(super) struct SessionWorker {
    /// Base folder of media paths in documents.
    pub(super) base: PathBuf,
    /// Private folder, which is removed when the session ends.
    pub(super) folder: PathBuf,
    /// If set, interrupts the current order.
    pub(super) stop: Arc<AtomicBool>,
    pub(super) send_response: Box<dyn Fn(String, AgentReply) + Send>,
}

impl SessionWorker {
    /// Processes orders until the session ends.
    pub(super) fn process_orders(self, orders: &Receiver<QueuedOrder>) {
        let mut found = BTreeMap::new();
        while let Ok(QueuedOrder { order, reply }) = orders.recv() {
            let result = match order {
                AgentOrder::Machine { versions } => {
                    let here = MachineDescription::describe_this_machine(None, &versions);
                    Ok(Some(AgentReply::Machine(Box::new(here))))
                }
                AgentOrder::Sources { text, names } => {
                    self.prepare_sources(&text, &names, &mut found)
                }
                AgentOrder::Deploy(deploy) => {
                    self.deploy_and_execute_orders(&deploy, &found, reply.clone(), orders)
                }
                AgentOrder::TakeAway => {
                    self.stop.store(false, Ordering::Relaxed);
                    Ok(Some(AgentReply::Done))
                }
                _ => Err(OrderExecutionError::NotDeployed),
            };
            if let Some(response) =
                result.unwrap_or_else(|error| Some(AgentReply::Failed(error.to_string())))
            {
                (self.send_response)(reply, response);
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn prepare_sources(
        &self,
        text: &str,
        names: &[String],
        found: &mut BTreeMap<String, PathBuf>,
    ) -> Result<Option<AgentReply>, OrderExecutionError> {
        let folders = DocumentAndOutputFolders {
            base: self.base.clone(),
            out: self.folder.clone(),
        };
        let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
        found.extend(prepare_sources(
            &parse_untrusted_document(text)?,
            &wanted,
            &folders,
            &self.stop,
        )?);
        Ok(Some(AgentReply::Done))
    }

    /// Deploys one run and executes its orders, until the run is removed or the session ends. Sends
    /// the replies to these orders.
    fn deploy_and_execute_orders(
        &self,
        deploy: &DeployOrder,
        sources: &BTreeMap<String, PathBuf>,
        reply: String,
        orders: &Receiver<QueuedOrder>,
    ) -> Result<Option<AgentReply>, OrderExecutionError> {
        let document = parse_untrusted_document(&deploy.text)?;
        let at = RunContext {
            folder: self.folder.join("scratch"),
            sources: sources.clone(),
            round: deploy.round,
            seed: deploy.seed,
            share: Some(deploy.share.clone()),
            ..RunContext::default()
        };
        let ticks = CpuTicks::now();
        let deployed = DeployedRun::deploy_network(&document, &deploy.arm, at)?;
        (self.send_response)(reply, AgentReply::Done);
        while let Ok(QueuedOrder { order, reply }) = orders.recv() {
            if let AgentOrder::TakeAway = order {
                drop(deployed);
                self.stop.store(false, Ordering::Relaxed);
                (self.send_response)(reply, AgentReply::MachineNoise(ticks.noise_since_read()));
                return Ok(None);
            }
            let response = self.execute_order(&deployed, order);
            (self.send_response)(
                reply,
                response.unwrap_or_else(|error| AgentReply::Failed(error.to_string())),
            );
        }
        Ok(None)
    }

    fn execute_order(
        &self,
        deployed: &DeployedRun<'_>,
        order: AgentOrder,
    ) -> Result<AgentReply, OrderExecutionError> {
        let stop = &self.stop;
        match order {
            AgentOrder::Function { name } => {
                deployed.start_function(&name, stop)?;
                Ok(AgentReply::Done)
            }
            AgentOrder::WarmUp { sinks } => {
                let sinks: Vec<&str> = sinks.iter().map(String::as_str).collect();
                deployed.warm_up(&sinks, stop)?;
                Ok(AgentReply::Done)
            }
            AgentOrder::Measure { sinks, at_ns } => {
                let late_ns = self.wait_until(at_ns)?;
                let sinks: Vec<&str> = sinks.iter().map(String::as_str).collect();
                let measured = deployed.run_sinks(&sinks, stop)?;
                Ok(AgentReply::PartMeasurements(Box::new(measured), late_ns))
            }
            AgentOrder::Look => {
                deployed.check_functions_running()?;
                Ok(AgentReply::Done)
            }
            _ => Err(OrderExecutionError::AlreadyDeployed),
        }
    }

    /// Waits until this machine's clock shows `at_ns`. Returns how late the wait ended, in
    /// nanoseconds.
    fn wait_until(&self, at_ns: u64) -> Result<u64, OrderExecutionError> {
        let ahead = Duration::from_nanos(at_ns.saturating_sub(unix_time_ns()));
        if ahead > AHEAD_MAX {
            return Err(OrderExecutionError::StartTooFar {
                ahead,
                limit: AHEAD_MAX,
            });
        }
        loop {
            let left = Duration::from_nanos(at_ns.saturating_sub(unix_time_ns()));
            if left.is_zero() {
                return Ok(unix_time_ns().saturating_sub(at_ns));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped.into());
            }
            std::thread::sleep(left.min(PAUSE));
        }
    }
}

/// Parses and checks a document again, because an agent does not trust its controller.
fn parse_untrusted_document(text: &str) -> Result<ExperimentDocument, OrderExecutionError> {
    let document = ExperimentDocument::parse_toml(text).map_err(OrderExecutionError::Document)?;
    match check_document(text, &document).first() {
        Some(fault) => Err(OrderExecutionError::Document(fault.clone())),
        None => Ok(document),
    }
}
