//! Packaging of films without I/O: sample tables, segments and manifests.
//!
//! The data flows through four modules:
//!
//! 1. [`index`]: [`index::Indexer`] requests byte ranges of one file and receives them until it can
//!    build an [`index::Index`]: compact sample tables for each track.
//! 2. [`presentation`]: the indexes of a title's files plus rules become a
//!    [`presentation::Presentation`]: renditions on one grid of segment boundaries.
//! 3. [`plan`]: a segment (rendition, n) becomes a [`plan::Plan`]: generated head bytes and source
//!    ranges. The exact length is known before any media byte is read.
//! 4. [`manifest`]: HLS playlists and DASH MPDs of a presentation.
//!
//! [`text`] parses subtitles and cuts them along the same segments. [`protection`] adds Common
//! Encryption to the segments and manifests of a presentation.
//!
//! Beside them, [`mp4`] writes index MP4s (an index stored as a file) and progressive MP4s. [`ism`]
//! reads and writes server manifests, and [`ts`] muxes transport streams and packed audio.
//!
//! This crate has no I/O, no clock, no threads and no async code. The caller supplies the bytes.

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
pub mod protection;
pub mod text;
pub mod time;
pub mod ts;
mod xml;

pub use error::{Error, Result};
