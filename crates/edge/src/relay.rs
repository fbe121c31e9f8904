//! From a request to its answer: looked up, fetched by one for all, delivered, or passed.

use super::{Answered, Edge, ended, own};
use crate::deliver;
use crate::entry::Entry;
use crate::fetch::{self, Landed, Told};
use crate::key::Key;
use crate::object::Object;
use crate::origins::{Question, Reply};
use crate::parts::{Blocks, Missing};
use crate::plan::{Plan, plan};
use crate::reason::{NotKept, Outcome, Passing, Stale, Why};
use crate::receive::Received;
use http::Method;
use http::header::{HeaderMap, HeaderValue};
use net::Error;
use net::body::Incoming;
use std::sync::Arc;
use store::cache::{Joined, Lead};

/// How often a request looks again after what it followed turned out to be of no use to it.
const ROUNDS_MAX: usize = 3;

/// What is kept for a request, see [`Edge::lookup`].
type Looked = (Option<Key>, Option<Entry>, bool);

impl Edge {
    /// What a hit does not need is boxed: each connection has room for its request's future, all the time.
    pub(super) async fn relay(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
    ) -> Answered {
        // What is kept answers no other method; nor is its body read.
        if ![Method::GET, Method::HEAD].contains(received.method) {
            return Box::pin(self.pass(worker, received, Passing::Method)).await;
        }
        for _ in 0..ROUNDS_MAX {
            let (key, found, variants) = match self.lookup(received) {
                looked if self.may_recall(received, &looked) => {
                    Box::pin(self.recalled(received, looked)).await
                }
                looked => looked,
            };
            let resident = |object: &Object| object.resident();
            let (method, said) = (received.method, &received.said);
            match plan(method, said, found.as_ref(), variants, resident) {
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
                Plan::FetchApart => {
                    return Box::pin(self.fetched_apart(worker, received)).await;
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
                    let answered = match object.parts {
                        None => delivered(received, &object, (outcome, None), None),
                        Some(_) => {
                            let deliver = self.deliver(worker, received, &object, outcome, None);
                            Box::pin(deliver).await
                        }
                    };
                    if let Some(answered) = answered {
                        let primary = || Key::from(received.key.as_ref());
                        self.used(&object, || key.unwrap_or_else(primary));
                        return answered;
                    }
                }
            }
        }
        Box::pin(self.pass(worker, received, Passing::NotShared)).await
    }

    /// Brings back what is on disk, where that is what [`Edge::lookup`] came to.
    async fn recalled(&self, received: &Received<'_>, mut looked: Looked) -> Looked {
        for _ in 0..ROUNDS_MAX {
            if !self.may_recall(received, &looked) {
                break;
            }
            let key = looked.0;
            let key = key.unwrap_or_else(|| Key::from(received.key.as_ref()));
            self.recall(&key).await;
            looked = self.lookup(received);
        }
        looked
    }

    /// Whether disk may have what memory has not.
    fn may_recall(&self, received: &Received<'_>, (key, found, _): &Looked) -> bool {
        let name = key.as_ref().map_or(received.key.as_ref(), Key::as_str);
        found.is_none() && self.disk.has(name)
    }

    /// What is kept for a request, the key it is (or would be) kept by, and whether there are
    /// variants of its URL.
    fn lookup(&self, received: &Received<'_>) -> Looked {
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
                self.led(worker, received, lead, kept, why).await
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

    /// Leads a fetch where answers were not to be shared lately, and waits for nobody else's. A part
    /// of an answer, or whether it has changed, is asked for as it is: it is likely not to be kept.
    async fn fetched_apart(self: &Arc<Edge>, worker: usize, received: &Received<'_>) -> Answered {
        let primary = Key::from(received.key.as_ref());
        if !received.wants_less()
            && let Joined::Lead(lead) = self.flights.join(&primary)
            && let Some(answered) = self.led(worker, received, lead, None, Why::Absent).await
        {
            return answered;
        }
        self.pass(worker, received, Passing::Apart).await
    }

    /// Fetches for all. `None`: look again, it is not for this request.
    async fn led(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
        lead: Lead<Key, Landed>,
        kept: Option<Arc<Object>>,
        why: Why,
    ) -> Option<Answered> {
        let primary = Key::from(received.key.as_ref());
        let ask = received.ask(worker, primary, kept, &self.settings, &self.instance);
        match fetch::start(self.clone(), lead, ask).await {
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
        let mut blocks = None;
        if object.parts.is_some() {
            match Box::pin(self.blocks(worker, received, object)).await {
                Ok(found) => blocks = found,
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
        delivered(received, object, (outcome, upstream_us), blocks)
    }

    /// The parts that a request wants of an object that is kept in parts, the first of them brought.
    async fn blocks(
        self: &Arc<Edge>,
        worker: usize,
        received: &Received<'_>,
        object: &Arc<Object>,
    ) -> Result<Option<Blocks>, Missing> {
        let first = deliver::first(received.method, received.headers, object);
        let (Some(parts), Some(first)) = (&object.parts, first) else {
            return Ok(None);
        };
        let primary = Key::from(received.key.as_ref());
        let ask = Arc::new(received.ask(worker, primary, None, &self.settings, &self.instance));
        let first = self.block(&ask, object, first / parts.block).await?;
        Ok(Some(Blocks {
            edge: self.clone(),
            ask,
            object: object.clone(),
            first: Some(first),
            touched: received.touched,
        }))
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
    pub(super) async fn pass(
        &self,
        worker: usize,
        received: &Received<'_>,
        why: Passing,
    ) -> Answered {
        let outcome = Outcome::Pass(why);
        let headers = received.passed(&self.instance);
        let host = received.passed_host(&self.settings);
        let question = question(worker, received, headers, host.as_ref());
        self.passed(received, self.origins.ask(question).await, outcome)
    }

    /// For this client alone, with its body, and only once.
    pub(super) async fn hand_over(
        &self,
        worker: usize,
        received: &Received<'_>,
        body: Incoming,
    ) -> Answered {
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

/// An answer from an object. `None`: look again, it is of no use any more.
fn delivered(
    received: &Received<'_>,
    object: &Arc<Object>,
    (outcome, upstream_us): (Outcome, Option<u64>),
    blocks: Option<Blocks>,
) -> Option<Answered> {
    let (method, headers) = (received.method, received.headers);
    let response = deliver::object(method, headers, object, outcome, blocks, received.touched)?;
    Some((response, ended(outcome, upstream_us, None)))
}

fn question<'a>(
    worker: usize,
    received: &'a Received<'_>,
    headers: HeaderMap,
    host: Option<&'a HeaderValue>,
) -> Question<'a> {
    Question {
        worker,
        pool: received.pool.as_deref().unwrap_or_default(),
        method: received.method,
        target: &received.target,
        headers,
        host,
    }
}
