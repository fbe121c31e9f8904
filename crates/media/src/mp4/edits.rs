//! Edit lists (ISO/IEC 14496-12, 8.6.6) that say what the index resolved: when a track begins.

use crate::bmff::elst::Edit;
use crate::index::{TIME_MAX, Track};
use crate::time::{Time, gcd};

const NORMAL_RATE: u32 = 0x1_0000;

/// A movie timescale in which every time of these tracks is a whole number; if there is none, one
/// in which at least those are that an edit list must say exactly.
pub(super) fn movie_timescale<'a>(tracks: impl Iterator<Item = &'a Track> + Clone) -> u32 {
    let all = tracks.clone().map(|track| track.timescale);
    let said = tracks
        .filter(|track| track.origin > 0 || track.shown_until.is_some())
        .map(|track| track.timescale);
    multiple(all).or_else(|| multiple(said)).unwrap_or(90_000)
}

/// The least common multiple of these, if it fits.
fn multiple(mut timescales: impl Iterator<Item = u32>) -> Option<u32> {
    timescales.try_fold(1u32, |common, one| {
        common.checked_mul(one / gcd(common, one).max(1))
    })
}

/// How long a track is shown and when, in ticks of the movie.
pub(super) struct Edits {
    pub list: Vec<Edit>,
    /// From the movie's begin to the track's end.
    pub end: u64,
    /// Whether an indexer finds the very same times in it.
    pub exact: bool,
}

/// The edit list of a track; empty where it is shown from its first tick to its last.
pub(super) fn edits(track: &Track, movie: u32) -> Edits {
    let ticks = |media: i64| {
        let ticks = Time::new(media, track.timescale).ceil_to(movie);
        u64::try_from(ticks).unwrap_or(0)
    };
    let last = || track.samples.last_shown().saturating_add(track.origin);
    let end = track.shown_until.unwrap_or_else(last);
    let lead = track.origin.max(0);
    let shown = end - lead;
    let (lead_ticks, shown_ticks) = (ticks(lead), ticks(shown));
    let back = |ticks: u64| {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        Time::new(ticks, movie).round_to(track.timescale)
    };
    let first = -track.origin.min(0);
    let exact = back(lead_ticks) == lead
        && (shown > 0 || track.shown_until.is_none())
        && (back(shown_ticks) == shown || track.shown_until.is_none() && back(shown_ticks) > shown)
        && lead.max(first.saturating_add(back(shown_ticks))) <= TIME_MAX;
    let mut list = Vec::new();
    if lead > 0 {
        list.push(Edit {
            duration: lead_ticks,
            media_time: -1,
            rate: NORMAL_RATE,
        });
    }
    if track.origin != 0 || track.shown_until.is_some() {
        list.push(Edit {
            duration: shown_ticks,
            media_time: first,
            rate: NORMAL_RATE,
        });
    }
    let list_is_empty = list.is_empty();
    Edits {
        list,
        end: lead_ticks.saturating_add(shown_ticks),
        exact: exact || list_is_empty,
    }
}
