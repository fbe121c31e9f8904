//! The panels of all dashboards. Queries use Grafana variables: `$job`, `$__rate_interval`, and the
//! variables in `numbers` of a dashboard.

use super::viewer_panels::VIEWERS;

/// One dashboard, written to `deploy/grafana/NAME.json`.
pub struct Dashboard {
    pub name: &'static str,
    pub title: &'static str,
    /// Numeric variables that the user of the dashboard may change. Each variable has a name, a
    /// label and a default.
    pub numbers: &'static [(&'static str, &'static str, &'static str)],
    pub panels: &'static [Panel],
}

/// One chart.
pub struct Panel {
    pub title: &'static str,
    /// A unit of Grafana, such as `Bps` or `percentunit`.
    pub unit: &'static str,
    /// Queries with their legends.
    pub queries: &'static [(&'static str, &'static str)],
}

pub const fn panel(
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel {
        title,
        unit,
        queries,
    }
}

pub const DASHBOARDS: &[Dashboard] = &[FLEET, ORIGIN, EDGE, VIEWERS, STORAGE_COST];

const FLEET: Dashboard = Dashboard {
    name: "fleet",
    title: "Headwater: fleet",
    numbers: &[],
    panels: &[
        panel(
            "Bytes sent",
            "Bps",
            &[(
                r#"sum by (job) (rate(headwater_http_response_bytes_total{job=~"$job"}[$__rate_interval]))"#,
                "{{job}}",
            )],
        ),
        panel(
            "Requests",
            "reqps",
            &[(
                r#"sum by (job) (rate(headwater_http_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{job}}",
            )],
        ),
        panel(
            "Share of requests with status 5xx",
            "percentunit",
            &[(
                r#"(sum by (job) (rate(headwater_http_requests_total{job=~"$job",status=~"5.."}[$__rate_interval])) or 0 * sum by (job) (rate(headwater_http_requests_total{job=~"$job"}[$__rate_interval]))) / sum by (job) (rate(headwater_http_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{job}}",
            )],
        ),
        panel(
            "Time to first byte, p50 and p99",
            "s",
            &[
                (
                    r#"histogram_quantile(0.5, sum by (job, le) (rate(headwater_http_first_byte_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{job}} p50",
                ),
                (
                    r#"histogram_quantile(0.99, sum by (job, le) (rate(headwater_http_first_byte_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "{{job}} p99",
                ),
            ],
        ),
        panel(
            "Requests in flight",
            "short",
            &[(
                r#"sum by (instance) (headwater_http_requests_in_flight{job=~"$job"})"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Open connections",
            "short",
            &[(
                r#"sum by (instance) (headwater_connections_open{job=~"$job"})"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Processor time",
            "short",
            &[(
                r#"rate(process_cpu_seconds_total{job=~"$job"}[$__rate_interval])"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Memory, as a share of the limit",
            "percentunit",
            &[(
                r#"headwater_memory_used_bytes{job=~"$job"} / headwater_memory_limit_bytes"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Open files, as a share of the limit",
            "percentunit",
            &[(
                r#"process_open_fds{job=~"$job"} / process_max_fds"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Overload level, and refused requests",
            "short",
            &[
                (
                    r#"headwater_overload_level{job=~"$job"}"#,
                    "{{instance}} level",
                ),
                (
                    r#"sum by (instance) (rate(headwater_overload_refused_total{job=~"$job"}[$__rate_interval]))"#,
                    "{{instance}} refused/s",
                ),
            ],
        ),
        panel(
            "Delay of workers, p99",
            "s",
            &[(
                r#"histogram_quantile(0.99, sum by (instance, le) (rate(headwater_worker_delay_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Copied bytes that wait to be sent",
            "bytes",
            &[(
                r#"headwater_send_memory_bytes{job=~"$job"}"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Connections cut and refused",
            "short",
            &[
                (
                    r#"sum by (reason) (rate(headwater_connections_cut_total{job=~"$job"}[$__rate_interval]))"#,
                    "cut: {{reason}}",
                ),
                (
                    r#"sum by (limit) (rate(headwater_connections_refused_total{job=~"$job"}[$__rate_interval]))"#,
                    "refused: {{limit}}",
                ),
            ],
        ),
        panel(
            "Time since the start",
            "s",
            &[(
                r#"time() - process_start_time_seconds{job=~"$job"}"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Drain in progress",
            "s",
            &[(r#"headwater_drain_seconds{job=~"$job"}"#, "{{instance}}")],
        ),
        panel(
            "Versions",
            "short",
            &[(
                r#"count by (version, program) (headwater_build_info{job=~"$job"})"#,
                "{{program}} {{version}}",
            )],
        ),
        panel(
            "Time until a certificate expires",
            "s",
            &[(
                r#"headwater_certificate_expiry_seconds{job=~"$job"} - time()"#,
                "{{instance}}",
            )],
        ),
    ],
};

const ORIGIN: Dashboard = Dashboard {
    name: "origin",
    title: "Headwater: origin",
    numbers: &[],
    panels: &[
        panel(
            "Requests by kind",
            "reqps",
            &[(
                r#"sum by (kind) (rate(headwater_http_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{kind}}",
            )],
        ),
        panel(
            "Bytes sent by kind",
            "Bps",
            &[(
                r#"sum by (kind) (rate(headwater_http_response_bytes_total{job=~"$job"}[$__rate_interval]))"#,
                "{{kind}}",
            )],
        ),
        panel(
            "Time to first byte by kind, p99",
            "s",
            &[(
                r#"histogram_quantile(0.99, sum by (kind, le) (rate(headwater_http_first_byte_seconds_bucket{job=~"$job",result=""}[$__rate_interval])))"#,
                "{{kind}}",
            )],
        ),
        panel(
            "Duration of responses by kind, p99",
            "s",
            &[(
                r#"histogram_quantile(0.99, sum by (kind, le) (rate(headwater_http_request_duration_seconds_bucket{job=~"$job",result=""}[$__rate_interval])))"#,
                "{{kind}}",
            )],
        ),
        panel(
            "Errors by status",
            "reqps",
            &[(
                r#"sum by (kind, status) (rate(headwater_http_requests_total{job=~"$job",status=~"[45].."}[$__rate_interval]))"#,
                "{{kind}} {{status}}",
            )],
        ),
        panel(
            "Titles in memory",
            "short",
            &[(r#"headwater_index_titles{job=~"$job"}"#, "{{instance}}")],
        ),
        panel(
            "Indexes built",
            "cps",
            &[(
                r#"rate(headwater_index_builds_total{job=~"$job"}[$__rate_interval])"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Index cache on disk",
            "cps",
            &[(
                r#"sum by (result) (rate(headwater_index_disk_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{result}}",
            )],
        ),
        panel(
            "Memory by owner",
            "bytes",
            &[
                (
                    r#"sum(headwater_index_memory_bytes{job=~"$job"})"#,
                    "indexes",
                ),
                (
                    r#"sum(headwater_segment_memory_bytes{job=~"$job"})"#,
                    "segments",
                ),
                (
                    r#"sum(headwater_storage_memory_bytes{job=~"$job"})"#,
                    "storage ranges",
                ),
                (
                    r#"sum(headwater_send_memory_bytes{job=~"$job",instance=~".+"} and on (instance) headwater_index_titles)"#,
                    "copies to send",
                ),
            ],
        ),
        panel(
            "Storage requests by reason",
            "reqps",
            &[(
                r#"sum by (reason) (rate(headwater_storage_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{reason}}",
            )],
        ),
        panel(
            "Waits for storage by reason",
            "cps",
            &[(
                r#"sum by (reason) (rate(headwater_storage_waits_total{job=~"$job"}[$__rate_interval]))"#,
                "{{reason}}",
            )],
        ),
        panel(
            "Storage connections",
            "short",
            &[
                (
                    r#"sum(headwater_storage_connections_open{job=~"$job"})"#,
                    "open",
                ),
                (
                    r#"sum(rate(headwater_storage_connections_opened_total{job=~"$job"}[$__rate_interval]))"#,
                    "opened/s",
                ),
                (
                    r#"sum(rate(headwater_storage_connections_reused_total{job=~"$job"}[$__rate_interval]))"#,
                    "reused/s",
                ),
            ],
        ),
        panel(
            "Storage endpoints down",
            "short",
            &[(
                r#"headwater_storage_endpoints_down{job=~"$job"}"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Keys loaded by result",
            "cps",
            &[(
                r#"sum by (result) (rate(headwater_key_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{result}}",
            )],
        ),
    ],
};

const EDGE: Dashboard = Dashboard {
    name: "edge",
    title: "Headwater: edge",
    numbers: &[],
    panels: &[
        panel(
            "Hit ratio",
            "percentunit",
            &[(
                r#"sum by (instance) (rate(headwater_cache_requests_total{job=~"$job",result=~"hit|stale|follow|revalidated"}[$__rate_interval])) / sum by (instance) (rate(headwater_cache_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Requests by cache result",
            "reqps",
            &[(
                r#"sum by (result) (rate(headwater_cache_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{result}}",
            )],
        ),
        panel(
            "Requests by reason",
            "reqps",
            &[(
                r#"sum by (result, reason) (rate(headwater_cache_reasons_total{job=~"$job"}[$__rate_interval]))"#,
                "{{result}}: {{reason}}",
            )],
        ),
        panel(
            "Time to first byte by cache result, p99",
            "s",
            &[(
                r#"histogram_quantile(0.99, sum by (result, le) (rate(headwater_http_first_byte_seconds_bucket{job=~"$job",result!=""}[$__rate_interval])))"#,
                "{{result}}",
            )],
        ),
        panel(
            "Time to first byte by kind of content, p99",
            "s",
            &[(
                r#"histogram_quantile(0.99, sum by (kind, le) (rate(headwater_http_first_byte_seconds_bucket{job=~"$job",result!=""}[$__rate_interval])))"#,
                "{{kind}}",
            )],
        ),
        panel(
            "Duration of responses by cache result, p99",
            "s",
            &[(
                r#"histogram_quantile(0.99, sum by (result, le) (rate(headwater_http_request_duration_seconds_bucket{job=~"$job",result!=""}[$__rate_interval])))"#,
                "{{result}}",
            )],
        ),
        panel(
            "Memory tier",
            "bytes",
            &[(
                r#"headwater_cache_memory_bytes{job=~"$job"}"#,
                "{{instance}}",
            )],
        ),
        panel(
            "Disk tier",
            "bytes",
            &[(r#"headwater_cache_disk_bytes{job=~"$job"}"#, "{{instance}}")],
        ),
        panel(
            "Disk tier: written, dropped and broken",
            "cps",
            &[
                (
                    r#"sum(rate(headwater_cache_disk_written_total{job=~"$job"}[$__rate_interval]))"#,
                    "written",
                ),
                (
                    r#"sum(rate(headwater_cache_disk_dropped_total{job=~"$job"}[$__rate_interval]))"#,
                    "dropped",
                ),
                (
                    r#"sum(rate(headwater_cache_disk_broken_total{job=~"$job"}[$__rate_interval]))"#,
                    "broken",
                ),
            ],
        ),
        panel(
            "Fetches in progress, and requests that wait for them",
            "short",
            &[
                (r#"sum(headwater_cache_flights{job=~"$job"})"#, "fetches"),
                (
                    r#"sum(headwater_cache_followers{job=~"$job"})"#,
                    "waiting requests",
                ),
            ],
        ),
        panel(
            "Requests to origins by result",
            "reqps",
            &[(
                r#"sum by (origin, result) (rate(headwater_upstream_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{origin}} {{result}}",
            )],
        ),
        panel(
            "Time until origins respond, p50 and p99",
            "s",
            &[
                (
                    r#"histogram_quantile(0.5, sum by (le) (rate(headwater_upstream_response_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "p50",
                ),
                (
                    r#"histogram_quantile(0.99, sum by (le) (rate(headwater_upstream_response_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                    "p99",
                ),
            ],
        ),
        panel(
            "Suspended origins",
            "short",
            &[(r#"headwater_upstream_out_now{job=~"$job"}"#, "{{instance}}")],
        ),
        panel(
            "Retries at a second origin",
            "cps",
            &[(
                r#"sum by (result) (rate(headwater_upstream_retries_total{job=~"$job"}[$__rate_interval]))"#,
                "{{result}}",
            )],
        ),
        panel(
            "Round-trip time of clients, p50",
            "s",
            &[(
                r#"histogram_quantile(0.5, sum by (algorithm, le) (rate(headwater_tcp_rtt_seconds_bucket{job=~"$job"}[$__rate_interval])))"#,
                "{{algorithm}}",
            )],
        ),
        panel(
            "Delivery rate to clients, p50",
            "Bps",
            &[(
                r#"histogram_quantile(0.5, sum by (algorithm, le) (rate(headwater_tcp_delivery_rate_bytes_per_second_bucket{job=~"$job"}[$__rate_interval])))"#,
                "{{algorithm}}",
            )],
        ),
    ],
};

/// The default prices are those of a common object store, per thousand requests and per GiB. The
/// prices are variables of the dashboard, so users can change them.
const STORAGE_COST: Dashboard = Dashboard {
    name: "storage-cost",
    title: "Headwater: storage cost",
    numbers: &[
        ("price_requests", "Price of 1000 requests", "0.0004"),
        ("price_gib", "Price of a GiB read", "0.09"),
    ],
    panels: &[
        panel(
            "Cost of requests per day",
            "short",
            &[(
                r#"86400 / 1000 * $price_requests * sum(rate(headwater_storage_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "requests",
            )],
        ),
        panel(
            "Cost of bytes per day",
            "short",
            &[(
                r#"86400 / 2^30 * $price_gib * sum(rate(headwater_storage_bytes_total{job=~"$job"}[$__rate_interval]))"#,
                "bytes",
            )],
        ),
        panel(
            "Bytes read from storage by reason",
            "Bps",
            &[(
                r#"sum by (reason) (rate(headwater_storage_bytes_total{job=~"$job"}[$__rate_interval]))"#,
                "{{reason}}",
            )],
        ),
        panel(
            "Bytes read per byte sent by origins",
            "percentunit",
            &[(
                r#"sum(rate(headwater_storage_bytes_total{job=~"$job"}[$__rate_interval])) / sum(rate(headwater_http_response_bytes_total{job=~"$job",kind!~"relay|admin"}[$__rate_interval]))"#,
                "read per sent",
            )],
        ),
        panel(
            "Share of hedged and repeated requests",
            "percentunit",
            &[(
                r#"sum by (reason) (rate(headwater_storage_requests_total{job=~"$job",reason=~"hedge|retry"}[$__rate_interval])) / ignoring (reason) group_left () sum(rate(headwater_storage_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "{{reason}}",
            )],
        ),
        panel(
            "Mean bytes of a request",
            "bytes",
            &[(
                r#"sum(rate(headwater_storage_bytes_total{job=~"$job"}[$__rate_interval])) / sum(rate(headwater_storage_requests_total{job=~"$job"}[$__rate_interval]))"#,
                "mean",
            )],
        ),
    ],
};
