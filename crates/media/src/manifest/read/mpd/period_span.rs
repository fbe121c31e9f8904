//! The time of a period.

/// Start of a period, and its duration if known, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodSpan {
    pub(super) start_ns: i64,
    pub(super) duration_ns: Option<i64>,
}
