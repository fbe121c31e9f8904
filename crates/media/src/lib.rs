//! Packages films without I/O, from sample tables to segments and manifests.
//!
//! The data flows through four modules:
//!
//! 1. In [`index`], [`index::Indexer`] requests byte ranges of one file and receives them. The
//!    result is an [`index::Index`] with compact sample tables for each track.
//! 2. In [`presentation`], the indexes of a title's files and a set of rules become a
//!    [`presentation::Presentation`]. Renditions that align share one grid of segment boundaries.
//! 3. In [`plan`], a segment (rendition, n) becomes a [`plan::Plan`], which consists of generated
//!    head bytes and source ranges. The exact length of the segment is known before any media byte
//!    is read.
//! 4. [`manifest`] writes the HLS playlists and DASH MPDs of a presentation.
//!
//! [`text`] parses subtitles and splits them at the segment boundaries of the presentation.
//! [`protection`] adds Common Encryption to the segments and manifests of a presentation.
//!
//! In addition, [`mp4`] writes index MP4s (an index stored as a file) and progressive MP4s. [`ism`]
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
