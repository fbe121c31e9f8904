//! What is written down about requests: records, counters, the log.

use crate::catalog::Catalog;
use crate::ready::Segments;
use crate::route::{Manifest, Part, Request};
use http::Response;
use http::header::HeaderValue;
use net::metrics::{Counter, Family, Gauge, Metrics, Row, Traffic};
use net::record::{Access, REQUEST_ID, Recorder, micros};
use net::{Body, Conn, Error};
use std::time::Instant;
use store::{DiskCounts, Reason};

/// What a request is about, as records and counters call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Segment,
    Init,
    Playlist,
    Mpd,
    Description,
    File,
    Page,
    Admin,
    Other,
}

const KINDS: &[&str] = &[
    "segment",
    "init",
    "playlist",
    "mpd",
    "description",
    "file",
    "page",
    "admin",
    "other",
];

impl Kind {
    pub(crate) fn of(request: &Request) -> Kind {
        match request {
            Request::Segment(segment) => Kind::of_part(segment.part),
            Request::Manifest {
                manifest: Manifest::Dash(_),
                ..
            } => Kind::Mpd,
            Request::Manifest {
                manifest: Manifest::Description,
                ..
            } => Kind::Description,
            Request::Manifest { .. } => Kind::Playlist,
            Request::File(_) => Kind::File,
            Request::Page | Request::Asset(_) | Request::Library => Kind::Page,
            Request::Health | Request::Ready | Request::Metrics => Kind::Admin,
        }
    }

    pub(crate) fn of_part(part: Part) -> Kind {
        if part == Part::Init {
            Kind::Init
        } else {
            Kind::Segment
        }
    }

    fn name(self) -> &'static str {
        KINDS.get(self as usize).copied().unwrap_or("other")
    }
}

const STORAGE_REQUESTS: Row = Row {
    name: "storage_requests",
    unit: "",
    help: "Ranges of objects asked of the storage",
};
const STORAGE_BYTES: Row = Row {
    name: "storage",
    unit: "bytes",
    help: "Bytes asked of the storage",
};
const STORAGE_WAITS: Row = Row {
    name: "storage_waits",
    unit: "",
    help: "Ranges that were not in memory, so that a thread waited for the storage",
};
const INDEX_BUILDS: Row = Row {
    name: "index_builds",
    unit: "",
    help: "Titles indexed, those that failed included",
};
const INDEX_MEMORY: Row = Row {
    name: "index_memory",
    unit: "bytes",
    help: "Memory that indexes, presentations and manifests take, estimated",
};
const INDEX_TITLES: Row = Row {
    name: "index_titles",
    unit: "",
    help: "Titles in memory, those that cannot be served included",
};

const SEGMENT_MEMORY: Row = Row {
    name: "segment_memory",
    unit: "bytes",
    help: "Memory that segments asked for lately take: their plans, and the bytes of those that had \
           to be gathered or packed",
};
const INDEX_DISK_REQUESTS: Row = Row {
    name: "index_disk_requests",
    unit: "",
    help: "Indexes looked for on disk: hit, miss, or broken (a damaged file, also a miss)",
};
const INDEX_DISK: Row = Row {
    name: "index_disk",
    unit: "bytes",
    help: "Disk that kept indexes take",
};

/// Everything that counts.
pub(crate) struct Observer {
    metrics: Metrics,
    traffic: Traffic,
    recorder: Option<Recorder>,
    requests: Family,
    bytes: Family,
    waits: Family,
    builds: Counter,
    memory: Gauge,
    titles: Gauge,
    segments: Gauge,
    on_disk: Family,
    disk: Gauge,
}

/// A request that is being answered.
pub(crate) struct Seen {
    began: Instant,
    /// What goes into the record; nothing where nobody wants one.
    access: Option<Box<Access>>,
}

