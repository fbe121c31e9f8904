//! What is written down about requests: records, counters, the log.

use crate::catalog::Catalog;
use crate::ready::Segments;
use crate::route::{Manifest, Part, Request};
use http::Response;
use http::header::HeaderValue;
use net::metrics::{Counter, Family, Gauge, Metrics, Row, Traffic};
use net::record::{Access, REQUEST_ID, Recorder, Storage, micros};
use net::{Body, Conn, Error};
use std::time::Instant;
use store::{DiskCounts, Done, Reason, Remote, Watch};

/// What a request is about, as records and counters call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Segment,
    Init,
    Playlist,
    Mpd,
    Key,
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
    "key",
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
            Request::Key(_) => Kind::Key,
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
const CONNECTIONS_OPENED: Row = Row {
    name: "storage_connections_opened",
    unit: "",
    help: "Connections to the storage opened",
};
const CONNECTIONS_CLOSED: Row = Row {
    name: "storage_connections_closed",
    unit: "",
    help: "Connections to the storage closed, by either end",
};
const CONNECTIONS_REUSED: Row = Row {
    name: "storage_connections_reused",
    unit: "",
    help: "Requests sent on a connection that had carried one before",
};
const CONNECTIONS_RESUMED: Row = Row {
    name: "storage_connections_resumed",
    unit: "",
    help: "Connections to the storage opened that resumed a TLS session",
};
const CONNECTIONS_OPEN: Row = Row {
    name: "storage_connections_open",
    unit: "",
    help: "Connections to the storage that are open",
};
const STORAGE_MEMORY: Row = Row {
    name: "storage_memory",
    unit: "bytes",
    help: "Memory that parts of remote films take",
};
const STORAGE_PIPED: Row = Row {
    name: "storage_piped",
    unit: "bytes",
    help: "Bytes of the storage that were passed on uncopied, through a pipe",
};
const ENDPOINTS_DOWN: Row = Row {
    name: "storage_endpoints_down",
    unit: "",
    help: "Endpoints of the storage that are taken to be down",
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
    far: Far,
    builds: Counter,
    memory: Gauge,
    titles: Gauge,
    segments: Gauge,
    on_disk: Family,
    disk: Gauge,
}

/// What is counted of storage over a network.
struct Far {
    opened: Counter,
    closed: Counter,
    reused: Counter,
    resumed: Counter,
    open: Gauge,
    memory: Gauge,
    piped: Counter,
    down: Gauge,
}

impl Far {
    fn new(metrics: &Metrics) -> Far {
        Far {
            opened: metrics.counter(&CONNECTIONS_OPENED),
            closed: metrics.counter(&CONNECTIONS_CLOSED),
            reused: metrics.counter(&CONNECTIONS_REUSED),
            resumed: metrics.counter(&CONNECTIONS_RESUMED),
            open: metrics.gauge(&CONNECTIONS_OPEN),
            memory: metrics.gauge(&STORAGE_MEMORY),
            piped: metrics.counter(&STORAGE_PIPED),
            down: metrics.gauge(&ENDPOINTS_DOWN),
        }
    }

    fn refresh(&self, remote: &Remote) {
        let connections = remote.connections();
        raise(&self.opened, connections.opened());
        raise(&self.closed, connections.closed());
        raise(&self.reused, connections.reused());
        raise(&self.resumed, connections.resumed());
        set(&self.open, connections.open());
        set(&self.memory, remote.held_bytes());
        raise(&self.piped, remote.meter().piped_bytes());
        set(&self.down, remote.endpoints_down() as u64);
    }
}

/// Writes a record of each request of the storage.
pub(crate) fn watch(recorder: Recorder) -> Watch {
    Watch::new(move |done: Done| {
        let (connection, reused) = done.connection.unzip();
        recorder.storage(Storage {
            time: done.began,
            record: "storage",
            reason: done.reason.label(),
            of: done.of.label(),
            method: done.method,
            key: done.key.into(),
            endpoint: done.endpoint.into(),
            offset: done.range.as_ref().map(|range| range.start),
            asked: done.range.as_ref().map(|range| range.end - range.start),
            status: done.status,
            bytes: done.bytes,
            connection,
            reused,
            first_byte_us: done.first_byte.map(micros),
            total_us: micros(done.total),
            complete: done.complete,
            error: done.error.map(Into::into),
        });
    })
}

/// A request that is being answered.
pub(crate) struct Seen {
    /// When it came and what goes into the record; nothing where nobody wants one.
    noted: Option<(Instant, Box<Access>)>,
}

impl Observer {
    pub(crate) fn new(metrics: Metrics, recorder: Option<Recorder>) -> Observer {
        Observer {
            traffic: Traffic::new(&metrics, KINDS),
            requests: metrics.family(&STORAGE_REQUESTS, &["reason"]),
            bytes: metrics.family(&STORAGE_BYTES, &["reason"]),
            waits: metrics.family(&STORAGE_WAITS, &["reason"]),
            far: Far::new(&metrics),
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
        let meter = catalog.store().meter();
        for reason in Reason::ALL {
            let label = &[reason.label()];
            raise(&self.requests.of(label), meter.requests(reason));
            raise(&self.bytes.of(label), meter.bytes(reason));
            raise(&self.waits.of(label), meter.waits(reason));
        }
        if let Some(remote) = catalog.store().remote() {
            self.far.refresh(remote);
        }
        raise(&self.builds, catalog.built());
        set(&self.memory, catalog.bytes());
        set(&self.segments, segments.bytes());
        set(&self.titles, catalog.len() as u64);
        if let Some((counts, bytes)) = catalog.indexes().counts() {
            let DiskCounts {
                hits,
                misses,
                broken,
            } = counts;
            for (result, count) in [("hit", hits), ("miss", misses), ("broken", broken)] {
                raise(&self.on_disk.of(&[result]), count);
            }
            set(&self.disk, bytes);
        }
    }

    /// A request has come.
    pub(crate) fn begin(&self, parts: &http::request::Parts, conn: &Conn) -> Seen {
        let wanted = self.recorder.is_some() || tracing::enabled!(tracing::Level::DEBUG);
        Seen {
            noted: wanted.then(|| (Instant::now(), Box::new(Access::of(parts, conn)))),
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
        if let Some((_, access)) = &seen.noted
            && let Ok(id) = HeaderValue::from_str(access.request_id.as_str())
        {
            response.headers.insert(REQUEST_ID, id);
        }
        let body = body.on_end(seen.noted.is_some(), move |end| {
            traffic.request(kind as usize, status);
            traffic.bytes(kind as usize, end.bytes);
            let Some((began, mut access)) = seen.noted else {
                return;
            };
            access.status = status.as_u16();
            access.kind = kind.name();
            access.bytes = end.bytes;
            access.complete = end.complete;
            access.total_us = micros(began.elapsed());
            access.first_byte_us = end.first_byte.map(|at| micros(at - began));
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

fn set(gauge: &Gauge, to: u64) {
    gauge.set(i64::try_from(to).unwrap_or(i64::MAX));
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
