//! Emulated viewers: players as state machines over virtual time.
//!
//! [`population`] decides when viewers arrive, with which [`device_profile`], and what they do. A
//! [`Player`] (a [`viewer`], or one of the simpler [`sequence_worker`] and [`range_consumer`])
//! returns its next request and receives the result. [`abr`] chooses the bitrate, [`cmcd`] reports
//! to the server, and [`qoe`] scores the session.
//!
//! Players do no IO and have no clock. Time is an argument, so tests play hours of media in
//! milliseconds, and the same seed leads to the same decisions.

pub mod abr;
pub mod cmcd;
pub mod device_profile;
pub mod drive;
pub mod player_interface;
pub mod player_presets;
pub mod population;
pub mod population_report;
pub mod qoe;
pub mod range_consumer;
pub mod sequence_worker;
pub mod text_choice;
pub mod title_ladder;
pub mod viewer;
pub mod viewer_progress;

pub use player_interface::{
    FetchProgress, FetchPurpose, FetchResult, MediaFetch, ParsedDocument, Player, PlayerAction,
};
