//! One run on several hosts: each agent does its share, when it is told to.

use super::clock::Offset;
use super::fleet::{Fleet, SOON, Trouble};
use super::protocol::{Answer, Deploy, Order, Who, now_ns};
use super::spread::{Spread, spread};
use crate::experiment::{Measured, Part, Plan, Record, collect, longest, place_of, starting_order};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a source may take to be made.
const MAKING: Duration = Duration::from_secs(3600);
/// How long something may take that starts or ends processes.
const WORK: Duration = Duration::from_secs(90);
/// From the order to measure until it begins: it has to reach everyone before.
const LEAD: Duration = Duration::from_millis(200);

/// A run that is under way.
struct Run<'a> {
    fleet: &'a Fleet,
    plan: &'a Plan,
    text: &'a str,
    agents: Vec<(Who, Offset)>,
    spread: Spread,
    stop: &'a AtomicBool,
}

/// Fills the record in, also with who took part. Whatever was started is gone when this returns, or
/// goes by itself where an agent was lost.
///
/// # Errors
/// Why the run does not count.
pub(crate) fn conduct(
    fleet: &Fleet,
    (plan, text): (&Plan, &str),
    record: &mut Record,
    seed: u64,
    stop: &AtomicBool,
) -> Result<(), String> {
    let agents = fleet.muster(stop)?;
    let whos: Vec<Who> = agents.iter().map(|(who, _)| who.clone()).collect();
    let spread = spread(&plan.document, &whos)?;
    let run = Run {
        fleet,
        plan,
        text,
        agents,
        spread,
        stop,
    };
    run.tell_who(record);
    let measured = run.all(record, seed);
    // Always; those that were lost do it themselves.
    let calm = AtomicBool::new(false);
    let noise = run.each(|_, _| Some(Order::TakeAway), WORK, &calm);
    let mut parts = measured.map_err(Trouble::said)?;
    for answer in noise {
        if let Answer::Noise(noise) = answer.1.map_err(Trouble::said)? {
            parts.push(Measured::noise_of(noise));
        }
    }
    collect(&plan.document, &parts, record)
}

