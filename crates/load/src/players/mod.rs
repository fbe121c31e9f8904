//! Emulated viewers. Their players are state machines that receive the time as an argument.
//!
//! [`population`] decides when each viewer arrives, which [`device_profile`] the viewer has, and
//! what the viewer does. A [`Player`] (a [`viewer`], or one of the simpler [`sequence_worker`] and
//! [`range_consumer`]) returns its next request and receives the result. [`abr`] chooses the
//! bitrate, [`cmcd`] adds reports to requests, and [`qoe`] scores the session.
//!
//! Players do no IO and have no clock. Tests can therefore play hours of media in milliseconds, and
//! the same seed leads to the same decisions.

pub mod abr;
pub mod cmcd;
pub mod device_profile;
pub mod drive;
pub mod player_interface;
pub mod player_presets;
pub mod population;
pub mod population_report;
pub mod progress_lines;
pub mod qoe;
pub mod range_consumer;
pub mod sequence_worker;
pub mod text_choice;
pub mod title_ladder;
pub mod viewer;

pub use player_interface::{
    FetchProgress, FetchPurpose, FetchResult, MediaFetch, ParsedDocument, Player, PlayerAction,
};
