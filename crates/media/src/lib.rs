//! Bytes in, bytes out: films as tables, and what players are told about them.
//!
//! The journey of a film, in the order data flows:
//!
//! 1. [`index`]: [`index::Indexer`] asks for byte ranges of one file and is fed them, until it
//!    can give an [`index::Index`]: per track, compact tables of samples.
//! 2. [`presentation`]: the indexes of a title's files plus rules become a
//!    [`presentation::Presentation`]: renditions on one grid of segment boundaries.
//! 3. [`plan`]: a segment (rendition, n) becomes a [`plan::Plan`]: head bytes that we make and
//!    source ranges, with the exact length, before any media byte is read.
//! 4. [`manifest`]: HLS playlists and DASH MPDs of a presentation.
//!
//! Beside it, [`mp4`]: index MP4s, which keep an index as a file, and progressive MP4s made of one.
//!
//! What is *not* here: no IO, no clock, no threads, no async. Whoever calls brings the bytes.

pub mod bmff;
pub mod bytes;
pub mod codec;
pub mod error;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod index;
pub mod ism;
pub mod manifest;
pub mod mp4;
pub mod plan;
pub mod presentation;
pub mod time;
pub mod ts;
mod xml;

pub use error::{Error, Result};