impl Observer {
    pub(crate) fn new(metrics: Metrics, recorder: Option<Recorder>) -> Observer {
        Observer {
            traffic: Traffic::new(&metrics, KINDS),
            requests: metrics.family(&STORAGE_REQUESTS, &["reason"]),
            bytes: metrics.family(&STORAGE_BYTES, &["reason"]),
            waits: metrics.family(&STORAGE_WAITS, &["reason"]),
            builds: metrics.counter(&INDEX_BUILDS),
            memory: metrics.gauge(&INDEX_MEMORY),
            titles: metrics.gauge(&INDEX_TITLES),
            segments: metrics.gauge(&SEGMENT_MEMORY),
            on_disk: metrics.family(&INDEX_DISK_REQUESTS, &["result"]),
            disk: metrics.gauge(&INDEX_DISK),
            metrics,
            recorder,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Brings counters that are kept elsewhere up to date, before they are shown.
    pub(crate) fn refresh(&self, catalog: &Catalog, segments: &Segments) {
        let meter = catalog.folder().meter();
        for reason in Reason::ALL {
            let label = &[reason.label()];
            raise(&self.requests.of(label), meter.requests(reason));
            raise(&self.bytes.of(label), meter.bytes(reason));
            raise(&self.waits.of(label), meter.waits(reason));
        }
        raise(&self.builds, catalog.built());
        self.memory
            .set(i64::try_from(catalog.bytes()).unwrap_or(i64::MAX));
        self.segments
            .set(i64::try_from(segments.bytes()).unwrap_or(i64::MAX));
        self.titles
            .set(i64::try_from(catalog.len()).unwrap_or(i64::MAX));
        if let Some((counts, bytes)) = catalog.indexes().counts() {
            let DiskCounts {
                hits,
                misses,
                broken,
            } = counts;
            for (result, count) in [("hit", hits), ("miss", misses), ("broken", broken)] {
                raise(&self.on_disk.of(&[result]), count);
            }
            self.disk.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// A request has come.
    pub(crate) fn begin(&self, parts: &http::request::Parts, conn: &Conn) -> Seen {
        let wanted = self.recorder.is_some() || tracing::enabled!(tracing::Level::DEBUG);
        let access = wanted.then(|| Box::new(Access::of(parts, conn)));
        Seen {
            began: Instant::now(),
            access,
        }
    }

    /// It is answered; the record follows when the body has left.
    pub(crate) fn end(
        &self,
        seen: Seen,
        kind: Kind,
        response: Response<Body>,
        error: Option<Error>,
    ) -> Response<Body> {
        let status = response.status();
        if let Some(error) = &error
            && status.is_server_error()
        {
            tracing::error!(%error, "request failed");
        }
        let (traffic, recorder) = (self.traffic.clone(), self.recorder.clone());
        let (mut response, body) = response.into_parts();
        if let Some(access) = &seen.access
            && let Ok(id) = HeaderValue::from_str(access.request_id.as_str())
        {
            response.headers.insert(REQUEST_ID, id);
        }
        let body = body.on_end(move |end| {
            traffic.request(kind as usize, status);
            traffic.bytes(kind as usize, end.bytes);
            let Some(mut access) = seen.access else {
                return;
            };
            access.status = status.as_u16();
            access.kind = kind.name();
            access.bytes = end.bytes;
            access.complete = end.complete;
            access.total_us = micros(seen.began.elapsed());
            access.first_byte_us = end.first_byte.map(|at| micros(at - seen.began));
            let cut = end.error.as_ref().map(|cut| cut.to_string());
            access.error = error.map(|e| e.context).or(cut).map(Into::into);
            log(&access);
            if let Some(recorder) = &recorder {
                recorder.access(*access);
            }
        });
        Response::from_parts(response, body)
    }
}

fn raise(counter: &Counter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

fn log(access: &Access) {
    tracing::debug!(
        method = access.method.as_str(),
        path = access.path.as_str(),
        status = access.status,
        bytes = access.bytes,
        total_us = access.total_us,
        complete = access.complete,
        error = access.error.as_ref().map(|e| e.as_str()),
        "request"
    );
}
