//! Asking the origin for something that may be kept, for all who want it.
//!
//! A fetch is a task of its own: whoever asked first may leave. It lands once, when the head is
//! here, and then brings the body; only a whole body is kept.

pub mod block;
mod bring;
mod keep;

pub use bring::Flying;

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use net::Error;
use net::conditional::Validators;
use net::upstream::Answer;
use store::cache::{Lead, Reader};
use tokio::sync::oneshot;

use crate::Edge;
use crate::content::Content;
use crate::fresh::{self, Asked, Directives, Lifetime, serves_error};
use crate::headers;
use crate::key::{Key, selecting};
use crate::object::{Object, variant};
use crate::origins::{Question, Reply};
use crate::parts::{self, Parts};
use crate::reason::NotKept;

/// A variant is named by what its request says, at most with so many bytes.
const VARIANT_BYTES_MAX: usize = 2048;

/// What a fetch has come to, for all who wait for it.
#[derive(Clone)]
pub enum Landed {
    /// This, its body perhaps still growing; and why it will not be kept, if so.
    Object(Arc<Object>, Option<NotKept>),
    /// What was kept is still so.
    Confirmed(Arc<Object>),
    /// The origin failed, and this stands in for its answer.
    Instead(Arc<Object>),
    /// The answer is for one client alone: ask for yourself.
    Alone(NotKept),
    /// There is no answer.
    Failed(Arc<Error>),
    /// A part of an object.
    Block(Arc<Content>),
    /// A part that cannot be had, because the object is another one by now.
    Changed,
}

/// What the client that led is told, which may be what nobody else is given.
pub enum Told {
    /// As all; how long the origin took; and a hold on the body's first bytes, which may be let go
    /// of before this client has begun to read.
    Landed(Landed, Option<u64>, Option<Reader>),
    /// The answer itself.
    Answer(Box<Reply>, NotKept),
}

/// All that a fetch needs to know of the request that caused it.
pub struct Ask {
    pub worker: usize,
    /// Whose origins are asked.
    pub pool: Arc<str>,
    /// Without the lines of a variant.
    pub key: Key,
    pub target: String,
    /// As the client sent them, for what the answer varies by.
    pub request: HeaderMap,
    /// As they are sent on.
    pub forward: HeaderMap,
    pub host: Option<HeaderValue>,
    pub said: Directives,
    /// What is kept, and to be confirmed.
    pub kept: Option<Arc<Object>>,
    pub policy: crate::fresh::Policy,
}

impl Ask {
    /// What an origin is asked, with these headers.
    fn question(&self, headers: HeaderMap) -> Question<'_> {
        Question {
            worker: self.worker,
            pool: &self.pool,
            method: &Method::GET,
            target: &self.target,
            headers,
            host: self.host.as_ref(),
        }
    }
}

/// Starts a fetch; the receiver hears what came of it (nobody has to listen).
pub fn start(edge: Arc<Edge>, lead: Lead<Key, Landed>, ask: Ask) -> oneshot::Receiver<Told> {
    let (tell, told) = oneshot::channel();
    let hold = edge.shutdown.hold();
    tokio::spawn(async move {
        edge.fetch(lead, ask, tell).await;
        drop(hold);
    });
    told
}

