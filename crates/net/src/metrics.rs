//! Counters, declared once each.

/// All metrics of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Metrics;
