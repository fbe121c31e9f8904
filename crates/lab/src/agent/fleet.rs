//! The agents of an experiment: who is there, what time they have, what they answer.

use super::bus::{Bus, Meeting};
use super::clock::{Offset, Trip};
use super::protocol::{AGENTS_MAX, Answer, BEAT, LOST, Letter, Order, Who, now_ns, read, write};
use crate::experiment::Machine;
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// How long agents have to say that they are there.
const ROLL: Duration = Duration::from_millis(500);
/// How long enough of them are waited for.
const MUSTER: Duration = Duration::from_secs(30);
/// Round trips of which the shortest tells a clock.
const TRIPS: usize = 9;
/// How long an answer that needs no work may take.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// All agents that serve an experiment. When dropped it lets them go.
pub(crate) struct Fleet {
    bus: Bus,
    session: String,
    /// At least so many are waited for.
    wanted: usize,
    /// Those that joined before, by id: when they have answered, nobody else is waited for.
    known: Mutex<BTreeSet<String>>,
    machines: Mutex<Machines>,
    beats: Beats,
    handle: Handle,
    _end: oneshot::Sender<()>,
}

/// What agents run on.
#[derive(Default)]
struct Machines {
    /// The agents that have said it, by id.
    told: BTreeSet<String>,
    /// What nobody has taken yet.
    new: Vec<Machine>,
}

/// When each agent was last heard.
#[derive(Clone, Default)]
struct Beats(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Beats {
    fn heard(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self, id: &str) -> bool {
        self.heard()
            .get(id)
            .is_none_or(|last| last.elapsed() > LOST)
    }
}

/// Why an agent has not done what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It was not heard for [`LOST`], by name.
    Lost(String),
    /// It says why, or we were told to stop.
    Failed(String),
}

impl Trouble {
    pub(super) fn said(self) -> String {
        match self {
            Trouble::Lost(name) => format!("agent {name} was lost"),
            Trouble::Failed(what) => what,
        }
    }
}

