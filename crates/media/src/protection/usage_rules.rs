//! Rules that map keys to tracks (CPIX 2.3, 5.4).

use super::KeyId;
use crate::codec::CicpColor;
use crate::index::Track;
use std::ops::RangeInclusive;

/// The facts of a track that rules refer to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackFacts {
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

impl TrackFacts {
    /// Returns the facts of a track with this average bit rate.
    pub fn new(track: &Track, bitrate: u64) -> TrackFacts {
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
        TrackFacts { kind, bitrate }
    }
}

/// PQ and HLG.
fn is_hdr_transfer(color: CicpColor) -> bool {
    matches!(color.transfer, 16 | 18)
}

/// Maps one key to the tracks that match every kind of filter. Filters of one kind are
/// alternatives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageRule {
    /// The key.
    pub key_id: KeyId,
    /// Filters of the track's kind; without any, both kinds match.
    pub media: Vec<MediaFilter>,
    /// Inclusive ranges of the bit rate; without any, all match.
    pub bitrates: Vec<RangeInclusive<u64>>,
}

/// A `VideoFilter` or an `AudioFilter`.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaFilter {
    /// Video within these limits.
    Video(VideoRange),
    /// Inclusive range of channels.
    Audio(RangeInclusive<u32>),
}

/// The limits of a `VideoFilter`. The default accepts all video.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoRange {
    /// Width × height, inclusive.
    pub pixels: RangeInclusive<u64>,
    /// Frames per second: more than the first, and at most the second.
    pub frame_rates: (f64, f64),
    /// Whether the transfer function is PQ or HLG.
    pub hdr: Option<bool>,
    /// Whether the primaries are those of BT.2020.
    pub wide_gamut: Option<bool>,
}

impl Default for VideoRange {
    fn default() -> VideoRange {
        VideoRange {
            pixels: 0..=u64::MAX,
            frame_rates: (-1.0, f64::INFINITY),
            hdr: None,
            wide_gamut: None,
        }
    }
}

impl UsageRule {
    /// Returns whether the rule applies to a track.
    pub fn applies_to(&self, track: &TrackFacts) -> bool {
        let bitrate = |range: &RangeInclusive<u64>| range.contains(&track.bitrate);
        (self.media.is_empty() || self.media.iter().any(|filter| filter.accepts(track)))
            && (self.bitrates.is_empty() || self.bitrates.iter().any(bitrate))
    }
}

impl MediaFilter {
    fn accepts(&self, track: &TrackFacts) -> bool {
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
