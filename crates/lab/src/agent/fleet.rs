//! The agents of an experiment: discovery, clocks, and orders.

use super::clock_offset::{ClockOffset, RoundTrip};
use super::errors::{BusError, FleetError, OrderError};
use super::nats_connection::{NatsConnection, NatsSettings};
use super::protocol::{
    AGENTS_MAX, AgentIdentity, AgentOrder, AgentReply, BEAT, LOST, OrderMessage,
    decode_agent_identity, decode_message, encode_message, unix_time_ns,
};
use crate::experiment::MachineDescription;
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// Time limit for replies to a roll call.
const ROLL: Duration = Duration::from_millis(500);
/// Maximum time to wait until the required number of agents has joined.
const MUSTER: Duration = Duration::from_secs(30);
/// Number of round trips that measure an agent's clock. Only the shortest round trip is used.
const TRIPS: usize = 9;
/// Time limit for short orders. For `WarmUp` and `Measure`, this time is added to the time limits
/// of the sinks.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// All agents that serve an experiment. Dropping this value releases the agents.
pub(crate) struct AgentFleet {
    bus: NatsConnection,
    session: String,
    /// Minimum number of agents.
    wanted: usize,
    /// Identifiers of the agents that joined for the previous run. When all these agents have
    /// responded and no further agent is required, the roll call ends early.
    known: Mutex<BTreeSet<String>>,
    machines: Mutex<DescribedMachines>,
    beats: Heartbeats,
    /// Whether any agent has been lost. Further runs do not wait for lost agents.
    lost_any: AtomicBool,
    handle: Handle,
    _end: oneshot::Sender<()>,
}

/// Descriptions of the agents' machines.
#[derive(Default)]
struct DescribedMachines {
    /// Identifiers of the agents that have described their machine.
    described: BTreeSet<String>,
    /// Descriptions that `take_new_descriptions` has not returned yet.
    new: Vec<MachineDescription>,
}

