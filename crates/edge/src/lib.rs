//! The edge: a cache in front of any HTTP origin, that chooses how to send.
//!
//! The path of a request, as a list:
//!
//! 1. *Receive*: method, target and directives; a request that was here before is refused;
//! 2. *Lookup*: memory, with the `disk` behind it, and what it says about variants; `plan` decides,
//!    with a reason;
//! 3. *Fetch* (`fetch`): one for all who want the same, in a task of its own; `fresh` says
//!    whether the answer may be kept, and for how long; what is too long is kept in `parts`; or
//!    *Pass*: for this client alone;
//! 4. *Deliver* (`deliver`): conditions, ranges, Age, Via, Cache-Status; a body that is still
//!    growing is followed;
//! 5. *Steer* (`steer`): the rules choose congestion control and pace, before the first byte;
//!    `watch` writes down what TCP sees;
//! 6. *End* (`observe`): record and counters.
//!
//! What is *not* here: no media. Any origin is served exactly alike.

mod admin;
mod cmcd;
pub mod config;
mod content;
mod deliver;
mod disk;
mod entry;
mod explain;
mod fetch;
mod filed;
pub mod fresh;
mod headers;
mod key;
mod live;
mod object;
mod observe;
mod origins;
mod parts;
mod plan;
mod purge;
pub mod reason;
mod receive;
mod rules;
mod serve;
mod steer;
mod warm;
mod watch;

