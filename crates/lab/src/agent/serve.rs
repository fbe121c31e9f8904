//! An agent: hears who is there, serves one session at a time, and leaves nothing behind.

use super::bus::{Bus, Meeting};
use super::protocol::{Answer, BEAT, LOST, Letter, Order, Who, now_ns, read, write};
use super::work::{Errand, Work};
use crate::link::Guard;
use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::interval;

/// Orders that may wait while another is carried out.
const WAITING: usize = 16;

/// What an agent says of itself.
pub(crate) struct Myself {
    pub(crate) name: String,
    pub(crate) labels: Vec<String>,
    /// Where others reach what listens here.
    pub(crate) address: String,
    /// Media that documents name by paths is here.
    pub(crate) base: PathBuf,
}

/// An agent at work.
struct Agent {
    bus: Bus,
    who: Who,
    base: PathBuf,
    folder: PathBuf,
    session: Option<Session>,
    /// That of a session that has ended, as long as it takes away what it had.
    leaving: Option<JoinHandle<()>>,
    answers: UnboundedSender<(String, Answer)>,
}

/// Whoever runs an experiment, and the thread that works for it.
struct Session {
    id: String,
    orders: SyncSender<Errand>,
    stop: Arc<AtomicBool>,
    heard: Instant,
    thread: JoinHandle<()>,
}

/// Serves until SIGTERM or Ctrl-C. `ready` is told when orders can come.
///
/// # Errors
/// A sentence: the server cannot be reached, or no folder be made.
pub(crate) fn serve(meeting: &Meeting, myself: Myself, ready: &dyn Fn(&str)) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let bus = runtime.block_on(meeting.join(&format!("headwater lab agent {}", myself.name)))?;
    let id = bus.client.new_inbox().replace(['.', '_'], "");
    let folder = std::env::temp_dir().join(format!("headwater-agent-{id}"));
    let _guard = own(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (answers, mut outbox) = unbounded_channel();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (name, labels, address) = (myself.name, myself.labels, myself.address);
    let who = Who {
        id,
        name,
        labels,
        address,
        version,
    };
    let mut agent = Agent {
        bus,
        who,
        base: myself.base,
        folder,
        session: None,
        leaving: None,
        answers,
    };
    let ended = runtime.block_on(async {
        let (roll, orders) = (agent.bus.roll(), agent.bus.orders(&agent.who.id));
        let mut ears = Ears {
            roll: agent.bus.subscribe(roll).await?,
            orders: agent.bus.subscribe(orders).await?,
            pulse: agent.bus.subscribe(agent.bus.pulse()).await?,
        };
        let failed = |error: std::io::Error| error.to_string();
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        agent
            .bus
            .client
            .flush()
            .await
            .map_err(|error| error.to_string())?;
        ready(&agent.who.name);
        let mut beat = interval(BEAT);
        loop {
            tokio::select! {
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                Some(message) = ears.roll.next() => agent.called(message).await,
                Some(message) = ears.orders.next() => agent.ordered(&message).await,
                Some(message) = ears.pulse.next() => agent.heard(&message),
                Some((reply, answer)) = outbox.recv() => agent.answer(reply, &answer).await,
                _ = beat.tick() => agent.beat().await,
            }
        }
    });
    agent.end_session();
    if let Some(leaving) = agent.leaving.take() {
        let _ = leaving.join();
    }
    ended
}

/// What it listens to.
struct Ears {
    roll: Subscriber,
    orders: Subscriber,
    pulse: Subscriber,
}

/// A folder that nobody else may read, and that goes with this process however it ends.
fn own(folder: &Path) -> std::io::Result<Guard> {
    let mut guard = Guard::start()?;
    guard.remove(folder)?;
    DirBuilder::new().mode(0o700).create(folder)?;
    Ok(guard)
}

