//! Asking the origin for something that may be kept, for all who want it.
//!
//! A fetch is a task of its own: whoever asked first may leave. It lands once, when the head is
//! here, and then brings the body; only a whole body is kept.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use net::Error;
use net::upstream::Answer;
use store::cache::{Broken, Lead};
use tokio::sync::oneshot;

use crate::Edge;
use crate::config::Settings;
use crate::fresh::{Asked, Directives, Lifetime, keep, serves_error};
use crate::key::Key;
use crate::object::{Entry, Object, Varies};
use crate::origins::Reply;
use crate::reason::NotKept;

/// Kept behind the writer, once a body of unknown length has proved too long to be kept.
const WINDOW_BYTES: u64 = 2 << 20;

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
}

/// What the client that led is told, which may be what nobody else is given.
pub enum Told {
    /// As all.
    Landed(Landed, Option<u64>),
    /// The answer itself.
    Answer(Box<Reply>, NotKept),
}

/// All that a fetch needs to know of the request that caused it.
pub struct Ask {
    pub worker: usize,
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
    async fn fetch(&self, lead: Lead<Key, Landed>, ask: Ask, tell: oneshot::Sender<Told>) {
        let mut headers = ask.forward.clone();
        if let Some(kept) = &ask.kept {
            conditions(&mut headers, kept);
        }
        let host = ask.host.as_ref();
        let asked = self
            .origins
            .ask(ask.worker, &Method::GET, &ask.target, headers, host)
            .await;
        let instead = ask
            .kept
            .as_ref()
            .filter(|kept| serves_error(&kept.lifetime, kept.resident(), &ask.said));
        let reply = match (asked, instead) {
            (Err(_), Some(kept)) => {
                return tell_all(&lead, tell, Landed::Instead(kept.clone()), None);
            }
            (Err(error), None) => {
                return tell_all(&lead, tell, Landed::Failed(Arc::new(error)), None);
            }
            (Ok(reply), Some(kept)) if reply.answer.status.is_server_error() => {
                return tell_all(
                    &lead,
                    tell,
                    Landed::Instead(kept.clone()),
                    Some(micros(&reply)),
                );
            }
            (Ok(reply), _) => reply,
        };
        let delay_us = Some(micros(&reply));
        if reply.answer.status == StatusCode::NOT_MODIFIED {
            let landed = self.confirm(&lead, &ask, reply);
            return tell_all(&lead, tell, landed, delay_us);
        }
        match self.verdict(&ask, &reply) {
            Ok(lifetime) => {
                let object = object(&ask, &reply, lifetime);
                tell_all(&lead, tell, Landed::Object(object.clone(), None), delay_us);
                self.bring(&lead, &ask.key, &object, reply.answer, true)
                    .await;
            }
            // Many who wait for a failing origin must not all go and ask it again.
            Err(why) if reply.answer.status.is_server_error() && shareable(&reply, why) => {
                let object = object(&ask, &reply, NOTHING);
                tell_all(
                    &lead,
                    tell,
                    Landed::Object(object.clone(), Some(why)),
                    delay_us,
                );
                self.bring(&lead, &ask.key, &object, reply.answer, false)
                    .await;
            }
            Err(why) => {
                let until = Instant::now() + Settings::APART;
                self.memory.insert(ask.key.clone(), Entry::Apart(until));
                lead.land(Landed::Alone(why));
                let _ = tell.send(Told::Answer(Box::new(reply), why));
            }
        }
    }

    fn verdict(&self, ask: &Ask, reply: &Reply) -> Result<Lifetime, NotKept> {
        let asked = Asked {
            method: &Method::GET,
            authorized: ask.request.contains_key(header::AUTHORIZATION),
            cookies: ask.request.contains_key(header::COOKIE),
            delay: reply.delay,
        };
        let Reply { answer, at, .. } = reply;
        let lifetime = keep(&asked, answer.status, &answer.headers, *at, &ask.policy)?;
        match answer.len() {
            Some(len) if len > self.memory.object_bytes_max() => Err(NotKept::TooLarge),
            _ => Ok(lifetime),
        }
    }

