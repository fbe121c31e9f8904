//! Limits how far audio and video are buffered ahead of each other.

use super::Viewer;
use super::track_buffer::{PendingFetch, TrackRole, micros};
use super::viewer_plan::TrackSync;

/// In dash.js, audio may be buffered this many microseconds further than video.
const DASH_JS_LEAD_US: i64 = 1_000_000;

impl Viewer {
    /// Returns whether track `n` must wait for the other track before it requests the next segment.
    /// `next_us` is the duration of the next segment.
    pub(super) fn waits_for_other_track(&self, n: usize, next_us: i64) -> bool {
        let (role, end_us) = (self.tracks[n].role, self.tracks[n].end_us);
        let other = self.media_tracks().find(|track| track.role != role);
        let Some(other) = other.filter(|other| role != TrackRole::Text && !other.done) else {
            return false;
        };
        match self.settings.track_sync {
            TrackSync::Independent => false,
            TrackSync::HlsJs => {
                let loading = other.slot.pending_fetch();
                let loading_end_us = loading.and_then(|video| self.segment_end_us(video));
                role == TrackRole::Audio && loading_end_us.is_some_and(|video_us| end_us > video_us)
            }
            TrackSync::DashJs => {
                let position = self.clock.position();
                let target_us = (other.end_us - position + DASH_JS_LEAD_US).max(next_us);
                role == TrackRole::Audio && end_us - position >= target_us
            }
            TrackSync::Shaka => next_us > 0 && end_us - other.end_us >= next_us,
        }
    }

    /// Returns the media time at which a segment in flight ends. For an init segment, returns the
    /// end of the segment that needs the init segment. Returns none for playlists and indexes.
    fn segment_end_us(&self, pending: &PendingFetch) -> Option<i64> {
        let segments = self.tracks.first()?.source_segments(pending.source)?;
        let start_us = micros(segments.start_time(pending.segment));
        (pending.duration_us > 0).then(|| start_us.saturating_add(pending.duration_us))
    }
}
