//! MPEG-2 transport streams and packed audio (RFC 8216, 3.2 and 3.4), from samples.
//!
//! A video segment is one programme with one stream: PAT, PMT, then one PES packet a frame.
//! Segments are made one by one and know nothing of each other, yet follow on seamlessly: the
//! continuity counter of the video starts at 0 and ends at 15 in each (the last frame's bytes
//! are spread over up to 15 packets more), timestamps run on, and tables are repeated.

mod adts;
mod annexb;
mod batches;
mod crc;
mod id3;
mod mux;
mod packed;
mod packet;
mod pes;
mod psi;
mod served;
#[cfg(test)]
mod tests;

pub use batches::{Batch, Batches};
pub use mux::{video_segment, video_segment_len_estimate};
pub use packed::{packed_audio, packed_audio_len, packed_extension};
pub use served::wrap;

use crate::codec::Codec;

/// Added to every time of a title that goes into TS and packed audio, in 90 kHz: 10 s, so that
/// neither a decode time nor a clock reference is ever negative.
pub const TS_OFFSET_90K: u64 = 900_000;

/// One sample to be muxed. Times are in 90 kHz on the served timeline, with [`TS_OFFSET_90K`]
/// added; they may pass 2^33 and are wrapped here.
///
/// TS has no decode times after presentation times. A `dts` that is after its `pts` is taken for
/// `pts`.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// When it is shown.
    pub pts: u64,
    /// When it is decoded.
    pub dts: u64,
    /// Whether decoding can begin here.
    pub sync: bool,
    /// The sample as it lies in the file, with NAL unit lengths.
    pub data: &'a [u8],
}

/// What is known of a frame before its bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameSize {
    /// When it is shown, as in [`Frame`].
    pub pts: u64,
    /// When it is decoded, as in [`Frame`].
    pub dts: u64,
    /// Whether decoding can begin here.
    pub sync: bool,
    /// Bytes of the sample in the file.
    pub size: u32,
}

/// Whether [`video_segment`] can mux it: AVC and HEVC.
pub fn can_ts(codec: &Codec) -> bool {
    codec.video().is_some_and(|video| video.nal.is_some())
}
