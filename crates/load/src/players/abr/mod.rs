//! Adaptive bitrate rules: which level of the ladder to ask for next.
//!
//! A rule sees what a player knows (what is buffered, what was measured) and says a [`Choice`]. All
//! bitrates are bits a second, all times seconds.

mod bba;
mod bola;
mod dynamic;
mod estimate;
mod fixed;
mod mpc;
#[cfg(test)]
mod sabre;
#[cfg(test)]
mod simulator;
mod throughput;

pub use bba::Bba;
pub use bola::Bola;
pub use dynamic::Dynamic;
pub use estimate::{Estimate, Estimator, Sample};
pub use fixed::{Fixed, Random};
pub use mpc::RobustMpc;
pub use throughput::Throughput;

/// What a rule may look at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Bitrates of the levels that may be chosen, ascending; never empty.
    pub bitrates: &'a [f64],
    /// Seconds that can be played without another byte.
    pub buffer_s: f64,
    /// Seconds that are buffered at most.
    pub buffer_max_s: f64,
    /// Seconds of the next segment.
    pub segment_s: f64,
    /// Segments chosen since the start, or since the last seek.
    pub chosen: usize,
    /// Segments left, the next one included.
    pub left: usize,
    /// The level of the last segment.
    pub last: Option<usize>,
    /// What was measured; nothing before the first segment.
    pub estimate: Option<Estimate>,
}

/// What to ask for next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The level.
    pub level: usize,
    /// Seconds to let pass first.
    pub wait_s: f64,
}

impl From<usize> for Choice {
    fn from(level: usize) -> Choice {
        Choice { level, wait_s: 0.0 }
    }
}

/// A rule.
pub trait Abr: std::fmt::Debug + Send {
    /// Chooses the level of the next segment.
    fn choose(&mut self, view: &View<'_>) -> Choice;

    /// A segment has come; `view` is the state after it, `took_s` how long it took.
    fn downloaded(&mut self, _view: &View<'_>, _level: usize, _took_s: f64) {}

    /// The player could not ask for so many seconds because its buffer was full.
    fn idled(&mut self, _seconds: f64) {}

    /// The player starts over somewhere else.
    fn sought(&mut self) {}
}

/// The highest level whose segments arrive in less time than they last, at this throughput and
/// latency; the lowest if none does.
fn sustainable(view: &View<'_>, throughput_bps: f64, latency_s: f64) -> usize {
    let fits =
        |bitrate: f64| latency_s + view.segment_s * bitrate / throughput_bps <= view.segment_s;
    let above = view
        .bitrates
        .iter()
        .skip(1)
        .take_while(|bitrate| fits(**bitrate));
    above.count()
}
