//! Properties of tracks in the form that HLS and DASH share.

use crate::codec::{CicpColor, VideoFormat};

/// Returns the display width and height, converted to square pixels.
pub(super) fn display_size(video: &VideoFormat) -> (u32, u32) {
    let (across, down) = (u64::from(video.sar.0.max(1)), u64::from(video.sar.1.max(1)));
    let width = (u64::from(video.width) * across + down / 2) / down;
    (u32::try_from(width).unwrap_or(u32::MAX), video.height)
}

/// Returns the value of HLS `VIDEO-RANGE`; `None` if the source specifies no transfer
/// characteristics.
pub(super) fn video_range(color: Option<CicpColor>) -> Option<&'static str> {
    match color?.transfer {
        2 => None,
        16 => Some("PQ"),
        18 => Some("HLG"),
        _ => Some("SDR"),
    }
}
