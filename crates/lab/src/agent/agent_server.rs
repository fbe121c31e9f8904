//! An agent replies to roll calls, serves one session at a time, and cleans up after each session.

use super::errors::{AgentStartError, BusError};
use super::nats_connection::{NatsConnection, NatsSettings};
use super::protocol::{
    AgentIdentity, AgentOrder, AgentReply, BEAT, LOST, OrderMessage, decode_message,
    encode_message, unix_time_ns,
};
use super::session_worker::{QueuedOrder, SessionWorker};
use crate::experiment::FileError;
use crate::link::CleanupGuard;
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

/// Maximum number of orders that wait while another order is executed.
const QUEUED_ORDERS_MAX: usize = 16;

/// Settings of an agent.
pub(crate) struct AgentSettings {
    pub(crate) name: String,
    pub(crate) labels: Vec<String>,
    /// Host name or address at which other agents reach this agent.
    pub(crate) address: String,
    /// Base folder of media paths in documents.
    pub(crate) base: PathBuf,
}

/// A running agent.
struct AgentServer {
    bus: NatsConnection,
    who: AgentIdentity,
    base: PathBuf,
    folder: PathBuf,
    session: Option<AgentSession>,
    /// Thread of the last finished session, which may still be cleaning up.
    cleanup_thread: Option<JoinHandle<()>>,
    responses: UnboundedSender<(String, AgentReply)>,
}

/// A session and the thread that executes its orders.
struct AgentSession {
    id: String,
    orders: SyncSender<QueuedOrder>,
    stop: Arc<AtomicBool>,
    last_contact: Instant,
    thread: JoinHandle<()>,
}

/// Serves until SIGTERM or Ctrl-C. Calls `ready` when the agent can receive orders.
///
/// # Errors
/// The NATS server is unreachable, or the agent's temporary folder cannot be created.
pub(crate) fn serve_agent(
    nats: &NatsSettings,
    settings: AgentSettings,
    ready: &dyn Fn(&str),
) -> Result<(), AgentStartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(BusError::Runtime)?;
    let bus = runtime.block_on(nats.connect(&format!("headwater lab agent {}", settings.name)))?;
    let id = bus.client.new_inbox().replace(['.', '_'], "");
    let folder = std::env::temp_dir().join(format!("headwater-agent-{id}"));
    let _guard = create_private_folder(&folder).map_err(|error| FileError::new(&folder, error))?;
    let (responses, mut outbox) = unbounded_channel();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (name, labels, address) = (settings.name, settings.labels, settings.address);
    let who = AgentIdentity {
        id,
        name,
        labels,
        address,
        version,
    };
    let mut agent = AgentServer {
        bus,
        who,
        base: settings.base,
        folder,
        session: None,
        cleanup_thread: None,
        responses,
    };
    let ended = runtime.block_on(async {
        let (roll, orders) = (
            agent.bus.roll_call_subject(),
            agent.bus.order_subject(&agent.who.id),
        );
        let mut subscriptions = AgentSubscriptions {
            roll: agent.bus.subscribe(roll).await?,
            orders: agent.bus.subscribe(orders).await?,
            pulse: agent.bus.subscribe(agent.bus.pulse_subject()).await?,
        };
        let mut interrupt = signal(SignalKind::interrupt()).map_err(AgentStartError::Signals)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(AgentStartError::Signals)?;
        agent.bus.client.flush().await.map_err(BusError::Flush)?;
        ready(&agent.who.name);
        let mut beat = interval(BEAT);
        loop {
            tokio::select! {
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                Some(message) = subscriptions.roll.next() => agent.answer_roll_call(message).await,
                Some(message) = subscriptions.orders.next() => agent.receive_order(&message).await,
                Some(message) = subscriptions.pulse.next() => agent.receive_pulse(&message),
                Some((reply, response)) = outbox.recv() => agent.send_reply(reply, &response).await,
                _ = beat.tick() => agent.send_heartbeat().await,
            }
        }
    });
    agent.end_session();
    if let Some(cleanup_thread) = agent.cleanup_thread.take() {
        let _ = cleanup_thread.join();
    }
    ended
}

/// The NATS subscriptions of an agent.
struct AgentSubscriptions {
    roll: Subscriber,
    orders: Subscriber,
    pulse: Subscriber,
}

/// Creates a folder that only this user can read. Returns a guard that removes the folder, even if
/// this process is killed.
fn create_private_folder(folder: &Path) -> std::io::Result<CleanupGuard> {
    let mut guard = CleanupGuard::start()?;
    guard.delete_at_exit(folder)?;
    DirBuilder::new().mode(0o700).create(folder)?;
    Ok(guard)
}

