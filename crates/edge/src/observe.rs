//! What is written down about requests: records, counters, the log.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Instant;

use http::Response;
use http::header::HeaderValue;
use http::request::Parts;
use net::metrics::{Counter, Family, Gauge, Metrics, Row, Traffic};
use net::record::{Access, Bounded, Cached, REQUEST_ID, Recorder, micros};
use net::{Body, Conn, Error};
use store::cache::Flights;

use crate::reason::Outcome;

const KINDS: &[&str] = &["relay", "admin"];

const CACHE_REQUESTS: Row = Row {
    name: "cache_requests",
    unit: "",
    help: "Requests by what the cache did",
};
const CACHE_REASONS: Row = Row {
    name: "cache_reasons",
    unit: "",
    help: "Requests by what the cache did and why",
};
const CACHE_BYTES: Row = Row {
    name: "cache_memory",
    unit: "bytes",
    help: "Kept answers in memory, their heads included",
};
const CACHE_OBJECTS: Row = Row {
    name: "cache_objects",
    unit: "",
    help: "Kept answers in memory",
};
const FLIGHTS: Row = Row {
    name: "cache_flights",
    unit: "",
    help: "Fetches under way",
};
const FOLLOWERS: Row = Row {
    name: "cache_followers",
    unit: "",
    help: "Requests that wait for the answer to another's fetch",
};

/// Everything that counts.
pub struct Observer {
    metrics: Metrics,
    traffic: Traffic,
    results: Family,
    reasons: Family,
    hits: Counter,
    fresh: Counter,
    bytes: Gauge,
    objects: Gauge,
    flights: Gauge,
    followers: Gauge,
    recorder: Option<Recorder>,
}

/// A request that is being answered.
pub struct Seen {
    /// When it came and what goes into the record; nothing where nobody wants one.
    noted: Option<(Instant, Box<Access>)>,
}

/// How it was answered.
pub struct Ended {
    pub outcome: Outcome,
    pub upstream_us: Option<u64>,
    pub error: Option<Error>,
    /// The rule that chose how to send.
    pub rule: Option<String>,
    pub cmcd: Option<BTreeMap<String, serde_json::Value>>,
}

impl Seen {
    /// The request's name and when its header had been read, where it is to be recorded.
    pub fn named(&self) -> Option<(&Bounded, Instant)> {
        let (began, access) = self.noted.as_ref()?;
        Some((&access.request_id, *began))
    }
}

impl Observer {
    pub fn new(metrics: Metrics, recorder: Option<Recorder>) -> Observer {
        let results = metrics.family(&CACHE_REQUESTS, &["result"]);
        let reasons = metrics.family(&CACHE_REASONS, &["result", "reason"]);
        Observer {
            traffic: Traffic::new(&metrics, KINDS),
            hits: results.of(&[Outcome::Hit.result()]),
            fresh: reasons.of(&[Outcome::Hit.result(), Outcome::Hit.reason()]),
            results,
            reasons,
            bytes: metrics.gauge(&CACHE_BYTES),
            objects: metrics.gauge(&CACHE_OBJECTS),
            flights: metrics.gauge(&FLIGHTS),
            followers: metrics.gauge(&FOLLOWERS),
            metrics,
            recorder,
        }
    }

    /// Where records go.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Records go to a new file of the same name from now on: somebody may have moved the old one.
    pub fn reopen(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.reopen();
        }
    }

    /// Brings gauges up to date (`kept`: bytes and objects in memory) and prints all.
    pub fn show<K, T>(&self, kept: (u64, usize), flights: &Flights<K, T>) -> Response<Body>
    where
        K: Eq + Hash + Clone,
        T: Clone,
    {
        let set = |gauge: &Gauge, count| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        self.bytes.set(i64::try_from(kept.0).unwrap_or(i64::MAX));
        set(&self.objects, kept.1);
        set(&self.flights, flights.len());
        set(&self.followers, flights.followers());
        self.metrics.response()
    }

    /// How many requests came to what, so far.
    pub fn results(&self) -> BTreeMap<&'static str, u64> {
        let names = [
            "hit",
            "stale",
            "revalidated",
            "follow",
            "miss",
            "pass",
            "denied",
        ];
        names
            .map(|name| (name, self.results.of(&[name]).get()))
            .into()
    }

    /// A request has come.
    pub fn begin(&self, parts: &Parts, conn: &Conn) -> Seen {
        let wanted = self.recorder.is_some() || tracing::enabled!(tracing::Level::DEBUG);
        Seen {
            noted: wanted.then(|| (Instant::now(), Box::new(Access::of(parts, conn)))),
        }
    }

    /// It is answered; the record follows when the body has left.
    pub fn end(&self, seen: Seen, response: Response<Body>, ended: Ended) -> Response<Body> {
        let kind = usize::from(ended.outcome == Outcome::Own);
        match ended.outcome {
            Outcome::Own => {}
            Outcome::Hit => {
                self.hits.inc();
                self.fresh.inc();
            }
            outcome => {
                self.results.of(&[outcome.result()]).inc();
                self.reasons.of(&[outcome.result(), outcome.reason()]).inc();
            }
        }
        if let Some(error) = &ended.error
            && error.status.is_server_error()
        {
            tracing::warn!(%error, "request failed");
        }
        let status = response.status();
        let (mut head, body) = response.into_parts();
        if let Some((_, access)) = &seen.noted
            && let Ok(id) = HeaderValue::from_str(access.request_id.as_str())
        {
            head.headers.insert(REQUEST_ID, id);
        }
        let (traffic, recorder) = (self.traffic.clone(), self.recorder.clone());
        let body = body.on_end(seen.noted.is_some(), move |end| {
            traffic.request(kind, status);
            traffic.bytes(kind, end.bytes);
            let Some((began, mut access)) = seen.noted else {
                return;
            };
            access.status = status.as_u16();
            access.kind = KINDS.get(kind).copied().unwrap_or("relay");
            access.bytes = end.bytes;
            access.complete = end.complete;
            access.total_us = micros(began.elapsed());
            access.first_byte_us = end.first_byte.map(|at| micros(at - began));
            let cut = end.error.as_ref().map(ToString::to_string);
            access.error = ended.error.map(|e| e.context).or(cut).map(Into::into);
            access.cached = (ended.outcome != Outcome::Own).then(|| Cached {
                cache: ended.outcome.result(),
                reason: ended.outcome.reason(),
                upstream_us: ended.upstream_us,
                rule: ended.rule.map(Into::into),
                cmcd: ended.cmcd,
            });
            tracing::debug!(
                path = access.path.as_str(),
                status = access.status,
                cache = ended.outcome.result(),
                reason = ended.outcome.reason(),
                total_us = access.total_us,
                complete = access.complete,
                "request"
            );
            if let Some(recorder) = &recorder {
                recorder.access(*access);
            }
        });
        Response::from_parts(head, body)
    }
}
