//! Handles the results of fetches: fills the buffers, updates the bitrate rule, and schedules
//! retries.

use super::super::abr::{DownloadSample, PlayerView};
use super::super::player_interface::{FetchPurpose, FetchResult, Micros, ParsedDocument};
use super::track_buffer::{PendingFetch, TrackRole};
use super::{SessionEnd, Viewer};
use media::manifest::read::RenditionKind;
use std::sync::Arc;

impl Viewer {
    /// Handles the result of a track's fetch.
    pub(super) fn handle_track_result(&mut self, now: Micros, n: usize, result: FetchResult) {
        if !result.ok {
            return self.retry_or_fail(now, Some(n));
        }
        let Some(pending) = self.tracks[n].slot.finish_fetch() else {
            return;
        };
        match (pending.purpose, &result.document) {
            (
                FetchPurpose::Playlist | FetchPurpose::Index,
                Some(ParsedDocument::Segments(segments)),
            ) => {
                if self.tracks[n]
                    .add_segments(pending.source, Arc::clone(segments))
                    .is_err()
                {
                    self.fail_track(now, n);
                }
            }
            (FetchPurpose::Playlist | FetchPurpose::Index, _) => self.fail_track(now, n),
            (FetchPurpose::Init, _) => self.tracks[n]
                .inits
                .push((pending.source as u16, pending.init)),
            (_, _) => self.buffer_segment(now, n, &pending, &result),
        }
    }

    /// Buffers a received segment and updates the network estimate.
    fn buffer_segment(
        &mut self,
        now: Micros,
        n: usize,
        pending: &PendingFetch,
        result: &FetchResult,
    ) {
        let took_s = now.saturating_sub(pending.at) as f64 / 1e6;
        let segment_s = pending.duration_us as f64 / 1e6;
        self.tracks[n].add_segment(pending, result.bytes);
        let first_byte = result.first_byte.unwrap_or(now);
        let latency_s = first_byte.saturating_sub(result.sent.unwrap_or(pending.at)) as f64 / 1e6;
        let sample = DownloadSample {
            bits: result.bytes as f64 * 8.0,
            transfer_s: now.saturating_sub(first_byte).max(1) as f64 / 1e6,
            latency_s,
            segment_s,
        };
        let Some(mut abr) = self.abr.take() else {
            return;
        };
        if n == 0 {
            abr.record_download(&self.player_view(segment_s), pending.level, took_s);
            abr.record_sample(&unsampled_rest(now, pending, sample));
            self.estimator.add_sample(&sample);
            self.abandon_check = None;
        } else if abr.uses_audio_samples() {
            abr.record_sample(&sample);
        }
        self.abr = Some(abr);
    }

    /// Returns the part of the viewer's state that the bitrate rule may use.
    pub(super) fn player_view(&self, segment_s: f64) -> PlayerView<'_> {
        let main = &self.tracks[0];
        PlayerView {
            bitrates: &self.bitrates,
            buffer_s: main.end_us.saturating_sub(self.clock.position()).max(0) as f64 / 1e6,
            buffer_max_s: self.settings.buffer_max_s,
            segment_s,
            chosen: self.chosen,
            left: main.segments_left(),
            last: main.level,
            now_s: self.clock.now() as f64 / 1e6,
            estimate: self.estimator.estimate(),
        }
    }

    /// Schedules a retry. After too many failures, treats the track or the manifest as unavailable.
    pub(super) fn retry_or_fail(&mut self, now: Micros, track: Option<usize>) {
        let slot = match track {
            Some(n) => &mut self.tracks[n].slot,
            None => &mut self.manifest,
        };
        slot.failures += 1;
        if slot.failures > self.settings.retries {
            return match track {
                Some(n) => self.fail_track(now, n),
                None => self.end_session(now, SessionEnd::Failed),
            };
        }
        slot.retry_at(now + (250_000 << slot.failures.min(6)));
    }

    /// Ends the session because a track is unavailable. If the track contains subtitles, playback
    /// continues without subtitles instead.
    pub(super) fn fail_track(&mut self, now: Micros, n: usize) {
        match self.tracks.get_mut(n) {
            Some(track) if track.role == TrackRole::Text => {
                track.slot.cancel_fetch();
                track.done = true;
            }
            _ => self.end_session(now, SessionEnd::Failed),
        }
    }

    /// Returns the kind of the main track's rendition. Returns `Muxed` until the manifest has been
    /// parsed.
    pub(super) fn main_kind(&self) -> RenditionKind {
        let level = self
            .stream
            .as_ref()
            .and_then(|stream| stream.levels.first());
        level.map_or(RenditionKind::Muxed, |level| level.kind)
    }
}

/// Returns a sample of the bytes that arrived since the last sample of the same segment.
fn unsampled_rest(now: Micros, pending: &PendingFetch, whole: DownloadSample) -> DownloadSample {
    match pending.sampled {
        (0, _) => whole,
        (bytes, since) => DownloadSample {
            bits: whole.bits - bytes as f64 * 8.0,
            transfer_s: now.saturating_sub(since).max(1) as f64 / 1e6,
            latency_s: 0.0,
            ..whole
        },
    }
}