impl Fleet {
    /// Connects; nobody is asked yet.
    ///
    /// # Errors
    /// Where the server cannot be reached.
    pub(crate) fn join(meeting: &Meeting) -> Result<Fleet, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime: Runtime = runtime.map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        let bus = runtime.block_on(meeting.join("headwater lab run"))?;
        // Nobody can guess it who may not listen.
        let session = bus.client.new_inbox().replace(['.', '_'], "");
        let beats = Beats::default();
        let (end, ended) = oneshot::channel();
        let listening = runtime.block_on(bus.subscribe(bus.beats(&session)))?;
        let (heart, alive, name) = (bus.clone(), beats.clone(), session.clone());
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = ended => {}
                    () = pulse(&heart, &name) => {}
                    () = listen(listening, &alive) => {}
                }
            });
        });
        Ok(Fleet {
            bus,
            session,
            wanted: meeting.agents.clamp(1, AGENTS_MAX),
            known: Mutex::default(),
            machines: Mutex::default(),
            beats,
            handle,
            _end: end,
        })
    }

    /// Everyone who is there and free, by name, with their clocks.
    ///
    /// # Errors
    /// That they are too few, two have one name, or one has another version than this program.
    pub(super) fn muster(&self, stop: &AtomicBool) -> Result<Vec<(Who, Offset)>, String> {
        let began = Instant::now();
        loop {
            let mut there = self.handle.block_on(self.roll())?;
            there.sort_by(|a, b| a.name.cmp(&b.name));
            if let Some(twice) = there.windows(2).find(|two| two[0].name == two[1].name) {
                return Err(format!(
                    "two agents are named {}: --name tells them apart",
                    twice[0].name
                ));
            }
            if let Some(other) = there
                .iter()
                .find(|who| who.version != env!("CARGO_PKG_VERSION"))
            {
                let own = env!("CARGO_PKG_VERSION");
                return Err(format!(
                    "agent {} is of version {}, not {own}",
                    other.name, other.version
                ));
            }
            let joined = self.handle.block_on(join_all(
                there.into_iter().map(|who| self.enlist(who, stop)),
            ));
            let joined: Vec<(Who, Offset)> = joined.into_iter().flatten().collect();
            if joined.len() >= self.wanted {
                *self.known() = joined.iter().map(|(who, _)| who.id.clone()).collect();
                return Ok(joined);
            }
            if stop.load(Ordering::Relaxed) || began.elapsed() > MUSTER {
                let (there, wanted) = (joined.len(), self.wanted);
                return Err(format!(
                    "{there} agents are there and free; at least {wanted} are wanted"
                ));
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks those agents for their machines that have not said it yet.
    ///
    /// # Errors
    /// Who did not answer.
    pub(super) fn describe(
        &self,
        agents: &[&Who],
        (scale, versions): (Option<&str>, &BTreeMap<String, String>),
        stop: &AtomicBool,
    ) -> Result<(), Trouble> {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unknown = agents.to_vec();
        unknown.retain(|who| !machines.told.contains(&who.id));
        let order = || Order::Machine {
            versions: versions.clone(),
        };
        let orders = unknown.iter().map(|who| (*who, order())).collect();
        for (who, answer) in unknown.iter().zip(self.ask(orders, SOON, stop)) {
            if let Answer::Machine(machine) = answer? {
                machines.told.insert(who.id.clone());
                machines.new.push(Machine {
                    agent: Some(who.name.clone()),
                    scale: scale.map(str::to_owned),
                    ..*machine
                });
            }
        }
        Ok(())
    }

    /// The machines that were told of since this was asked last.
    pub(crate) fn new_machines(&self) -> Vec<Machine> {
        let machines = self.machines.lock();
        std::mem::take(&mut machines.unwrap_or_else(PoisonError::into_inner).new)
    }

    async fn roll(&self) -> Result<Vec<Who>, String> {
        let inbox = self.bus.client.new_inbox();
        let mut answers = self.bus.subscribe(inbox.clone()).await?;
        let asked = self
            .bus
            .client
            .publish_with_reply(self.bus.roll(), inbox, "".into())
            .await;
        asked.map_err(|error| error.to_string())?;
        let (mut there, mut missing) = (Vec::new(), self.known().clone());
        let any_known = !missing.is_empty();
        let all = async {
            while let Some(message) = answers.next().await {
                let Ok(who) = read::<Who>(&message.payload) else {
                    continue;
                };
                missing.remove(&who.id);
                there.push(who);
                if there.len() > AGENTS_MAX || (any_known && missing.is_empty()) {
                    break;
                }
            }
        };
        // Whoever has not answered until then is not there.
        let _ = timeout(ROLL, all).await;
        match there.len() > AGENTS_MAX {
            true => Err(format!("more than {AGENTS_MAX} agents are there")),
            false => Ok(there),
        }
    }

    /// An agent that joins, and its clock; none where it serves another or is gone.
    async fn enlist(&self, who: Who, stop: &AtomicBool) -> Option<(Who, Offset)> {
        self.beats.heard().insert(who.id.clone(), Instant::now());
        let joined = self.order(&who, Order::Join, SOON, stop).await;
        let Ok(Answer::Done) = joined else {
            return None;
        };
        let mut trips = Vec::new();
        for _ in 0..TRIPS {
            let sent_ns = now_ns();
            let answer = self.order(&who, Order::Clock, SOON, stop).await;
            let Ok(Answer::Clock(theirs_ns)) = answer else {
                return None;
            };
            let answered_ns = now_ns();
            trips.push(Trip {
                sent_ns,
                theirs_ns,
                answered_ns,
            });
        }
        Offset::of(&trips).map(|offset| (who, offset))
    }

    /// Orders to several at once; what each answers, in their order.
    pub(super) fn ask(
        &self,
        orders: Vec<(&Who, Order)>,
        within: Duration,
        stop: &AtomicBool,
    ) -> Vec<Result<Answer, Trouble>> {
        let all = orders
            .into_iter()
            .map(|(who, order)| self.order(who, order, within, stop));
        self.handle.block_on(join_all(all))
    }

    /// An order and its answer.
    async fn order(
        &self,
        who: &Who,
        order: Order,
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<Answer, Trouble> {
        let letter = Letter {
            session: self.session.clone(),
            order,
        };
        let bytes = write(&letter).map_err(Trouble::Failed)?;
        let request = async_nats::Request::new()
            .payload(bytes.into())
            .timeout(None);
        let mut answer = std::pin::pin!(
            self.bus
                .client
                .send_request(self.bus.orders(&who.id), request)
        );
        let began = Instant::now();
        let told = |what: &str| Trouble::Failed(format!("agent {}: {what}", who.name));
        loop {
            tokio::select! {
                message = &mut answer => {
                    let lost = |_| Trouble::Lost(who.name.clone());
                    let answer = read(&message.map_err(lost)?.payload);
                    return match answer.map_err(|what| told(&what))? {
                        Answer::Failed(what) => Err(told(&what)),
                        answer => Ok(answer),
                    };
                }
                () = sleep(BEAT / 5) => {}
            }
            if self.beats.lost(&who.id) {
                return Err(Trouble::Lost(who.name.clone()));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Trouble::Failed("stopped".into()));
            }
            if began.elapsed() > within {
                return Err(told(&format!("no answer within {within:?}")));
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let heard: Vec<String> = self.beats.heard().keys().cloned().collect();
        let order = Order::Leave;
        let letter = Letter {
            session: self.session.clone(),
            order,
        };
        let bytes = write(&letter).unwrap_or_default();
        self.handle.block_on(async {
            for id in heard {
                self.bus.say(self.bus.orders(&id), bytes.clone()).await;
            }
            // Else it may still lie in our own buffer when this process ends.
            let _ = timeout(SOON, self.bus.client.flush()).await;
        });
    }
}

/// Says again and again that this session lives.
async fn pulse(bus: &Bus, session: &str) {
    loop {
        bus.say(bus.pulse(), session.as_bytes().to_vec()).await;
        sleep(BEAT).await;
    }
}

/// Hears that agents live.
async fn listen(mut beats: async_nats::Subscriber, heard: &Beats) {
    while let Some(message) = beats.next().await {
        let id = String::from_utf8_lossy(&message.payload);
        // Only those that joined: others cannot fill the list.
        if let Some(last) = heard.heard().get_mut(id.as_ref()) {
            *last = Instant::now();
        }
    }
}
