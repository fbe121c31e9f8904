//! Edit lists (ISO/IEC 14496-12, 8.6.6) that express the presentation times of tracks.

use crate::bmff::elst::EditListEntry;
use crate::index::{EDIT_TIME_MAX, Track};
use crate::time::{Time, gcd};

const NORMAL_RATE: u32 = 0x1_0000;

/// Returns a movie timescale in which every time of these tracks is a whole number of ticks.
///
/// If no 32-bit timescale fits all tracks, only the tracks whose edit list must be exact are
/// considered. If no timescale fits these tracks either, returns 90000.
pub(super) fn movie_timescale<'a>(tracks: impl Iterator<Item = &'a Track> + Clone) -> u32 {
    let all = tracks.clone().map(|track| track.timescale);
    let required = tracks
        .filter(|track| track.presentation_offset > 0 || track.presentation_end.is_some())
        .map(|track| track.timescale);
    least_common_multiple(all)
        .or_else(|| least_common_multiple(required))
        .unwrap_or(90_000)
}

/// Returns the least common multiple, if it fits into 32 bits.
fn least_common_multiple(mut timescales: impl Iterator<Item = u32>) -> Option<u32> {
    timescales.try_fold(1u32, |common, one| {
        common.checked_mul(one / gcd(common, one).max(1))
    })
}

/// The edit list of a track, in ticks of the movie.
pub(super) struct TrackEdits {
    pub entries: Vec<EditListEntry>,
    /// Duration from the start of the movie to the end of the track.
    pub movie_end: u64,
    /// Whether an indexer derives exactly the original times from this edit list.
    pub is_exact: bool,
}

/// Builds the edit list of a track. The list is empty if the track is presented completely and
/// without a delay.
pub(super) fn build_edits(track: &Track, movie: u32) -> TrackEdits {
    let ticks = |media: i64| {
        let ticks = Time::new(media, track.timescale).ceil_to(movie);
        u64::try_from(ticks).unwrap_or(0)
    };
    let last = || {
        track
            .samples
            .last_presentation_end()
            .saturating_add(track.presentation_offset)
    };
    let end = track.presentation_end.unwrap_or_else(last);
    let lead = track.presentation_offset.max(0);
    let shown = end - lead;
    let (lead_ticks, shown_ticks) = (ticks(lead), ticks(shown));
    let back = |ticks: u64| {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        Time::new(ticks, movie).round_to(track.timescale)
    };
    let first = -track.presentation_offset.min(0);
    let exact = back(lead_ticks) == lead
        && (shown > 0 || track.presentation_end.is_none())
        && (back(shown_ticks) == shown
            || track.presentation_end.is_none() && back(shown_ticks) > shown)
        && lead.max(first.saturating_add(back(shown_ticks))) <= EDIT_TIME_MAX;
    let mut list = Vec::new();
    if lead > 0 {
        list.push(EditListEntry {
            duration: lead_ticks,
            media_time: -1,
            rate: NORMAL_RATE,
        });
    }
    if track.presentation_offset != 0 || track.presentation_end.is_some() {
        list.push(EditListEntry {
            duration: shown_ticks,
            media_time: first,
            rate: NORMAL_RATE,
        });
    }
    let list_is_empty = list.is_empty();
    TrackEdits {
        entries: list,
        movie_end: lead_ticks.saturating_add(shown_ticks),
        is_exact: exact || list_is_empty,
    }
}
