//! Telemetry of the server, namely access records, storage records, metrics, traces and the log.

use crate::resource_kind::{RESOURCE_KINDS, ResourceKind};
use crate::response::response_cache::segments::SegmentCache;
use crate::title::catalog::Catalog;
use http::Response;
use http::header::HeaderValue;
use net::cmcd::CmcdData;
use net::metrics::{
    Counter, CounterFamily, Gauge, MetricSpec, Metrics, RequestHistograms, TRACE_SPANS_DROPPED,
    TrafficMetrics,
};
use net::record::{AccessRecord, REQUEST_ID, Recorder, StorageRequestRecord, micros};
use net::{Body, Conn, Error, headers};
use std::time::Instant;
use store::{
    CompletedRequest, DiskLookupCounts, Meter, Remote, RequestObserver, RequestReason, Store,
};
use trace::{ActiveTrace, RequestTracing, TracedRequest};

const STORAGE_REQUESTS: MetricSpec = MetricSpec {
    name: "storage_requests",
    unit: "",
    help: "Byte ranges requested from storage",
};
const STORAGE_BYTES: MetricSpec = MetricSpec {
    name: "storage",
    unit: "bytes",
    help: "Bytes requested from storage",
};
const STORAGE_WAITS: MetricSpec = MetricSpec {
    name: "storage_waits",
    unit: "",
    help: "Byte ranges that were not in memory, so that a thread waited for storage",
};
const CONNECTIONS_OPENED: MetricSpec = MetricSpec {
    name: "storage_connections_opened",
    unit: "",
    help: "Storage connections opened",
};
const CONNECTIONS_CLOSED: MetricSpec = MetricSpec {
    name: "storage_connections_closed",
    unit: "",
    help: "Storage connections closed, by either side",
};
const CONNECTIONS_REUSED: MetricSpec = MetricSpec {
    name: "storage_connections_reused",
    unit: "",
    help: "Storage requests sent on a reused connection",
};
const CONNECTIONS_RESUMED: MetricSpec = MetricSpec {
    name: "storage_connections_resumed",
    unit: "",
    help: "Storage connections opened that resumed a TLS session",
};
const CONNECTIONS_OPEN: MetricSpec = MetricSpec {
    name: "storage_connections_open",
    unit: "",
    help: "Open storage connections",
};
const STORAGE_MEMORY: MetricSpec = MetricSpec {
    name: "storage_memory",
    unit: "bytes",
    help: "Memory of cached ranges of remote films",
};
const STORAGE_PIPED: MetricSpec = MetricSpec {
    name: "storage_piped",
    unit: "bytes",
    help: "Bytes from storage that were sent through a pipe, without a copy",
};
const ENDPOINTS_DOWN: MetricSpec = MetricSpec {
    name: "storage_endpoints_down",
    unit: "",
    help: "Storage endpoints that are considered down",
};
const INDEX_BUILDS: MetricSpec = MetricSpec {
    name: "index_builds",
    unit: "",
    help: "Titles indexed, including failures",
};
const INDEX_MEMORY: MetricSpec = MetricSpec {
    name: "index_memory",
    unit: "bytes",
    help: "Estimated memory of indexes, presentations and manifests",
};
const INDEX_TITLES: MetricSpec = MetricSpec {
    name: "index_titles",
    unit: "",
    help: "Titles in memory, including those that cannot be served",
};

const SEGMENT_MEMORY: MetricSpec = MetricSpec {
    name: "segment_memory",
    unit: "bytes",
    help: "Memory of the segment cache: plans, and the bytes of promoted or generated segments",
};
const INDEX_DISK_REQUESTS: MetricSpec = MetricSpec {
    name: "index_disk_requests",
    unit: "",
    help: "Look-ups in the index cache on disk: hit, miss, or broken (a damaged file, also a miss)",
};
const INDEX_DISK: MetricSpec = MetricSpec {
    name: "index_disk",
    unit: "bytes",
    help: "Disk space of the index cache",
};

/// The metrics, the recorder and the tracing of the server.
pub(crate) struct Telemetry {
    metrics: Metrics,
    traffic: TrafficMetrics,
    timings: RequestHistograms,
    tracing: Option<RequestTracing>,
    spans_dropped: Counter,
    recorder: Option<Recorder>,
    requests: CounterFamily,
    bytes: CounterFamily,
    waits: CounterFamily,
    remote: RemoteStorageMetrics,
    builds: Counter,
    memory: Gauge,
    titles: Gauge,
    segments: Gauge,
    on_disk: CounterFamily,
    disk: Gauge,
}

