//! Load at a given request rate. In an open loop, the times at which requests are due do not depend
//! on earlier responses.
//!
//! [`rate_profile`] and [`arrival_times`] determine when requests are due. [`request_target`]
//! chooses the target of each request. [`recorded_requests`] reads requests that were recorded
//! earlier, and [`replay_schedule`] schedules them again. Each generator thread (`thread_main`,
//! `rate_thread`) follows the schedule (`open_loop_schedule`, `monotonic_timer`). The thread passes
//! each request to a slot (`request_slot`, `slot_runner`), which sends one request at a time. A
//! thread counts results in `thread_stats`, and reports them every second (`thread_housekeeping`) to
//! the `collector`. The `collector` builds a `RunResult`. In a closed loop (`RateProfile::Max`),
//! each slot sends its next request after the previous response. `wakeup_batching` is used only in a
//! closed loop.

pub mod arrival_times;
mod collector;
pub mod manifest_targets;
mod monotonic_timer;
mod open_loop_schedule;
mod plan;
pub mod rate_profile;
mod rate_thread;
pub mod recorded_requests;
pub mod replay_schedule;
mod request_kind;
mod request_slot;
pub mod request_target;
mod run_metrics;
mod scheduled_request;
mod shared_run;
mod slot_runner;
mod thread_housekeeping;
mod thread_main;
mod thread_stats;
pub(crate) mod url_groups;
pub mod vegeta_format;
mod wakeup_batching;

pub use arrival_times::ArrivalSpacing;
pub use collector::{RateProgress, run_rate_plan};
pub use plan::RateRunPlan;
pub use rate_profile::RateProfile;
pub use request_kind::RequestKind;
pub use request_target::{RandomRanges, RequestTarget};
pub use run_metrics::RunMetrics;