impl Run<'_> {
    fn all(&self, record: &mut Record, seed: u64) -> Result<Vec<Measured>, Trouble> {
        let document = &self.plan.document;
        let shares = self.spread.shares.keys();
        let whos: Vec<&Who> = shares
            .filter_map(|agent| Some(&self.agents.get(*agent)?.0))
            .collect();
        let wanted = (self.plan.scale.as_deref(), &document.versions);
        self.fleet.describe(&whos, wanted, self.stop)?;
        done(self.each(|agent, _| self.sources(agent), MAKING, self.stop))?;
        let deploy = |agent: usize, _: &Who| {
            let share = self.spread.shares.get(&agent)?.clone();
            let (arm, round) = (record.arm.clone(), record.round);
            let text = self.text.to_owned();
            Some(Order::Deploy(Box::new(Deploy {
                text,
                arm,
                round,
                seed,
                share,
            })))
        };
        done(self.each(deploy, WORK, self.stop))?;
        for name in starting_order(document).unwrap_or_default() {
            let function = document.function.get(name);
            let at = function.and_then(|function| place_of(function.at.as_ref()));
            let there = self.spread.at(at);
            let order = |agent, _: &Who| {
                let here = there.contains(&agent);
                here.then(|| Order::Function {
                    name: name.to_owned(),
                })
            };
            done(self.each(order, WORK, self.stop))?;
        }
        for (name, sink) in document.sink.iter().filter(|(_, sink)| sink.warm_up > 0) {
            let there = self.spread.at(place_of(sink.at.as_ref()));
            let order = |agent, _: &Who| {
                let sinks = vec![name.get_ref().clone()];
                there.contains(&agent).then_some(Order::WarmUp { sinks })
            };
            let within = longest(sink).saturating_mul(sink.warm_up) + SOON;
            done(self.each(order, within, self.stop))?;
        }
        self.measure(record)
    }

    /// All sinks, begun at a common time.
    fn measure(&self, record: &mut Record) -> Result<Vec<Measured>, Trouble> {
        let at_ns = now_ns() + LEAD.as_nanos() as u64;
        let order = |agent: usize, _: &Who| {
            let sinks = self.sinks(agent);
            let (_, offset) = self.agents.get(agent)?;
            let at_ns = offset.theirs(at_ns);
            (!sinks.is_empty()).then_some(Order::Measure { sinks, at_ns })
        };
        let sinks = self.plan.document.sink.values();
        let within = sinks.map(longest).max().unwrap_or_default() + SOON;
        let mut parts = Vec::new();
        for (agent, answer) in done(self.each(order, within, self.stop))? {
            if let Answer::Measured(measured, late_ns) = answer {
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
        // Agents with functions alone had nothing to watch them beside.
        done(self.each(|_, _| Some(Order::Look), SOON, self.stop))?;
        Ok(parts)
    }

    /// An order to each agent for which there is one; their answers.
    fn each(
        &self,
        order: impl Fn(usize, &Who) -> Option<Order>,
        within: Duration,
        stop: &AtomicBool,
    ) -> Vec<(usize, Result<Answer, Trouble>)> {
        let shares = self.spread.shares.keys();
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
        let answers = self.fleet.ask(orders, within, stop);
        numbers.into_iter().zip(answers).collect()
    }

    /// Those sources that something at an agent speaks of.
    fn sources(&self, agent: usize) -> Option<Order> {
        let document = &self.plan.document;
        let functions = document.function.values().map(|f| (&f.at, &f.run));
        let runs = functions.chain(document.sink.values().map(|s| (&s.at, &s.run)));
        let here = runs.filter(|(at, _)| self.spread.at(place_of(at.as_ref())).contains(&agent));
        let texts: Vec<&str> = here.map(|(_, run)| run.get_ref().as_str()).collect();
        let names = document.source.keys().map(|name| name.get_ref());
        let spoken = |name: &&String| {
            texts
                .iter()
                .any(|text| text.contains(&format!("{{{name}}}")))
        };
        let names: Vec<String> = names.filter(spoken).cloned().collect();
        let text = self.text.to_owned();
        (!names.is_empty()).then_some(Order::Sources { text, names })
    }

    fn sinks(&self, agent: usize) -> Vec<String> {
        let sinks = self.plan.document.sink.iter();
        let here =
            sinks.filter(|(_, sink)| self.spread.at(place_of(sink.at.as_ref())).contains(&agent));
        here.map(|(name, _)| name.get_ref().clone()).collect()
    }

    /// Who takes part, and what time they have.
    fn tell_who(&self, record: &mut Record) {
        for (agent, share) in &self.spread.shares {
            let Some((who, offset)) = self.agents.get(*agent) else {
                continue;
            };
            let part = Part {
                places: share.places.keys().cloned().collect(),
                clock_us: offset.ns as f64 / 1e3,
                clock_error_us: offset.error_ns as f64 / 1e3,
                began_late_us: 0.0,
            };
            record.agents.insert(who.name.clone(), part);
        }
    }
}

/// What all answered who did what they were told. An agent that was lost is said before what others
/// say because of that.
fn done(answers: Vec<(usize, Result<Answer, Trouble>)>) -> Result<Vec<(usize, Answer)>, Trouble> {
    let (mut well, mut troubles) = (Vec::new(), Vec::new());
    for (agent, answer) in answers {
        match answer {
            Ok(answer) => well.push((agent, answer)),
            Err(trouble) => troubles.push(trouble),
        }
    }
    troubles.sort_by_key(|trouble| matches!(trouble, Trouble::Failed(_)));
    troubles.into_iter().next().map_or(Ok(well), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_lost_is_said_before_what_others_say() {
        let failed = || Err(Trouble::Failed("sink s: exit status: 7".into()));
        let lost = Trouble::Lost("two".into());
        let answers = vec![(0, failed()), (1, Ok(Answer::Done)), (2, Err(lost.clone()))];
        assert_eq!(done(answers).err(), Some(lost));
        let well = done(vec![(3, Ok(Answer::Clock(7)))]).unwrap();
        assert!(matches!(well[..], [(3, Answer::Clock(7))]), "{well:?}");
        assert!(done(vec![(0, failed())]).is_err());
    }
}
