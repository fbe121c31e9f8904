//! Rules that map keys to tracks (CPIX 2.3, 5.4).

use super::KeyId;
use crate::codec::CicpColor;
use crate::index::Track;
use std::ops::RangeInclusive;

/// The properties of a track that rules refer to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RuleTrackProperties {
    kind: TrackKind,
    /// Average bits per second.
    bitrate: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum TrackKind {
    Video {
        pixels: u64,
        frames_per_second: f64,
        is_hdr: bool,
        is_wide_gamut: bool,
    },
    Audio {
        channels: u32,
    },
}

impl RuleTrackProperties {
    /// Returns the properties of a track. `bitrate` is its average bit rate in bits per second.
    pub fn new(track: &Track, bitrate: u64) -> RuleTrackProperties {
        let codec = &track.codec;
        let kind = match codec.video() {
            Some(video) => TrackKind::Video {
                pixels: u64::from(video.width) * u64::from(video.height),
                frames_per_second: f64::from(track.samples.len())
                    / track.duration().as_seconds_f64().max(f64::MIN_POSITIVE),
                is_hdr: video.color.is_some_and(is_hdr_transfer),
                is_wide_gamut: video.color.is_some_and(|color| color.primaries == 9),
            },
            None => TrackKind::Audio {
                channels: codec.audio().map_or(0, |audio| audio.channel_count),
            },
        };
        RuleTrackProperties { kind, bitrate }
    }
}

/// Returns whether the transfer function is PQ or HLG.
fn is_hdr_transfer(color: CicpColor) -> bool {
    matches!(color.transfer, 16 | 18)
}

/// Maps one key to the tracks that match at least one media filter and at least one bit rate range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageRule {
    /// The key.
    pub key_id: KeyId,
    /// Filters for video and audio tracks. An empty list accepts every track.
    pub media: Vec<MediaFilter>,
    /// Inclusive ranges of the average bit rate, in bits per second. An empty list accepts every
    /// bit rate.
    pub bitrates: Vec<RangeInclusive<u64>>,
}

/// A `VideoFilter` or an `AudioFilter` of CPIX.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaFilter {
    /// Video within these limits.
    Video(VideoFilterLimits),
    /// Audio whose number of channels is in this inclusive range.
    Audio(RangeInclusive<u32>),
}

/// The limits of a `VideoFilter`. The default accepts all video.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoFilterLimits {
    /// Inclusive range of the number of pixels (width × height).
    pub pixels: RangeInclusive<u64>,
    /// Limits of the frame rate, in frames per second. The frame rate must be above the first value
    /// and at most the second value.
    pub frame_rates: (f64, f64),
    /// Accepts only video with (`true`) or without (`false`) a PQ or HLG transfer function. `None`
    /// accepts both.
    pub hdr: Option<bool>,
    /// Accepts only video with (`true`) or without (`false`) the primaries of BT.2020. `None`
    /// accepts both.
    pub wide_gamut: Option<bool>,
}

impl Default for VideoFilterLimits {
    fn default() -> VideoFilterLimits {
        VideoFilterLimits {
            pixels: 0..=u64::MAX,
            frame_rates: (-1.0, f64::INFINITY),
            hdr: None,
            wide_gamut: None,
        }
    }
}

impl UsageRule {
    /// Returns whether the rule applies to a track.
    pub fn applies_to(&self, track: &RuleTrackProperties) -> bool {
        let bitrate = |range: &RangeInclusive<u64>| range.contains(&track.bitrate);
        (self.media.is_empty() || self.media.iter().any(|filter| filter.accepts(track)))
            && (self.bitrates.is_empty() || self.bitrates.iter().any(bitrate))
    }
}

impl MediaFilter {
    fn accepts(&self, track: &RuleTrackProperties) -> bool {
        match (self, track.kind) {
            (
                MediaFilter::Video(range),
                TrackKind::Video {
                    pixels,
                    frames_per_second,
                    is_hdr,
                    is_wide_gamut,
                },
            ) => {
                let (above, up_to) = range.frame_rates;
                range.pixels.contains(&pixels)
                    && frames_per_second > above
                    && frames_per_second <= up_to
                    && range.hdr.is_none_or(|hdr| hdr == is_hdr)
                    && range.wide_gamut.is_none_or(|wide| wide == is_wide_gamut)
            }
            (MediaFilter::Audio(range), TrackKind::Audio { channels }) => range.contains(&channels),
            _ => false,
        }
    }
}