impl Edge {
    /// One fetch, from asking to the last byte.
    async fn fetch(&self, mut lead: Lead<Key, Landed>, mut ask: Ask, tell: oneshot::Sender<Told>) {
        let kept = ask.kept.clone();
        let instead = kept.filter(|kept| serves_error(&kept.lifetime, kept.resident(), &ask.said));
        let reply = match (self.asked(&mut ask).await, instead) {
            (Err(_), Some(kept)) => return tell_all(&lead, tell, Landed::Instead(kept), None),
            (Err(error), None) => {
                return tell_all(&lead, tell, Landed::Failed(Arc::new(error)), None);
            }
            (Ok(reply), Some(kept)) if reply.answer.status.is_server_error() => {
                let delay_us = Some(micros(&reply));
                return tell_all(&lead, tell, Landed::Instead(kept), delay_us);
            }
            (Ok(reply), _) => reply,
        };
        let delay_us = Some(micros(&reply));
        if reply.answer.status == StatusCode::NOT_MODIFIED {
            let landed = self.confirm(&lead, &ask, reply);
            return tell_all(&lead, tell, landed, delay_us);
        }
        match self.verdict(&ask, &reply) {
            Ok((lifetime, None)) => {
                let object = Arc::new(object(&ask, &reply, lifetime));
                self.announce(&mut lead, &ask, &object);
                tell_all(&lead, tell, Landed::Object(object.clone(), None), delay_us);
                let whole = self.bring(&mut lead, &object.content, reply.answer, None);
                if whole.await {
                    self.insert(&lead, &ask, &object);
                }
            }
            Ok((lifetime, Some(etag))) => {
                // The rest of the answer would be the whole: it is asked for in parts instead.
                let object = self.in_parts(&mut lead, &ask, &reply, lifetime, etag);
                drop(reply);
                tell_all(&lead, tell, Landed::Object(object, None), delay_us);
            }
            // Many who wait for a failing origin must not all go and ask it again; nor for one that
            // refuses, as long as they have said the same.
            Err(why) if shareable(&reply, why) => {
                let mut object = object(&ask, &reply, NOTHING);
                if reply.answer.status.is_client_error() {
                    object.vary = self.words(&ask.request);
                }
                let object = Arc::new(object);
                let landed = Landed::Object(object.clone(), Some(why));
                tell_all(&lead, tell, landed, delay_us);
                self.bring(&mut lead, &object.content, reply.answer, None)
                    .await;
            }
            Err(why) => {
                // An error may be about what this client said: it tells nothing of the URL.
                if !is_error(&reply) {
                    self.apart(&ask.key, why == NotKept::TooLarge);
                }
                lead.land(Landed::Alone(why));
                let _ = tell.send(Told::Answer(Box::new(reply), why));
            }
        }
    }

    /// What an origin heard of a request that it may have refused for it; but for its number, which is
    /// another one each time.
    fn words(&self, request: &HeaderMap) -> Vec<(HeaderName, String)> {
        headers::heard(&self.settings.forward)
            .chain([&headers::CDN_LOOP])
            .map(|name| (name.clone(), selecting(request, name)))
            .collect()
    }

    /// Asks the origin, whether what is kept is still so if something is.
    async fn asked(&self, ask: &mut Ask) -> Result<Reply, Error> {
        let mut headers = ask.forward.clone();
        if let Some(kept) = &ask.kept {
            conditions(&mut headers, kept);
        }
        let reply = self.origins.ask(ask.question(headers)).await?;
        let confirms = reply.answer.status == StatusCode::NOT_MODIFIED;
        if !confirms || ask.kept.as_ref().is_none_or(|kept| speaks_of(&reply, kept)) {
            return Ok(reply);
        }
        // A 304 about something else than what is kept says nothing about that.
        ask.kept = None;
        let headers = ask.forward.clone();
        self.origins.ask(ask.question(headers)).await
    }

    /// For how long the answer may be kept; with a validator: in parts.
    fn verdict(&self, ask: &Ask, reply: &Reply) -> Result<(Lifetime, Option<Box<str>>), NotKept> {
        let Reply { answer, at, .. } = reply;
        let asked = asked(ask, reply);
        let lifetime = fresh::keep(&asked, answer.status, &answer.headers, *at, &ask.policy)?;
        if varies_long(&answer.headers, &ask.request) {
            return Err(NotKept::VaryLong);
        }
        let long = answer
            .len()
            .is_some_and(|len| len > self.memory.object_bytes_max());
        match parts::etag(&answer.headers) {
            _ if !long => Ok((lifetime, None)),
            Some(etag) if answer.status == StatusCode::OK => Ok((lifetime, Some(etag))),
            _ => Err(NotKept::TooLarge),
        }
    }

    /// Keeps the head of what is kept in parts.
    fn in_parts(
        &self,
        lead: &mut Lead<Key, Landed>,
        ask: &Ask,
        reply: &Reply,
        lifetime: Lifetime,
        etag: Box<str>,
    ) -> Arc<Object> {
        let mut object = object(ask, reply, lifetime);
        let key = self.place(&ask.key, &object, &ask.request);
        let block = parts::block_bytes(self.memory.object_bytes_max());
        object.parts = Some(Parts { key, etag, block });
        let object = Arc::new(object);
        self.announce(lead, ask, &object);
        if let Some(old) = &ask.kept {
            self.forget(old);
        }
        self.insert(lead, ask, &object);
        object
    }

