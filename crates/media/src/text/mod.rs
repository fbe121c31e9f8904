//! Subtitles and captions. All formats are parsed into the same cue model, from which writers
//! generate text for HLS and DASH.
//!
//! Each source becomes a [`TextRendition`]. Its cues contain WebVTT cue text, and their times count
//! from the start of the film. [`TextSegmentTimes`] assigns the cues to the segments of the video,
//! and the writers produce WebVTT or CMAF.

mod bandwidth;
mod caption_channels;
mod cmaf;
mod color;
mod cue;
mod embedded_cues;
mod encoding;
mod imsc;
mod imsc_inline;
mod imsc_region;
#[cfg(test)]
mod imsc_tests;
#[cfg(test)]
mod limit_tests;
mod rendition;
mod srt;
#[cfg(test)]
mod srt_tests;
#[cfg(test)]
mod tests;
mod text_bandwidth_cache;
mod text_segment_times;
mod timestamp;
mod ttml;
mod ttml_spans;
mod ttml_style;
#[cfg(test)]
mod ttml_tests;
mod ttml_time;
mod tx3g;
mod vtt;
mod wvtt;

pub use crate::manifest::language_tag::parse_language;
pub use caption_channels::{CaptionChannel, find_caption_channels};
pub(crate) use caption_channels::{pack_caption_channels, unpack_caption_channels};
pub use cmaf::{write_wvtt_init, write_wvtt_segment};
pub use cue::{Cue, CueList, CueProblem};
pub use embedded_cues::{is_default_text, parse_text_samples, text_sample_ranges, text_track_kind};
pub use encoding::decode_text;
pub use imsc::{IMSC_CODEC, write_imsc_init, write_imsc_segment};
pub use rendition::{TextKind, TextRendition, TextSet};
pub use srt::parse_srt;
pub(crate) use text_bandwidth_cache::TextBandwidths;
pub use text_segment_times::TextSegmentTimes;
pub use ttml::parse_ttml;
pub use tx3g::parse_tx3g_sample;
pub use vtt::{parse_vtt, write_vtt, write_vtt_segment};
pub use wvtt::parse_wvtt_sample;

/// Maximum size of a text file, in bytes.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;
