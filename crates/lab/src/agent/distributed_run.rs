//! Executes one run on several hosts by sending orders to the agents.

use super::clock_offset::ClockOffset;
use super::errors::{FleetError, OrderError};
use super::fleet::{AgentFleet, SOON};
use super::placement::{AgentPlacement, place_on_agents};
use super::protocol::{AgentIdentity, AgentOrder, AgentReply, DeployOrder, unix_time_ns};
use crate::experiment::distributed::{
    PartMeasurements, RemoteExecutor, merge_measurements, place_name, sink_timeout, starting_order,
};
use crate::experiment::{
    AgentRecord, ExperimentJob, MachineDescription, RunError, RunPlan, RunRecord,
};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for preparing the sources.
const MAKING: Duration = Duration::from_secs(3600);
/// Time limit for orders that start or stop processes.
const WORK: Duration = Duration::from_secs(90);
/// Time between sending the `Measure` orders and the common start of the sinks. All agents must
/// receive their orders within this time.
const LEAD: Duration = Duration::from_millis(200);

/// A run in progress.
struct DistributedRun<'a> {
    fleet: &'a AgentFleet,
    plan: &'a RunPlan,
    text: &'a str,
    agents: Vec<(AgentIdentity, ClockOffset)>,
    placement: AgentPlacement,
    stop: &'a AtomicBool,
}

/// Executes a run. Adds the measurements and the participating agents to `record`. Before this
/// function returns, the agents stop everything that the run started. Lost agents stop everything
/// without an order.
///
/// # Errors
/// The run failed or was stopped.
fn execute_on_agents(
    fleet: &AgentFleet,
    (plan, text): (&RunPlan, &str),
    record: &mut RunRecord,
    seed: u64,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let agents = fleet.gather_agents(stop).map_err(into_run_error)?;
    let identities: Vec<AgentIdentity> = agents.iter().map(|(who, _)| who.clone()).collect();
    let placement = place_on_agents(&plan.document, &identities)
        .map_err(|error| into_run_error(error.into()))?;
    let run = DistributedRun {
        fleet,
        plan,
        text,
        agents,
        placement,
        stop,
    };
    run.record_agents(record);
    let measured = run.run_phases(record, seed);
    // Sends `TakeAway` even after a failure or an interrupt. Lost agents clean up without this
    // order.
    let never_stop = AtomicBool::new(false);
    let noise = run.send_orders(|_, _| Some(AgentOrder::TakeAway), WORK, &never_stop);
    let mut parts = measured.map_err(|error| into_run_error(error.into()))?;
    for reply in noise {
        if let AgentReply::MachineNoise(noise) =
            reply.1.map_err(|error| into_run_error(error.into()))?
        {
            parts.push(PartMeasurements::from_noise(noise));
        }
    }
    merge_measurements(&plan.document, &parts, record)
}

