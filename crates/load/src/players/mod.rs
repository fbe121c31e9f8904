//! Emulated viewers: players as state machines over virtual time.
//!
//! A viewer's journey: [`population`] decides who comes when, with which [`device`], and what they
//! do; a [`Player`] (a [`viewer`], or one of the plainer [`sequence`] and [`consumer`]) says what it
//! asks for next and is told how it went; [`abr`] chooses the bitrate, [`cmcd`] tells the server;
//! [`qoe`] says how it was to watch.
//!
//! What is *not* in those: no IO, no clock. Time is an argument, so that hours of viewing are played
//! in milliseconds in tests, and the same seed decides the same.

pub mod abr;
pub mod cmcd;
pub mod consumer;
pub mod device;
pub mod drive;
pub mod live;
pub mod player;
pub mod population;
pub mod qoe;
pub mod sequence;
pub mod stream;
pub mod told;
pub mod viewer;

pub use player::{Answer, Document, Fetch, Player, Step, What};
