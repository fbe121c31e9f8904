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
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
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
mod relay;
mod rules;
mod serve;
mod steer;
mod warm;
mod watch;

pub use serve::{ADMIN, edge, start};

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::HeaderValue;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use net::body::Incoming;
use net::{Body, Conn, Error, Shutdown};
use store::Arena;
use store::cache::{Flights, Memory};

use crate::config::Settings;
use crate::disk::Disk;
use crate::entry::Entry;
use crate::fetch::{Flying, Landed};
use crate::key::Key;
use crate::observe::{Ended, Observer, Seen};
use crate::origins::Origins;
use crate::reason::{Outcome, Passing};
use crate::receive::{Own, Received};
use crate::steer::Steer;

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
    pub(crate) fn answer(
        self: Arc<Edge>,
        worker: usize,
        request: Request<Incoming>,
        conn: Conn,
    ) -> impl Future<Output = Response<Body>> {
        // Not in the future, which would keep room for it twice.
        let (parts, mut body) = request.into_parts();
        async move { self.answer_head(worker, &parts, &mut body, &conn).await }
    }

    async fn answer_head(
        self: &Arc<Edge>,
        worker: usize,
        parts: &Parts,
        body: &mut Incoming,
        conn: &Conn,
    ) -> Response<Body> {
        let seen = self.observer.begin(parts, conn);
        // Looked at where it lies: moved, it would take room twice.
        let mut received = Received::new(parts, &self.settings, &self.instance, conn.client());
        let (response, ended) = match &mut received {
            Ok(received) => self.steered(worker, received, body, &seen, conn).await,
            Err(Own::Health) => own(receive::short("ok\n")),
            Err(Own::Ready) => own(self.ready()),
            Err(Own::Metrics) => own(self.metrics()),
            Err(Own::Wrong(response)) => own(std::mem::take(response)),
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
        let kept = (self.memory.bytes(), self.memory.len());
        self.observer.show(kept, &self.flights)
    }

    /// How many requests came to what, so far.
    fn results(&self) -> BTreeMap<&'static str, u64> {
        self.observer.results()
    }

    /// Relays as the rules say: some are about the request, some about how its answer is sent.
    async fn steered(
        self: &Arc<Edge>,
        worker: usize,
        received: &mut Received<'_>,
        body: &mut Incoming,
        seen: &Seen,
        conn: &Conn,
    ) -> Answered {
        let said = self.steer.said(received);
        let early = self.steer.early(received, &said, conn);
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
            Box::pin(self.hand_over(worker, received, std::mem::take(body))).await
        } else if early.pass {
            Box::pin(self.pass(worker, received, Passing::Rule)).await
        } else {
            self.relay(worker, received).await
        };
        let outcome = ended.outcome;
        ended.rule = self
            .steer
            .late(received, &said, conn, &mut response, outcome);
        let response = self.steer.watch(seen, conn, response);
        ended.cmcd = said.record();
        (response, ended)
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