impl DistributedRun<'_> {
    fn run_phases(
        &self,
        record: &mut RunRecord,
        seed: u64,
    ) -> Result<Vec<PartMeasurements>, OrderError> {
        let document = &self.plan.document;
        let shares = self.placement.shares.keys();
        let identities: Vec<&AgentIdentity> = shares
            .filter_map(|agent| Some(&self.agents.get(*agent)?.0))
            .collect();
        let wanted = (self.plan.scale.as_deref(), &document.versions);
        self.fleet
            .request_machine_descriptions(&identities, wanted, self.stop)?;
        require_successful_replies(self.send_orders(
            |agent, _| self.create_source_files_order(agent),
            MAKING,
            self.stop,
        ))?;
        let deploy = |agent: usize, _: &AgentIdentity| {
            let share = self.placement.shares.get(&agent)?.clone();
            let (arm, round) = (record.arm.clone(), record.round);
            let text = self.text.to_owned();
            Some(AgentOrder::Deploy(Box::new(DeployOrder {
                text,
                arm,
                round,
                seed,
                share,
            })))
        };
        require_successful_replies(self.send_orders(deploy, WORK, self.stop))?;
        for name in starting_order(document).unwrap_or_default() {
            let function = document.function.get(name);
            let at = function.and_then(|function| place_name(function.at.as_ref()));
            let agents_there = self.placement.agents_at(at);
            let order = |agent, _: &AgentIdentity| {
                let is_there = agents_there.contains(&agent);
                is_there.then(|| AgentOrder::Function {
                    name: name.to_owned(),
                })
            };
            require_successful_replies(self.send_orders(order, WORK, self.stop))?;
        }
        for (name, sink) in document.sink.iter().filter(|(_, sink)| sink.warm_up > 0) {
            let agents_there = self.placement.agents_at(place_name(sink.at.as_ref()));
            let order = |agent, _: &AgentIdentity| {
                let sinks = vec![name.get_ref().clone()];
                agents_there
                    .contains(&agent)
                    .then_some(AgentOrder::WarmUp { sinks })
            };
            let within = sink_timeout(sink).saturating_mul(sink.warm_up) + SOON;
            require_successful_replies(self.send_orders(order, within, self.stop))?;
        }
        self.measure_sinks(record)
    }

    /// Starts all sinks at a common time and collects their measurements.
    fn measure_sinks(&self, record: &mut RunRecord) -> Result<Vec<PartMeasurements>, OrderError> {
        let at_ns = unix_time_ns() + LEAD.as_nanos() as u64;
        let order = |agent: usize, _: &AgentIdentity| {
            let sinks = self.sinks_of_agent(agent);
            let (_, offset) = self.agents.get(agent)?;
            let at_ns = offset.to_remote_time(at_ns);
            (!sinks.is_empty()).then_some(AgentOrder::Measure { sinks, at_ns })
        };
        let sinks = self.plan.document.sink.values();
        let within = sinks.map(sink_timeout).max().unwrap_or_default() + SOON;
        let mut parts = Vec::new();
        for (agent, reply) in
            require_successful_replies(self.send_orders(order, within, self.stop))?
        {
            if let AgentReply::PartMeasurements(measured, late_ns) = reply {
                parts.push(*measured);
                let name = self
                    .agents
                    .get(agent)
                    .map_or("", |(who, _)| who.name.as_str());
                if let Some(part) = record.agents.get_mut(name) {
                    part.began_late_us = late_ns as f64 / 1e3;
                }
            }
        }
        // Agents without sinks have not checked their functions during the measurement, so all
        // agents check their functions now.
        require_successful_replies(self.send_orders(
            |_, _| Some(AgentOrder::Look),
            SOON,
            self.stop,
        ))?;
        Ok(parts)
    }

    /// Calls `order` for each agent, sends the returned orders, and returns the replies. Skips
    /// agents for which `order` returns `None`.
    fn send_orders(
        &self,
        order: impl Fn(usize, &AgentIdentity) -> Option<AgentOrder>,
        within: Duration,
        stop: &AtomicBool,
    ) -> Vec<(usize, Result<AgentReply, OrderError>)> {
        let shares = self.placement.shares.keys();
        let (mut numbers, mut orders) = (Vec::new(), Vec::new());
        for number in shares {
            let Some((who, _)) = self.agents.get(*number) else {
                continue;
            };
            if let Some(order) = order(*number, who) {
                numbers.push(*number);
                orders.push((who, order));
            }
        }
        let replies = self.fleet.send_orders_concurrently(orders, within, stop);
        numbers.into_iter().zip(replies).collect()
    }

    /// Returns the `Sources` order for the sources that this agent's commands use. Returns `None`
    /// if the commands use no sources.
    fn create_source_files_order(&self, agent: usize) -> Option<AgentOrder> {
        let document = &self.plan.document;
        let functions = document.function.values().map(|f| (&f.at, &f.run));
        let runs = functions.chain(document.sink.values().map(|s| (&s.at, &s.run)));
        let here = runs.filter(|(at, _)| {
            self.placement
                .agents_at(place_name(at.as_ref()))
                .contains(&agent)
        });
        let texts: Vec<&str> = here.map(|(_, run)| run.get_ref().as_str()).collect();
        let names = document.source.keys().map(|name| name.get_ref());
        let is_referenced = |name: &&String| {
            texts
                .iter()
                .any(|text| text.contains(&format!("{{{name}}}")))
        };
        let names: Vec<String> = names.filter(is_referenced).cloned().collect();
        let text = self.text.to_owned();
        (!names.is_empty()).then_some(AgentOrder::Sources { text, names })
    }

    fn sinks_of_agent(&self, agent: usize) -> Vec<String> {
        let sinks = self.plan.document.sink.iter();
        let here = sinks.filter(|(_, sink)| {
            self.placement
                .agents_at(place_name(sink.at.as_ref()))
                .contains(&agent)
        });
        here.map(|(name, _)| name.get_ref().clone()).collect()
    }

    /// Records the agents that take part, and the offsets of their clocks.
    fn record_agents(&self, record: &mut RunRecord) {
        for (agent, share) in &self.placement.shares {
            let Some((who, offset)) = self.agents.get(*agent) else {
                continue;
            };
            let part = AgentRecord {
                places: share.places.keys().cloned().collect(),
                clock_us: offset.ns as f64 / 1e3,
                clock_error_us: offset.error_ns as f64 / 1e3,
                began_late_us: 0.0,
            };
            record.agents.insert(who.name.clone(), part);
        }
    }
}

/// Returns the replies if all orders succeeded. Otherwise, returns one of the errors. The loss of
/// an agent has precedence, because the loss may have caused the other errors.
fn require_successful_replies(
    replies: Vec<(usize, Result<AgentReply, OrderError>)>,
) -> Result<Vec<(usize, AgentReply)>, OrderError> {
    let (mut succeeded, mut errors) = (Vec::new(), Vec::new());
    for (agent, reply) in replies {
        match reply {
            Ok(reply) => succeeded.push((agent, reply)),
            Err(error) => errors.push(error),
        }
    }
    errors.sort_by_key(|error| !matches!(error, OrderError::Lost(_)));
    errors.into_iter().next().map_or(Ok(succeeded), Err)
}

fn into_run_error(error: FleetError) -> RunError {
    RunError::Agents(Box::new(error))
}

impl RemoteExecutor for AgentFleet {
    fn execute_run(
        &self,
        job: &ExperimentJob,
        record: &mut RunRecord,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<(), RunError> {
        execute_on_agents(self, (&job.plan, &job.text), record, seed, stop)
    }

    fn take_machine_descriptions(&self) -> Vec<MachineDescription> {
        self.take_new_descriptions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_agent_is_reported_before_other_errors() {
        let failed = || {
            Err(OrderError::Failed {
                agent: "one".into(),
                reason: "sink s: exit status: 7".into(),
            })
        };
        let lost = OrderError::Lost("two".into());
        let replies = vec![(0, failed()), (1, Ok(AgentReply::Done)), (2, Err(lost))];
        let error = require_successful_replies(replies).unwrap_err();
        assert!(matches!(error, OrderError::Lost(_)), "{error}");
        let well = require_successful_replies(vec![(3, Ok(AgentReply::Clock(7)))]).unwrap();
        assert!(matches!(well[..], [(3, AgentReply::Clock(7))]), "{well:?}");
        assert!(require_successful_replies(vec![(0, failed())]).is_err());
    }
}