impl AgentServer {
    /// Replies to a roll call with the agent's identity.
    async fn answer_roll_call(&self, message: Message) {
        if let (Some(reply), Ok(bytes)) = (message.reply, encode_message(&self.who)) {
            self.bus
                .publish_unacknowledged(reply.to_string(), bytes)
                .await;
        }
    }

    async fn receive_order(&mut self, message: &Message) {
        let order_message = decode_message::<OrderMessage>(&message.payload);
        let reply = message
            .reply
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let response = match order_message {
            Err(error) => Some(AgentReply::Failed(error.to_string())),
            Ok(order_message) => self.handle_order(order_message, &reply),
        };
        if let Some(response) = response {
            self.send_reply(reply, &response).await;
        }
    }

    /// Handles an order. Returns the reply, or `None` if the session's thread will send the reply.
    fn handle_order(&mut self, order_message: OrderMessage, reply: &str) -> Option<AgentReply> {
        let known = self
            .session
            .as_ref()
            .is_some_and(|session| session.id == order_message.session);
        match order_message.order {
            AgentOrder::Clock => return Some(AgentReply::Clock(unix_time_ns())),
            AgentOrder::Join if known => {
                self.stop_previous_run();
                return Some(AgentReply::Done);
            }
            AgentOrder::Join => return Some(self.join_session(order_message.session)),
            AgentOrder::Leave if known => {
                self.end_session();
                return Some(AgentReply::Done);
            }
            _ => {}
        }
        let Some(session) = self.session.as_mut().filter(|_| known) else {
            return Some(AgentReply::Failed(
                "the agent does not serve this session".into(),
            ));
        };
        session.last_contact = Instant::now();
        if let AgentOrder::TakeAway = order_message.order {
            // Interrupts the order that the session's thread is executing.
            session.stop.store(true, Ordering::Relaxed);
        }
        let order = order_message.order;
        let queued = QueuedOrder {
            order,
            reply: reply.to_owned(),
        };
        let full = session.orders.try_send(queued).is_err();
        full.then(|| AgentReply::Failed(format!("more than {QUEUED_ORDERS_MAX} orders are queued")))
    }

    /// Handles a repeated `Join`, which the controller sends before each run. Stops the previous
    /// run and removes everything that the previous run deployed.
    fn stop_previous_run(&mut self) {
        if let Some(session) = &mut self.session {
            session.last_contact = Instant::now();
            session.stop.store(true, Ordering::Relaxed);
            let (order, reply) = (AgentOrder::TakeAway, String::new());
            let _ = session.orders.try_send(QueuedOrder { order, reply });
        }
    }

    fn join_session(&mut self, id: String) -> AgentReply {
        let busy = self
            .cleanup_thread
            .as_ref()
            .is_some_and(|cleanup_thread| !cleanup_thread.is_finished());
        if busy || self.session.is_some() {
            return AgentReply::Busy;
        }
        let (orders, inbox) = sync_channel(QUEUED_ORDERS_MAX);
        let (stop, responses) = (Arc::new(AtomicBool::new(false)), self.responses.clone());
        let work = SessionWorker {
            base: self.base.clone(),
            folder: self.folder.join("session"),
            stop: Arc::clone(&stop),
            send_response: Box::new(move |reply, response| {
                let _ = responses.send((reply, response));
            }),
        };
        let thread = std::thread::spawn(move || work.process_orders(&inbox));
        let last_contact = Instant::now();
        self.session = Some(AgentSession {
            id,
            orders,
            stop,
            last_contact,
            thread,
        });
        AgentReply::Done
    }

    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            session.stop.store(true, Ordering::Relaxed);
            drop(session.orders);
            self.cleanup_thread = Some(session.thread);
        }
    }

    /// Records that the controller of the session is alive.
    fn receive_pulse(&mut self, message: &Message) {
        if let Some(session) = &mut self.session
            && session.id.as_bytes() == message.payload.as_ref()
        {
            session.last_contact = Instant::now();
        }
    }

    /// Sends a heartbeat to the controller. If the controller has been silent for longer than
    /// [`LOST`], ends the session instead.
    async fn send_heartbeat(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        if session.last_contact.elapsed() > LOST {
            self.end_session();
            return;
        }
        let subject = self.bus.heartbeat_subject(&session.id);
        self.bus
            .publish_unacknowledged(subject, self.who.id.as_bytes().to_vec())
            .await;
    }

    async fn send_reply(&self, reply: String, response: &AgentReply) {
        let bytes = encode_message(response)
            .or_else(|error| encode_message(&AgentReply::Failed(error.to_string())));
        if let (false, Ok(bytes)) = (reply.is_empty(), bytes) {
            self.bus.publish_unacknowledged(reply, bytes).await;
        }
    }
}
