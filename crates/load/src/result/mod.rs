//! The results of a run, which are distributions, counts, logs and records.

mod finished_request;
mod hdr_log;
mod latency_histogram;
mod request_records;
mod request_stats;
mod run_outputs;
mod run_result;
mod url_group_stats;

pub(crate) use finished_request::FinishedRequest;
pub use hdr_log::{HdrLogContent, HdrLogError, HdrLogWriter, RunFacts, read_hdr_log};
pub use latency_histogram::{HistogramError, LatencyHistogram};
pub use request_records::{
    RecordError, RecordWriter, RequestRecord, create_file_or_stdout, read_records,
    read_records_from,
};
pub use request_stats::RequestStats;
pub use run_outputs::{OutputError, RunOutputs};
pub use run_result::{LAG_P99_MAX_MS, RunResult, SecondStats, StepResult, TARGETS_MAX, VERSION};
pub(crate) use url_group_stats::url_group_or_other;
pub use url_group_stats::{URL_GROUP_OTHER, URL_GROUPS_MAX, UrlGroupStats};