    /// The origin says that what is kept is still so.
    fn confirm(&self, lead: &Lead<Key, Landed>, ask: &Ask, reply: Reply) -> Landed {
        let Some(kept) = &ask.kept else {
            let what = "the origin says 304 without being asked whether anything changed";
            return Landed::Failed(Arc::new(Error::upstream(StatusCode::BAD_GATEWAY, what)));
        };
        // The lifetime is that of the merged head (RFC 9111 section 4.3.4).
        let mut merged = kept.confirmed(&reply.answer.headers, kept.lifetime);
        let asked = Asked {
            method: &Method::GET,
            authorized: ask.request.contains_key(header::AUTHORIZATION),
            cookies: ask.request.contains_key(header::COOKIE),
            delay: reply.delay,
        };
        // An Age that came with it counts; the old one was not kept.
        let mut judged = merged.headers.clone();
        if let Some(age) = reply.answer.headers.get(header::AGE) {
            judged.insert(header::AGE, age.clone());
        }
        match keep(&asked, merged.status, &judged, reply.at, &ask.policy) {
            Ok(lifetime) => {
                merged.lifetime = lifetime;
                let merged = Arc::new(merged);
                self.insert(lead, &ask.key, &merged);
                Landed::Confirmed(merged)
            }
            // It must not be kept any longer; this once it was asked for.
            Err(_) => {
                self.memory.remove(lead.key());
                Landed::Confirmed(Arc::new(merged))
            }
        }
    }

    /// Brings the body to all who read it, and keeps it when it is whole.
    async fn bring(
        &self,
        lead: &Lead<Key, Landed>,
        key: &Key,
        object: &Arc<Object>,
        mut answer: Answer,
        worth: bool,
    ) {
        let mut kept = worth;
        loop {
            match answer.piece().await {
                Ok(Some(piece)) => object.body.push(piece),
                Ok(None) => break,
                Err(failed) => {
                    object.body.end(Err(Broken(failed.why.into())));
                    return;
                }
            }
            if object.len.is_none() && object.body.len() > self.memory.object_bytes_max() && kept {
                kept = false;
                lead.close();
                object.body.window(WINDOW_BYTES);
                let until = Instant::now() + Settings::APART;
                self.memory.insert(key.clone(), Entry::Apart(until));
            }
            if !poll_fn(|cx| object.body.poll_room(cx)).await {
                // Nobody reads it any more, and it will not be kept.
                return;
            }
        }
        if kept {
            object.finish();
            self.insert(lead, key, object);
        } else {
            object.body.end(Ok(()));
        }
    }

    /// Keeps a whole object.
    ///
    /// What was purged meanwhile is not kept: a purge marks fetches first, and then looks at what is
    /// kept, so that here, after keeping, the mark is seen if that look came too early.
    fn insert(&self, lead: &Lead<Key, Landed>, key: &Key, object: &Arc<Object>) {
        if lead.purged() {
            return;
        }
        let key = self.place(key, object);
        self.memory
            .insert(key.clone(), Entry::Object(object.clone()));
        if lead.purged() {
            self.memory.remove(&key);
        }
    }

    /// The key that an object is kept by: its own, or its variant's.
    fn place(&self, key: &Key, object: &Object) -> Key {
        if object.vary.is_empty() {
            return key.clone();
        }
        let mut names: Vec<_> = object.vary.iter().map(|(name, _)| name.clone()).collect();
        let varies = match self.memory.get(key.as_str()) {
            Some(Entry::Varies(varies)) if names.iter().all(|n| varies.names.contains(n)) => varies,
            // It varies by more than was known: variants kept so far are not found any more, and
            // make room in time.
            old => {
                if let Some(Entry::Varies(old)) = old {
                    names.extend(old.names.iter().cloned());
                    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
                    names.dedup();
                }
                let varies = Arc::new(Varies::new(names));
                self.memory
                    .insert(key.clone(), Entry::Varies(varies.clone()));
                varies
            }
        };
        let mut request = HeaderMap::new();
        for (name, value) in &object.vary {
            if let Ok(value) = HeaderValue::from_str(value) {
                request.insert(name.clone(), value);
            }
        }
        let variant = key.variant(&varies.names, &request);
        if let Some(oldest) = varies.keep(&variant) {
            self.memory.remove(&oldest);
        }
        variant
    }
}

/// Whoever led may be gone; all others hear the same.
fn tell_all(
    lead: &Lead<Key, Landed>,
    tell: oneshot::Sender<Told>,
    landed: Landed,
    delay_us: Option<u64>,
) {
    lead.land(landed.clone());
    let _ = tell.send(Told::Landed(landed, delay_us));
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

fn shareable(reply: &Reply, why: NotKept) -> bool {
    !matches!(
        why,
        NotKept::Private | NotKept::SetCookie | NotKept::TooLarge
    ) && !reply.answer.headers.contains_key(header::SET_COOKIE)
}

fn object(ask: &Ask, reply: &Reply, lifetime: Lifetime) -> Arc<Object> {
    let Answer {
        status, headers, ..
    } = &reply.answer;
    let len = reply.answer.len();
    Arc::new(Object::new(*status, headers, lifetime, len, &ask.request))
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
