//! MPEG-2 transport streams and packed audio (RFC 8216, 3.2 and 3.4).
//!
//! A video segment contains one programme with one stream. PAT and PMT come first, then one PES
//! packet per frame. Segments are muxed independently and still join seamlessly. In each segment,
//! the continuity counter of the video starts at 0. It ends at 15, because the last frame is spread
//! over up to 15 extra packets. Timestamps continue across segments, and each segment repeats the
//! tables.

mod adts;
mod annex_b;
mod batched_muxer;
mod crc;
mod packed_audio;
mod packed_audio_timestamp;
mod packet_writer;
mod pes;
mod psi;
#[cfg(test)]
mod tests;
mod ts_muxer;
mod ts_or_packed_audio;

pub use batched_muxer::{AccessUnitBatch, BatchedMuxer};
pub use packed_audio::{pack_audio_segment, packed_audio_extension, packed_audio_segment_len};
pub use ts_muxer::{estimate_video_segment_len, mux_video_segment};
pub use ts_or_packed_audio::mux_ts_or_packed_audio;

use crate::codec::Codec;

/// Offset that is added to every time in TS and packed audio: 10 s, in 90 kHz ticks. It prevents
/// negative decode times and clock references.
pub const TIMESTAMP_OFFSET_90KHZ: u64 = 900_000;

/// One sample to be muxed.
///
/// Times are in 90 kHz ticks on the served timeline, with [`TIMESTAMP_OFFSET_90KHZ`] added. Times
/// may exceed 2^33, and the muxer wraps them. In TS, a decode time cannot be after its presentation
/// time. If `dts` is after `pts`, the muxer therefore uses `pts` as the decode time.
#[derive(Debug, Clone, Copy)]
pub struct MuxFrame<'a> {
    /// Presentation time.
    pub pts: u64,
    /// Decode time.
    pub dts: u64,
    /// Whether decoding can start at this frame.
    pub is_sync: bool,
    /// The sample as stored in the file, with NAL unit lengths.
    pub data: &'a [u8],
}

/// Properties of a frame that are known before its bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameInfo {
    /// Presentation time, as in [`MuxFrame`].
    pub pts: u64,
    /// Decode time, as in [`MuxFrame`].
    pub dts: u64,
    /// Whether decoding can start at this frame.
    pub is_sync: bool,
    /// Size of the sample in the file, in bytes.
    pub size: u32,
}

/// Returns whether [`mux_video_segment`] supports the codec. Only AVC and HEVC are supported.
pub fn can_mux_ts(codec: &Codec) -> bool {
    codec.video().is_some_and(|video| video.nal.is_some())
}