/// Time of the last heartbeat of each agent.
#[derive(Clone, Default)]
struct Heartbeats(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Heartbeats {
    fn lock_times(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_lost(&self, id: &str) -> bool {
        self.lock_times()
            .get(id)
            .is_none_or(|last| last.elapsed() > LOST)
    }
}

/// The agents that have responded to a roll call.
struct RollCall {
    present: Vec<AgentIdentity>,
    /// Identifiers of the known agents that have not responded yet.
    missing: BTreeSet<String>,
    /// Number of agents at which the roll call may end early. `None` if no agent is known.
    enough: Option<usize>,
}

impl RollCall {
    fn new(known: BTreeSet<String>, wanted: usize) -> RollCall {
        RollCall {
            present: Vec::new(),
            enough: (!known.is_empty()).then_some(wanted),
            missing: known,
        }
    }

    fn add_agent(&mut self, who: AgentIdentity) {
        self.missing.remove(&who.id);
        self.present.push(who);
    }

    /// Returns whether the roll call ends before its time limit, because all known agents have
    /// responded and no further agent is required, or because there are too many agents.
    fn is_complete(&self) -> bool {
        let is_enough = self.enough.is_some_and(|n| self.present.len() >= n);
        self.present.len() > AGENTS_MAX || (is_enough && self.missing.is_empty())
    }
}

/// The agents that were lost while several orders were in progress.
#[derive(Default)]
struct LostAgents(RefCell<Vec<AgentIdentity>>);

impl LostAgents {
    /// Records the agent as lost if its reply is the error [`OrderError::Lost`]. Returns the reply.
    fn record_loss_from_reply(
        &self,
        who: &AgentIdentity,
        reply: Result<AgentReply, OrderError>,
    ) -> Result<AgentReply, OrderError> {
        if let Err(OrderError::Lost(_)) = &reply {
            self.0.borrow_mut().push(who.clone());
        }
        reply
    }

    /// Waits until an agent is lost, and returns the agent's name.
    async fn wait_for_loss(&self) -> String {
        loop {
            let first = self.0.borrow().first().map(|who| who.name.clone());
            if let Some(name) = first {
                return name;
            }
            sleep(BEAT / 5).await;
        }
    }
}

impl AgentFleet {
    /// Connects to the NATS server. Does not contact any agent yet.
    ///
    /// # Errors
    /// The NATS server is unreachable.
    pub(crate) fn connect_to_nats(nats: &NatsSettings) -> Result<AgentFleet, BusError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime: Runtime = runtime.map_err(BusError::Runtime)?;
        let handle = runtime.handle().clone();
        let bus = runtime.block_on(nats.connect("headwater lab run"))?;
        // Inbox names are random, so that no two controllers have the same session.
        let session = bus.client.new_inbox().replace(['.', '_'], "");
        let beats = Heartbeats::default();
        let (end, ended) = oneshot::channel();
        let listening = runtime.block_on(bus.subscribe(bus.heartbeat_subject(&session)))?;
        let (heart, alive, name) = (bus.clone(), beats.clone(), session.clone());
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = ended => {}
                    () = send_pulses(&heart, &name) => {}
                    () = receive_heartbeats(listening, &alive) => {}
                }
            });
        });
        Ok(AgentFleet {
            bus,
            session,
            wanted: nats.agents.clamp(1, AGENTS_MAX),
            known: Mutex::default(),
            machines: Mutex::default(),
            beats,
            lost_any: AtomicBool::new(false),
            handle,
            _end: end,
        })
    }

    /// Returns all free agents with their clock offsets, sorted by name. If too few agents have
    /// joined, waits for more agents. Does not wait for lost agents, because they would delay each
    /// remaining run.
    ///
    /// # Errors
    /// There are too few agents, two agents have the same name, or an agent has another version
    /// than this program.
    pub(super) fn gather_agents(
        &self,
        stop: &AtomicBool,
    ) -> Result<Vec<(AgentIdentity, ClockOffset)>, FleetError> {
        let started = Instant::now();
        loop {
            let mut present = self.handle.block_on(self.call_roll())?;
            present.sort_by(|a, b| a.name.cmp(&b.name));
            if let Some(twice) = present.windows(2).find(|two| two[0].name == two[1].name) {
                return Err(FleetError::DuplicateName(twice[0].name.clone()));
            }
            if let Some(other) = present
                .iter()
                .find(|who| who.version != env!("CARGO_PKG_VERSION"))
            {
                return Err(FleetError::Version {
                    agent: other.name.clone(),
                    theirs: other.version.clone(),
                    ours: env!("CARGO_PKG_VERSION"),
                });
            }
            let mut unavailable: Vec<String> = present.iter().map(|who| who.name.clone()).collect();
            let joined = self.handle.block_on(join_all(
                present.into_iter().map(|who| self.join_agent(who, stop)),
            ));
            let joined: Vec<(AgentIdentity, ClockOffset)> = joined.into_iter().flatten().collect();
            if joined.len() >= self.wanted {
                *self.lock_known_agents() = joined.iter().map(|(who, _)| who.id.clone()).collect();
                return Ok(joined);
            }
            // After a loss, waits only for known agents that have not joined yet, because they may
            // be slow. Lost agents are no longer in the list of known agents.
            let lost_any = self.lost_any.load(Ordering::Relaxed);
            let joined_all = self
                .lock_known_agents()
                .iter()
                .all(|id| joined.iter().any(|(who, _)| who.id == *id));
            let hopeless = stop.load(Ordering::Relaxed) || (lost_any && joined_all);
            if hopeless || started.elapsed() > MUSTER {
                let available: Vec<String> = joined.into_iter().map(|(who, _)| who.name).collect();
                unavailable.retain(|name| !available.contains(name));
                return Err(FleetError::TooFew {
                    required: self.wanted,
                    available,
                    unavailable,
                });
            }
        }
    }

    fn lock_known_agents(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the machine descriptions that are still missing.
    ///
    /// # Errors
    /// The error of the first agent that does not describe its machine.
    pub(super) fn request_machine_descriptions(
        &self,
        agents: &[&AgentIdentity],
        (scale, versions): (Option<&str>, &BTreeMap<String, String>),
        stop: &AtomicBool,
    ) -> Result<(), OrderError> {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unknown = agents.to_vec();
        unknown.retain(|who| !machines.described.contains(&who.id));
        let order = || AgentOrder::Machine {
            versions: versions.clone(),
        };
        let orders = unknown.iter().map(|who| (*who, order())).collect();
        for (who, reply) in unknown
            .iter()
            .zip(self.send_orders_concurrently(orders, SOON, stop))
        {
            if let AgentReply::Machine(machine) = reply? {
                machines.described.insert(who.id.clone());
                machines.new.push(MachineDescription {
                    agent: Some(who.name.clone()),
                    scale: scale.map(str::to_owned),
                    ..*machine
                });
            }
        }
        Ok(())
    }

    /// Returns the machine descriptions that have arrived since the last call.
    pub(super) fn take_new_descriptions(&self) -> Vec<MachineDescription> {
        let machines = self.machines.lock();
        std::mem::take(&mut machines.unwrap_or_else(PoisonError::into_inner).new)
    }

    async fn call_roll(&self) -> Result<Vec<AgentIdentity>, FleetError> {
        let inbox = self.bus.client.new_inbox();
        let mut replies = self.bus.subscribe(inbox.clone()).await?;
        let published = self
            .bus
            .client
            .publish_with_reply(self.bus.roll_call_subject(), inbox, "".into())
            .await;
        published.map_err(BusError::Publish)?;
        let mut roll = RollCall::new(self.lock_known_agents().clone(), self.wanted);
        let all = async {
            while let Some(message) = replies.next().await {
                let Some(who) = decode_agent_identity(&message.payload) else {
                    continue;
                };
                roll.add_agent(who);
                if roll.is_complete() {
                    break;
                }
            }
        };
        // Treats agents that do not respond within `ROLL` as absent.
        let _ = timeout(ROLL, all).await;
        match roll.present.len() > AGENTS_MAX {
            true => Err(FleetError::TooMany),
            false => Ok(roll.present),
        }
    }

    /// Makes an agent join the session, and measures its clock. Returns `None` if the agent is busy
    /// or gone.
    async fn join_agent(
        &self,
        who: AgentIdentity,
        stop: &AtomicBool,
    ) -> Option<(AgentIdentity, ClockOffset)> {
        self.beats
            .lock_times()
            .insert(who.id.clone(), Instant::now());
        let joined = self.send_order(&who, AgentOrder::Join, SOON, stop).await;
        let Ok(AgentReply::Done) = joined else {
            return None;
        };
        let mut trips = Vec::new();
        for _ in 0..TRIPS {
            let sent_ns = unix_time_ns();
            let reply = self.send_order(&who, AgentOrder::Clock, SOON, stop).await;
            let Ok(AgentReply::Clock(theirs_ns)) = reply else {
                return None;
            };
            let answered_ns = unix_time_ns();
            trips.push(RoundTrip {
                sent_ns,
                theirs_ns,
                answered_ns,
            });
        }
        ClockOffset::estimate_clock_offset(&trips).map(|offset| (who, offset))
    }

    /// Sends several orders concurrently. The replies have the same positions as their orders. If
    /// an agent is lost, the other orders fail immediately with the same error. However, the
    /// function still waits for the replies to `TakeAway` orders, because agents must execute
    /// `TakeAway` before the next run.
    pub(super) fn send_orders_concurrently(
        &self,
        orders: Vec<(&AgentIdentity, AgentOrder)>,
        within: Duration,
        stop: &AtomicBool,
    ) -> Vec<Result<AgentReply, OrderError>> {
        let lost = LostAgents::default();
        let all = orders.into_iter().map(|(who, order)| {
            let removes = matches!(order, AgentOrder::TakeAway);
            let (sent, lost) = (self.send_order(who, order, within, stop), &lost);
            async move {
                tokio::select! {
                    reply = sent => lost.record_loss_from_reply(who, reply),
                    agent = lost.wait_for_loss(), if !removes => Err(OrderError::Lost(agent)),
                }
            }
        });
        let replies = self.handle.block_on(join_all(all));
        for who in lost.0.take() {
            self.lost_any.store(true, Ordering::Relaxed);
            self.lock_known_agents().remove(&who.id);
        }
        replies
    }

    /// Sends an order and waits for the reply.
    async fn send_order(
        &self,
        who: &AgentIdentity,
        order: AgentOrder,
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<AgentReply, OrderError> {
        let order_message = OrderMessage {
            session: self.session.clone(),
            order,
        };
        let agent = || who.name.clone();
        let message = |source| OrderError::Message {
            agent: agent(),
            source,
        };
        let bytes = encode_message(&order_message).map_err(message)?;
        let request = async_nats::Request::new()
            .payload(bytes.into())
            .timeout(None);
        let mut reply = std::pin::pin!(
            self.bus
                .client
                .send_request(self.bus.order_subject(&who.id), request)
        );
        let started = Instant::now();
        loop {
            tokio::select! {
                message_received = &mut reply => {
                    let lost = |_| OrderError::Lost(agent());
                    let reply = decode_message(&message_received.map_err(lost)?.payload);
                    return match reply.map_err(message)? {
                        AgentReply::Failed(reason) => Err(OrderError::Failed { agent: agent(), reason }),
                        reply => Ok(reply),
                    };
                }
                () = sleep(BEAT / 5) => {}
            }
            if self.beats.is_lost(&who.id) {
                return Err(OrderError::Lost(agent()));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(OrderError::Stopped);
            }
            if started.elapsed() > within {
                return Err(OrderError::Timeout {
                    agent: agent(),
                    within,
                });
            }
        }
    }
}

impl Drop for AgentFleet {
    fn drop(&mut self) {
        let joined: Vec<String> = self.beats.lock_times().keys().cloned().collect();
        let order = AgentOrder::Leave;
        let order_message = OrderMessage {
            session: self.session.clone(),
            order,
        };
        let bytes = encode_message(&order_message).unwrap_or_default();
        self.handle.block_on(async {
            for id in joined {
                self.bus
                    .publish_unacknowledged(self.bus.order_subject(&id), bytes.clone())
                    .await;
            }
            // Without the flush, messages may still be in the client's buffer when this process
            // exits.
            let _ = timeout(SOON, self.bus.client.flush()).await;
        });
    }
}

/// Announces periodically that this session is alive.
async fn send_pulses(bus: &NatsConnection, session: &str) {
    loop {
        bus.publish_unacknowledged(bus.pulse_subject(), session.as_bytes().to_vec())
            .await;
        sleep(BEAT).await;
    }
}

/// Records the time of each agent's last heartbeat.
async fn receive_heartbeats(mut beats: async_nats::Subscriber, times: &Heartbeats) {
    while let Some(message) = beats.next().await {
        let id = String::from_utf8_lossy(&message.payload);
        // Ignores agents that have not joined, so that such agents cannot fill the list.
        if let Some(last) = times.lock_times().get_mut(id.as_ref()) {
            *last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str) -> AgentIdentity {
        AgentIdentity {
            id: name.into(),
            name: name.into(),
            labels: Vec::new(),
            address: "10.0.0.1".into(),
            version: "1".into(),
        }
    }

    #[test]
    fn a_roll_call_with_too_few_agents_waits_for_agents_that_started_later() {
        // A third agent was lost, so two agents are known and three are required.
        let known = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
        let mut roll = RollCall::new(known.clone(), 3);
        roll.add_agent(identity("one"));
        roll.add_agent(identity("two"));
        assert!(!roll.is_complete());
        roll.add_agent(identity("late"));
        assert!(roll.is_complete());
        let mut sufficient = RollCall::new(known, 2);
        for (name, is_complete) in [("one", false), ("late", false), ("two", true)] {
            sufficient.add_agent(identity(name));
            assert_eq!(sufficient.is_complete(), is_complete, "{name}");
        }
        // While no agent is known, the roll call finds all agents that respond in time.
        let mut first = RollCall::new(BTreeSet::new(), 1);
        first.add_agent(identity("one"));
        assert!(!first.is_complete());
    }
}