    /// The origin says that what is kept is still so.
    fn confirm(&self, lead: &Lead<Key, Landed>, ask: &Ask, reply: Reply) -> Landed {
        let Some(kept) = &ask.kept else {
            let what = "the origin says 304 without being asked whether anything changed";
            return Landed::Failed(Arc::new(Error::upstream(StatusCode::BAD_GATEWAY, what)));
        };
        // The lifetime is that of the merged head (RFC 9111 section 4.3.4).
        let mut merged = kept.confirmed(&reply.answer.headers, kept.lifetime, &ask.request);
        // An Age that came with it counts; the old one was not kept.
        let mut judged = merged.headers.clone();
        if let Some(age) = reply.answer.headers.get(header::AGE) {
            judged.insert(header::AGE, age.clone());
        }
        let asked = asked(ask, &reply);
        match fresh::keep(&asked, merged.status, &judged, reply.at, &ask.policy) {
            Ok(lifetime) if !varies_long(&merged.headers, &ask.request) => {
                merged.lifetime = lifetime;
                // It may vary by more than it did: its parts are named after where it is then.
                if let Some(parts) = merged.parts.take() {
                    let key = self.place(&ask.key, &merged, &ask.request);
                    merged.parts = Some(Parts { key, ..parts });
                }
                let merged = Arc::new(merged);
                self.insert(lead, ask, &merged);
                Landed::Confirmed(merged)
            }
            // It must not be kept any longer; this once it was asked for.
            _ => {
                let key = self.place(&ask.key, kept, &ask.request);
                self.take(&key);
                Landed::Confirmed(Arc::new(merged))
            }
        }
    }
}

/// Whether the values that an answer varies by are too long for a key.
fn varies_long(headers: &HeaderMap, request: &HeaderMap) -> bool {
    let values = variant(headers, request).into_iter();
    values.map(|(_, value)| value.len()).sum::<usize>() > VARIANT_BYTES_MAX
}

fn asked<'a>(ask: &Ask, reply: &Reply) -> Asked<'a> {
    Asked {
        method: &Method::GET,
        authorized: ask.request.contains_key(header::AUTHORIZATION),
        cookies: ask.request.contains_key(header::COOKIE),
        delay: reply.delay,
    }
}

/// Whether a 304 is about what is kept (RFC 9111 section 4.3.4): it names its tag, or none.
fn speaks_of(reply: &Reply, kept: &Object) -> bool {
    fn opaque(tag: &HeaderValue) -> &[u8] {
        let bytes = tag.as_bytes();
        bytes.strip_prefix(b"W/").unwrap_or(bytes)
    }
    let said = Validators::of(&reply.answer.headers).etag;
    match (said, &kept.validators.etag) {
        (Some(said), Some(ours)) => opaque(&said) == opaque(ours),
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// Whoever led may be gone; all others hear the same.
fn tell_all(
    lead: &Lead<Key, Landed>,
    tell: oneshot::Sender<Told>,
    landed: Landed,
    delay_us: Option<u64>,
) {
    let hold = match &landed {
        Landed::Object(object, _) => object.content.growing.read(0..u64::MAX),
        _ => None,
    };
    lead.land(landed.clone());
    let _ = tell.send(Told::Landed(landed, delay_us, hold));
}

/// A lifetime for what is only handed to those who wait.
const NOTHING: Lifetime = Lifetime {
    fresh: std::time::Duration::ZERO,
    source: crate::fresh::Source::Nothing,
    age: std::time::Duration::ZERO,
    no_cache: true,
    must_revalidate: true,
    stale_while_revalidate: std::time::Duration::ZERO,
    stale_if_error: std::time::Duration::ZERO,
};

fn is_error(reply: &Reply) -> bool {
    let status = reply.answer.status;
    status.is_client_error() || status.is_server_error()
}

fn shareable(reply: &Reply, why: NotKept) -> bool {
    is_error(reply)
        && !matches!(
            why,
            NotKept::Private | NotKept::SetCookie | NotKept::TooLarge
        )
        && !reply.answer.headers.contains_key(header::SET_COOKIE)
}

fn object(ask: &Ask, reply: &Reply, lifetime: Lifetime) -> Object {
    let Answer {
        status, headers, ..
    } = &reply.answer;
    Object::new(*status, headers, lifetime, reply.answer.len(), &ask.request)
}

/// Asks whether what is kept is still so (RFC 9111 section 4.3.1).
fn conditions(headers: &mut HeaderMap, kept: &Object) {
    for (from, to) in [
        (header::ETAG, header::IF_NONE_MATCH),
        (header::LAST_MODIFIED, header::IF_MODIFIED_SINCE),
    ] {
        if let Some(value) = kept.headers.get(from) {
            headers.insert(to, value.clone());
        }
    }
}

fn micros(reply: &Reply) -> u64 {
    net::record::micros(reply.delay)
}