pub use serve::{ADMIN, edge, start};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use http::header::{HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use net::{Body, Conn, Error, Shutdown};
use store::Arena;
use store::cache::{Flights, Joined, Memory};

use crate::config::Settings;
use crate::disk::Disk;
use crate::entry::Entry;
use crate::fetch::{Flying, Landed, Told};
use crate::key::Key;
use crate::object::Object;
use crate::observe::{Ended, Observer, Seen};
use crate::origins::{Origins, Question, Reply};
use crate::parts::{Blocks, Missing};
use crate::plan::{Plan, plan};
use crate::reason::{NotKept, Outcome, Passing, Stale, Why};
use crate::receive::{Own, Received};
use crate::steer::Steer;

/// How often a request looks again after what it followed turned out to be of no use to it.
const ROUNDS_MAX: usize = 3;

/// All that answering needs. One a process.
pub(crate) struct Edge {
    settings: Settings,
    memory: Arc<Memory<Key, Entry>>,
    flights: Flights<Key, Landed>,
    flying: Flying,
    arena: Arc<Arena>,
    disk: Arc<Disk>,
    origins: Origins,
    observer: Arc<Observer>,
    steer: Steer,
    shutdown: Shutdown,
    /// This process's name in `CDN-Loop`.
    instance: HeaderValue,
}

/// What a request came to, before it is written down.
type Answered = (Response<Body>, Ended);

impl Edge {
    /// Answers one request, and sees to it that it is recorded.
    pub(crate) async fn answer(
        self: Arc<Edge>,
        worker: usize,
        request: Request<Incoming>,
        conn: Conn,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let seen = self.observer.begin(&parts, &conn);
        let received = Received::new(&parts, &self.settings, &self.instance, conn.client());
        let (response, ended) = match received {
            Ok(received) => self.steered(worker, received, body, &seen, &conn).await,
            Err(Own::Health) => own(receive::short("ok\n")),
            Err(Own::Ready) => own(self.ready()),
            Err(Own::Metrics) => own(self.metrics()),
            Err(Own::Wrong(response)) => own(*response),
        };
        let mut response = response;
        if ended.error.is_some() {
            // So that a page's player is told the status, and not of a failed network.
            net::headers::allow_any_origin(response.headers_mut());
        }
        self.observer.end(seen, response, ended)
    }

    /// Whether more requests are welcome.
    fn ready(&self) -> Response<Body> {
        if !self.shutdown.is_draining() {
            return receive::short("ready\n");
        }
        let error = Error {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..Error::internal("shutting down")
        };
        error.response()
    }

    fn metrics(&self) -> Response<Body> {
        self.disk.show();
        let (bytes, objects) = (self.memory.bytes(), self.memory.len());
        self.observer.show(bytes, objects, self.flights.len())
    }

    /// How many requests came to what, so far.
    fn results(&self) -> BTreeMap<&'static str, u64> {
        self.observer.results()
    }

    /// Relays as the rules say: some are about the request, some about how its answer is sent.
    async fn steered(
        self: &Arc<Edge>,
        worker: usize,
        mut received: Received<'_>,
        body: Incoming,
        seen: &Seen,
        conn: &Conn,
    ) -> Answered {
        let said = self.steer.said(&received);
        let early = self.steer.early(&received, &said, conn);
        if let Some(delay) = early.delay {
            Box::pin(tokio::time::sleep(delay)).await;
        }
        received.ttl = early.ttl;
        early
            .pool
            .into_iter()
            .for_each(|pool| received.turn_to(pool));
        received.touched = conn.touches_bytes(received.version);
        let (mut response, mut ended) = if let Some(status) = early.deny {
            let error = Error::client(status, "a rule denies it");
            let response = deliver::error(&error, Outcome::Denied);
            (response, ended(Outcome::Denied, None, Some(error)))
        } else if received.changes() {
            Box::pin(self.hand_over(worker, &received, body)).await
        } else if early.pass {
            Box::pin(self.pass(worker, &received, Passing::Rule)).await
        } else {
            self.relay(worker, &received).await
        };
        let outcome = ended.outcome;
        ended.rule = self
            .steer
            .late(&received, &said, conn, &mut response, outcome);
        let response = self.steer.watch(seen, conn, response);
        ended.cmcd = said.record();
        (response, ended)
    }

    /// What a hit does not need is boxed: each connection has room for its request's future, all the time.
    async fn relay(self: &Arc<Edge>, worker: usize, received: &Received<'_>) -> Answered {
        // What is kept answers no other method; nor is its body read.
        if ![Method::GET, Method::HEAD].contains(received.method) {
            return Box::pin(self.pass(worker, received, Passing::Method)).await;
        }
        for _ in 0..ROUNDS_MAX {
            let (key, found, variants) = self.recalled(received).await;
            let resident = |object: &Object| object.resident();
            let (method, said) = (received.method, &received.said);
            match plan(
                method,
                said,
                found.as_ref(),
                variants,
                resident,
                Instant::now(),
            ) {
                Plan::Refuse => return own(deliver::refusal()),
                Plan::Pass(why) => return Box::pin(self.pass(worker, received, why)).await,
                Plan::Fetch(why) => {
                    let kept = match found {
                        Some(Entry::Object(object)) => Some(object),
                        _ => None,
                    };
                    if let Some(answered) =
                        Box::pin(self.fetched(worker, received, key, kept, why)).await
                    {
                        return answered;
                    }
                }
                hit => {
                    let Some(Entry::Object(object)) = found else {
                        break;
                    };
                    let outcome = match hit {
                        Plan::Stale(stale) => Outcome::Stale(stale),
                        _ if object.content.file().is_some() => Outcome::Disk,
                        _ => Outcome::Hit,
                    };
                    if outcome == Outcome::Stale(Stale::WhileRevalidate) {
                        self.refresh(worker, received, key.clone(), &object);
                    }
                    let delivered = self.deliver(worker, received, &object, outcome, None);
                    if let Some(answered) = delivered.await {
                        let primary = || Key::from(received.key.as_ref());
                        self.used(&object, || key.unwrap_or_else(primary));
                        return answered;
                    }
                }
            }
        }
        Box::pin(self.pass(worker, received, Passing::NotShared)).await
    }

    /// As [`Edge::lookup`], with what is on disk brought back.
    async fn recalled(&self, received: &Received<'_>) -> (Option<Key>, Option<Entry>, bool) {
        for _ in 0..ROUNDS_MAX {
            let (key, found, variants) = self.lookup(received);
            let name = key.as_ref().map_or(received.key.as_ref(), Key::as_str);
            if found.is_some() || !self.disk.has(name) {
                return (key, found, variants);
            }
            let key = key.unwrap_or_else(|| Key::from(received.key.as_ref()));
            Box::pin(self.recall(&key)).await;
        }
        self.lookup(received)
    }

    /// What is kept for a request, the key it is (or would be) kept by, and whether there are
    /// variants of its URL.
    fn lookup(&self, received: &Received<'_>) -> (Option<Key>, Option<Entry>, bool) {
        match self.memory.get(received.key.as_ref()) {
            Some(Entry::Varies(varies)) => {
                let key = Key::from(received.key.as_ref()).variant(&varies.names, received.headers);
                let found = self.memory.get(&key);
                (Some(key), found, true)
            }
            found => (None, found, false),
        }
    }

    /// Leads or follows a fetch. `None`: look again, it is not for this request.
    async fn fetched(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
        key: Option<Key>,
        kept: Option<Arc<Object>>,
        why: Why,
    ) -> Option<Answered> {
        let primary = Key::from(received.key.as_ref());
        let key = key.unwrap_or_else(|| primary.clone());
        match self.flights.join(&key) {
            Joined::Lead(lead) => {
                // Another one may have landed between our look and our lead.
                if let Some(Entry::Object(now)) = self.memory.get(&key)
                    && kept.as_ref().is_none_or(|kept| !Arc::ptr_eq(kept, &now))
                {
                    return None;
                }
                let ask = received.ask(worker, primary, kept, &self.settings, &self.instance);
                let told = fetch::start(self.clone(), lead, ask).await;
                match told {
                    // The hold goes when the client reads by itself.
                    Ok(Told::Landed(landed, us, _hold)) => {
                        self.landed(worker, received, landed, us, why, true).await
                    }
                    Ok(Told::Answer(reply, NotKept::TooLarge)) if received.has_range() => {
                        // Only the part that is wanted, then.
                        drop(reply);
                        Some(Box::pin(self.pass(worker, received, Passing::TooLarge)).await)
                    }
                    Ok(Told::Answer(reply, not_kept)) => {
                        let us = Some(net::record::micros(reply.delay));
                        let outcome = Outcome::Miss(why, Some(not_kept));
                        let response = deliver::reply(received.method, *reply, outcome);
                        Some((response, ended(outcome, us, None)))
                    }
                    Err(_) => None,
                }
            }
            Joined::Follow(follow) => match follow.landed().await {
                Some(landed) => {
                    self.landed(worker, received, landed, None, why, false)
                        .await
                }
                None => None,
            },
        }
    }

    /// What a fetch came to, for one of those who waited.
    async fn landed(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
        landed: Landed,
        upstream_us: Option<u64>,
        why: Why,
        led: bool,
    ) -> Option<Answered> {
        let fetched = |not_kept| {
            if led {
                Outcome::Miss(why, not_kept)
            } else {
                Outcome::Follow(why)
            }
        };
        let (object, outcome) = match landed {
            Landed::Object(object, not_kept) => (object, fetched(not_kept)),
            Landed::Confirmed(object) => match why {
                Why::Kept(asking) => (object, Outcome::Revalidated(asking)),
                _ => (object, fetched(None)),
            },
            Landed::Instead(object) => (object, Outcome::Stale(Stale::IfError)),
            Landed::Alone(not_kept) => {
                let why = match not_kept {
                    NotKept::TooLarge => Passing::TooLarge,
                    _ => Passing::NotShared,
                };
                return Some(Box::pin(self.pass(worker, received, why)).await);
            }
            // Those are found under keys of their own.
            Landed::Block(_) | Landed::Changed => return None,
            Landed::Failed(error) => {
                let outcome = fetched(None);
                let response = deliver::error(&error, outcome);
                return Some((
                    response,
                    ended(outcome, upstream_us, Some((*error).clone())),
                ));
            }
        };
        if !led && !object.answers(received.headers) {
            return None;
        }
        self.deliver(worker, received, &object, outcome, upstream_us)
            .await
    }

    /// `None`: look again, it is of no use any more.
    async fn deliver(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
        object: &Arc<Object>,
        outcome: Outcome,
        upstream_us: Option<u64>,
    ) -> Option<Answered> {
        let (method, headers) = (received.method, received.headers);
        let mut blocks = None;
        if let Some(parts) = &object.parts
            && let Some(first) = deliver::first(method, headers, object)
        {
            let primary = Key::from(received.key.as_ref());
            let ask = received.ask(worker, primary, None, &self.settings, &self.instance);
            let ask = Arc::new(ask);
            match Box::pin(self.block(&ask, object, first / parts.block)).await {
                Ok(first) => {
                    blocks = Some(Blocks {
                        edge: self.clone(),
                        ask,
                        object: object.clone(),
                        first: Some(first),
                        touched: received.touched,
                    });
                }
                Err(Missing::Changed) => return None,
                Err(Missing::Failed(error)) => {
                    let response = deliver::error(&error, outcome);
                    return Some((
                        response,
                        ended(outcome, upstream_us, Some((*error).clone())),
                    ));
                }
            }
        }
        let response = deliver::object(method, headers, object, outcome, blocks, received.touched)?;
        Some((response, ended(outcome, upstream_us, None)))
    }

    /// Asks for a stale object anew, in nobody's time.
    fn refresh(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
        key: Option<Key>,
        kept: &Arc<Object>,
    ) {
        let primary = Key::from(received.key.as_ref());
        let key = key.unwrap_or_else(|| primary.clone());
        if let Joined::Lead(lead) = self.flights.join(&key) {
            let kept = Some(kept.clone());
            let ask = received.ask(worker, primary, kept, &self.settings, &self.instance);
            drop(fetch::start(self.clone(), lead, ask));
        }
    }

    /// For this client alone.
    async fn pass(&self, worker: usize, received: &Received<'_>, why: Passing) -> Answered {
        let outcome = Outcome::Pass(why);
        let headers = received.passed(&self.instance);
        let host = received.passed_host(&self.settings);
        let question = question(worker, received, headers, host.as_ref());
        self.passed(received, self.origins.ask(question).await, outcome)
    }

    /// For this client alone, with its body, and only once.
    async fn hand_over(&self, worker: usize, received: &Received<'_>, body: Incoming) -> Answered {
        let outcome = Outcome::Pass(Passing::Method);
        let grace = self.settings.common.limits.header_timeout;
        let max = self.settings.body_bytes_max;
        let (body, fault) = match net::body::relayed(body, max, grace) {
            Ok(relayed) => relayed,
            Err(error) => return self.passed(received, Err(error), outcome),
        };
        let headers = received.passed(&self.instance);
        let host = received.passed_host(&self.settings);
        let question = question(worker, received, headers, host.as_ref());
        let asked = self.origins.hand_over(question, body).await;
        let asked = asked.map_err(|error| fault.found().unwrap_or(error));
        let done = |reply: &Reply| {
            let status = reply.answer.status;
            status.is_success() || status.is_redirection()
        };
        if asked.as_ref().is_ok_and(done) {
            self.invalidate(&received.key);
        }
        self.passed(received, asked, outcome)
    }

    fn passed(
        &self,
        received: &Received<'_>,
        asked: Result<Reply, Error>,
        outcome: Outcome,
    ) -> Answered {
        match asked {
            Ok(reply) => {
                let us = Some(net::record::micros(reply.delay));
                let response = deliver::reply(received.method, reply, outcome);
                (response, ended(outcome, us, None))
            }
            Err(error) => (
                deliver::error(&error, outcome),
                ended(outcome, None, Some(error)),
            ),
        }
    }
}

fn question<'a>(
    worker: usize,
    received: &'a Received<'_>,
    headers: HeaderMap,
    host: Option<&'a HeaderValue>,
) -> Question<'a> {
    Question {
        worker,
        pool: &received.pool,
        method: received.method,
        target: &received.target,
        headers,
        host,
    }
}

fn own(response: Response<Body>) -> Answered {
    (response, ended(Outcome::Own, None, None))
}

fn ended(outcome: Outcome, upstream_us: Option<u64>, error: Option<Error>) -> Ended {
    Ended {
        outcome,
        upstream_us,
        error,
        rule: None,
        cmcd: None,
    }
}