impl Agent {
    /// Says that it is there.
    async fn called(&self, message: Message) {
        if let (Some(reply), Ok(bytes)) = (message.reply, write(&self.who)) {
            self.bus.say(reply.to_string(), bytes).await;
        }
    }

    async fn ordered(&mut self, message: &Message) {
        let letter = read::<Letter>(&message.payload);
        let reply = message
            .reply
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let answer = match letter {
            Err(what) => Some(Answer::Failed(what)),
            Ok(letter) => self.obey(letter, &reply),
        };
        if let Some(answer) = answer {
            self.answer(reply, &answer).await;
        }
    }

    /// What can be answered at once is; the rest goes to the session's thread.
    fn obey(&mut self, letter: Letter, reply: &str) -> Option<Answer> {
        let known = self
            .session
            .as_ref()
            .is_some_and(|session| session.id == letter.session);
        match letter.order {
            Order::Clock => return Some(Answer::Clock(now_ns())),
            Order::Join if known => {
                self.begin_anew();
                return Some(Answer::Done);
            }
            Order::Join => return Some(self.join(letter.session)),
            Order::Leave if known => {
                self.end_session();
                return Some(Answer::Done);
            }
            _ => {}
        }
        let Some(session) = self.session.as_mut().filter(|_| known) else {
            return Some(Answer::Failed("it serves another session, or none".into()));
        };
        session.heard = Instant::now();
        if let Order::TakeAway = letter.order {
            // Whatever is under way: it is not wanted any more.
            session.stop.store(true, Ordering::Relaxed);
        }
        let order = letter.order;
        let errand = Errand {
            order,
            reply: reply.to_owned(),
        };
        let full = session.orders.try_send(errand).is_err();
        full.then(|| Answer::Failed(format!("more than {WAITING} orders wait")))
    }

    /// A session joins before each run: what an earlier one may have left is taken away.
    fn begin_anew(&mut self) {
        if let Some(session) = &mut self.session {
            session.heard = Instant::now();
            session.stop.store(true, Ordering::Relaxed);
            let (order, reply) = (Order::TakeAway, String::new());
            let _ = session.orders.try_send(Errand { order, reply });
        }
    }

    fn join(&mut self, id: String) -> Answer {
        let busy = self
            .leaving
            .as_ref()
            .is_some_and(|leaving| !leaving.is_finished());
        if busy || self.session.is_some() {
            return Answer::Busy;
        }
        let (orders, inbox) = sync_channel(WAITING);
        let (stop, answers) = (Arc::new(AtomicBool::new(false)), self.answers.clone());
        let work = Work {
            base: self.base.clone(),
            folder: self.folder.join("session"),
            stop: Arc::clone(&stop),
            answer: Box::new(move |reply, answer| {
                let _ = answers.send((reply, answer));
            }),
        };
        let thread = std::thread::spawn(move || work.go(&inbox));
        let heard = Instant::now();
        self.session = Some(Session {
            id,
            orders,
            stop,
            heard,
            thread,
        });
        Answer::Done
    }

    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            session.stop.store(true, Ordering::Relaxed);
            drop(session.orders);
            self.leaving = Some(session.thread);
        }
    }

    /// Whoever runs an experiment lives.
    fn heard(&mut self, message: &Message) {
        if let Some(session) = &mut self.session
            && session.id.as_bytes() == message.payload.as_ref()
        {
            session.heard = Instant::now();
        }
    }

    /// Says that it lives; lets go of whoever does not.
    async fn beat(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        if session.heard.elapsed() > LOST {
            self.end_session();
            return;
        }
        let subject = self.bus.beats(&session.id);
        self.bus.say(subject, self.who.id.as_bytes().to_vec()).await;
    }

    async fn answer(&self, reply: String, answer: &Answer) {
        let bytes = write(answer).or_else(|what| write(&Answer::Failed(what)));
        if let (false, Ok(bytes)) = (reply.is_empty(), bytes) {
            self.bus.say(reply, bytes).await;
        }
    }
}