/// Metrics of storage on a network.
struct RemoteStorageMetrics {
    opened: Counter,
    closed: Counter,
    reused: Counter,
    resumed: Counter,
    open: Gauge,
    memory: Gauge,
    piped: Counter,
    down: Gauge,
}

impl RemoteStorageMetrics {
    fn new(metrics: &Metrics) -> RemoteStorageMetrics {
        RemoteStorageMetrics {
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

    /// Sets the metrics to the sums over all remote stores.
    fn update_from_remotes(&self, remotes: &[&Remote]) {
        let sum = |read: fn(&Remote) -> u64| remotes.iter().map(|remote| read(remote)).sum();
        raise_counter(
            &self.opened,
            sum(|remote| remote.connection_counts().opened_count()),
        );
        raise_counter(
            &self.closed,
            sum(|remote| remote.connection_counts().closed_count()),
        );
        raise_counter(
            &self.reused,
            sum(|remote| remote.connection_counts().reused_count()),
        );
        raise_counter(
            &self.resumed,
            sum(|remote| remote.connection_counts().resumed_count()),
        );
        set_gauge(
            &self.open,
            sum(|remote| remote.connection_counts().open_count()),
        );
        set_gauge(&self.memory, sum(Remote::reserved_bytes));
        raise_counter(&self.piped, sum(|remote| remote.meter().piped_bytes()));
        set_gauge(&self.down, sum(|remote| remote.endpoints_down() as u64));
    }
}

/// Returns an observer that records each storage request.
pub(crate) fn storage_record_observer(recorder: Recorder) -> RequestObserver {
    RequestObserver::new(move |done: CompletedRequest| {
        let (connection, reused) = done.connection.unzip();
        recorder.record_storage(StorageRequestRecord {
            time: done.started,
            record: "storage",
            reason: done.reason.label(),
            of: done.original_reason.label(),
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

/// A request whose response has not been sent yet.
pub(crate) struct RequestInProgress {
    started: Instant,
    /// The access record. `None` if neither a recorder nor the debug log needs the record.
    access: Option<Box<AccessRecord>>,
    traced: Option<Box<TracedRequest>>,
}

impl RequestInProgress {
    /// Returns the trace of the request. Returns `None` if the request is not traced.
    pub(crate) fn trace_of_request(&self) -> Option<&ActiveTrace> {
        self.traced.as_ref().map(|traced| traced.trace_of_request())
    }
}

impl Telemetry {
    pub(crate) fn new(
        metrics: Metrics,
        recorder: Option<Recorder>,
        tracing: Option<RequestTracing>,
    ) -> Telemetry {
        Telemetry {
            traffic: TrafficMetrics::new(&metrics, RESOURCE_KINDS),
            timings: RequestHistograms::new(&metrics, "kind", RESOURCE_KINDS),
            tracing,
            spans_dropped: metrics.counter(&TRACE_SPANS_DROPPED),
            requests: metrics.counter_family(&STORAGE_REQUESTS, &["reason"]),
            bytes: metrics.counter_family(&STORAGE_BYTES, &["reason"]),
            waits: metrics.counter_family(&STORAGE_WAITS, &["reason"]),
            remote: RemoteStorageMetrics::new(&metrics),
            builds: metrics.counter(&INDEX_BUILDS),
            memory: metrics.gauge(&INDEX_MEMORY),
            titles: metrics.gauge(&INDEX_TITLES),
            segments: metrics.gauge(&SEGMENT_MEMORY),
            on_disk: metrics.counter_family(&INDEX_DISK_REQUESTS, &["result"]),
            disk: metrics.gauge(&INDEX_DISK),
            metrics,
            recorder,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Copies the counts of other modules into the metrics. The caller must call this function
    /// before it sends the metrics.
    pub(crate) fn refresh_gauges(&self, catalog: &Catalog, segments: &SegmentCache) {
        let stores = catalog.stores();
        for reason in RequestReason::ALL {
            let label = &[reason.label()];
            let sum = |read: fn(&Meter, RequestReason) -> u64| {
                stores.iter().map(|store| read(store.meter(), reason)).sum()
            };
            raise_counter(&self.requests.with_labels(label), sum(Meter::request_count));
            raise_counter(&self.bytes.with_labels(label), sum(Meter::read_byte_count));
            raise_counter(
                &self.waits.with_labels(label),
                sum(Meter::storage_wait_count),
            );
        }
        let remotes: Vec<_> = stores.iter().filter_map(Store::remote).collect();
        self.remote.update_from_remotes(&remotes);
        raise_counter(&self.builds, catalog.build_count());
        let dropped = self.tracing.as_ref().map(RequestTracing::dropped_spans);
        raise_counter(&self.spans_dropped, dropped.unwrap_or(0));
        set_gauge(&self.memory, catalog.memory_bytes());
        set_gauge(&self.segments, segments.memory_bytes());
        set_gauge(&self.titles, catalog.cached_count() as u64);
        if let Some((counts, bytes)) = catalog.index_cache().disk_usage() {
            let DiskLookupCounts {
                hits,
                misses,
                broken,
            } = counts;
            for (result, count) in [("hit", hits), ("miss", misses), ("broken", broken)] {
                raise_counter(&self.on_disk.with_labels(&[result]), count);
            }
            set_gauge(&self.disk, bytes);
        }
    }

    /// Starts the access record and the trace of a request, if they are enabled.
    pub(crate) fn start_request(
        &self,
        parts: &http::request::Parts,
        conn: &Conn,
    ) -> RequestInProgress {
        let wanted = self.recorder.is_some() || tracing::enabled!(tracing::Level::DEBUG);
        RequestInProgress {
            started: Instant::now(),
            traced: self.tracing.as_ref().and_then(|on| on.start_request(parts)),
            access: wanted.then(|| {
                let mut access = AccessRecord::from_request(parts, conn);
                if self
                    .recorder
                    .as_ref()
                    .is_some_and(Recorder::records_more_than_access)
                {
                    access.cmcd =
                        CmcdData::parse_cmcd(parts.uri.query(), &parts.headers).to_record();
                }
                Box::new(access)
            }),
        }
    }

    /// Attaches the access record to the response. The record is written when the body has been
    /// sent.
    pub(crate) fn finish_request(
        &self,
        in_progress: RequestInProgress,
        kind: ResourceKind,
        response: &mut Response<Body>,
        error: Option<Error>,
    ) {
        let status = response.status();
        if let Some(error) = &error
            && status.is_server_error()
        {
            tracing::error!(%error, "request failed");
        }
        let (traffic, recorder) = (self.traffic.clone(), self.recorder.clone());
        let timings = self.timings.clone();
        if let Some(access) = &in_progress.access
            && let Ok(id) = HeaderValue::from_str(access.request_id.as_str())
        {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let RequestInProgress {
            started,
            access,
            traced,
        } = in_progress;
        if let Some(traced) = &traced {
            headers::add_server_timing(
                response.headers_mut(),
                traced.trace_of_request().server_timing(),
            );
        }
        let cause = error.map(|error| error.operator_message().to_owned());
        response.body_mut().on_end(true, move |end| {
            traffic.count_request(kind as usize, status);
            traffic.count_bytes(kind as usize, end.bytes);
            timings.record_request(kind as usize, started, end);
            if let Some(traced) = traced {
                if let Some(trace_id) = traced.exported_trace_id() {
                    timings.record_exemplar(kind as usize, started, end, trace_id);
                }
                traced.end_request(status, ("headwater.kind", kind.label()));
            }
            let Some(mut access) = access else {
                return;
            };
            access.status = status.as_u16();
            access.kind = kind.label();
            access.bytes = end.bytes;
            access.complete = end.complete;
            access.total_us = end.finished.map_or(0, |at| micros(at - started));
            access.first_byte_us = end.first_byte.map(|at| micros(at - started));
            let cut = end.error.as_ref().map(|cut| cut.to_string());
            access.error = cause.or(cut).map(Into::into);
            log_request(&access);
            if let Some(recorder) = &recorder {
                recorder.record_access(*access);
            }
        });
    }
}

fn raise_counter(counter: &Counter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

fn set_gauge(gauge: &Gauge, to: u64) {
    gauge.set(i64::try_from(to).unwrap_or(i64::MAX));
}

fn log_request(access: &AccessRecord) {
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
