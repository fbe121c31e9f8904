//! What a viewer is told before, and what is told of one.

use super::super::cmcd::Style;
use super::super::device::Device;
use super::super::player::Micros;
use media::manifest::read::Part;

/// What all viewers of a run share.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Seconds that are buffered at most.
    pub buffer_max_s: f64,
    /// Seconds that each track must hold before playing starts; a segment at least.
    pub start_s: f64,
    /// The same after a stall.
    pub resume_s: f64,
    /// Times that a failed request is asked again, half a second later, then one, then two…
    pub retries: u32,
    /// Whether and how the server is told.
    pub cmcd: Option<Style>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            buffer_max_s: 30.0,
            start_s: 0.0,
            resume_s: 0.0,
            retries: 3,
            cmcd: None,
        }
    }
}

/// What one viewer will do, decided before.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The manifest.
    pub manifest: Part,
    /// The device.
    pub device: Device,
    /// When they leave, at the latest.
    pub leave_at: Micros,
    /// Microseconds that they wait for pictures before they give up.
    pub patience: Option<Micros>,
    /// When they seek, and where to as a share of the title; in order of time.
    pub seeks: Vec<(Micros, f64)>,
    /// The session's name.
    pub session: u128,
}

/// How it ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The title was over.
    Finished,
    /// They left when they had meant to.
    Left,
    /// They lost patience.
    GaveUp,
    /// What they needed could not be had.
    Failed,
    /// The run was over.
    Stopped,
}

/// What a viewer is doing, for live figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glance {
    /// When this was true.
    pub at: Micros,
    /// Microseconds that were buffered.
    pub buffer: Micros,
    /// Pictures move.
    pub playing: bool,
    /// They moved before, and wait for bytes now.
    pub stalled: bool,
    /// Bits a second of the level that was chosen last.
    pub bps: f64,
}
