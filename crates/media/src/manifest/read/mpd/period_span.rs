//! Start and duration of a period.

/// Start and duration of a period in nanoseconds. The duration may be unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodSpan {
    pub(super) start_ns: i64,
    pub(super) duration_ns: Option<i64>,
}
