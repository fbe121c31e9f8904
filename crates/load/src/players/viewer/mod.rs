//! An emulated viewer with a media clock, a buffer for each track, and an adaptive bitrate rule.
//!
//! As in real players, video, audio and subtitles are fetched in parallel, with one request at a
//! time for each track. A segment is requested once the buffer has room for this segment. Playback
//! starts once video and audio have buffered enough. Playback stalls when video or audio runs
//! empty, and resumes once both have buffered enough again.

mod abandonment;
mod cmcd_reporting;
mod fetch_results;
mod media_clock;
mod next_fetch;
#[cfg(test)]
mod tests;
mod track_buffer;
mod track_sync;
mod viewer_plan;

pub use viewer_plan::{
    PlaybackSettings, PlayerSnapshot, SessionEnd, StartLevel, TrackSync, ViewerPlan,
};

use super::abr::{AbrRule, EwmaEstimator};
use super::player_interface::{
    FetchProgress, FetchResult, Micros, ParsedDocument, Player, PlayerAction,
};
use super::qoe::{LevelQualityFactors, PlaybackJournal, SessionSummary};
use super::title_ladder::TitleLadder;
use media_clock::MediaClock;
use std::sync::Arc;
use track_buffer::{TrackRole, TrackState};

/// A viewer.
#[derive(Debug)]
pub struct Viewer {
    settings: Arc<PlaybackSettings>,
    plan: Box<ViewerPlan>,
    stream: Option<Arc<TitleLadder>>,
    /// Indexes of the levels that the device allows, in ascending order of bitrate.
    levels: Box<[u16]>,
    /// Bitrates of `levels`, in bits per second.
    bitrates: Box<[f64]>,
    /// The adaptive bitrate rule; `None` while the rule is called, because the call borrows the
    /// viewer.
    abr: Option<Box<dyn AbrRule>>,
    estimator: Box<EwmaEstimator>,
    manifest: track_buffer::FetchSlot,
    tracks: Vec<TrackState>,
    clock: MediaClock,
    journal: Box<PlaybackJournal>,
    next_seek: usize,
    next_id: u32,
    cancelled: Vec<u32>,
    /// Time of the next decision whether to abandon the segment in flight; none if no decision is
    /// planned.
    abandon_check: Option<Micros>,
    /// The segment that was abandoned last.
    abandoned: Option<abandonment::AbandonedSegment>,
    ended: Option<SessionEnd>,
    chosen: usize,
    starved: bool,
    sequence: u32,
}

impl Viewer {
    /// Creates a viewer whose session starts at `now`.
    pub fn new(
        settings: Arc<PlaybackSettings>,
        plan: ViewerPlan,
        abr: Box<dyn AbrRule>,
        now: Micros,
    ) -> Viewer {
        Viewer {
            settings,
            plan: Box::new(plan),
            stream: None,
            levels: Box::default(),
            bitrates: Box::default(),
            abr: Some(abr),
            estimator: Box::new(EwmaEstimator::with_dash_js_weights()),
            manifest: track_buffer::FetchSlot::default(),
            tracks: Vec::new(),
            clock: MediaClock::new(now),
            journal: Box::default(),
            next_seek: 0,
            next_id: 0,
            cancelled: Vec::new(),
            abandon_check: None,
            abandoned: None,
            ended: None,
            chosen: 0,
            starved: false,
            sequence: 0,
        }
    }

    /// Returns a snapshot of the playback.
    pub fn snapshot(&self) -> PlayerSnapshot {
        let bps = self
            .tracks
            .first()
            .and_then(|track| self.bitrates.get(track.level?));
        PlayerSnapshot {
            at: self.clock.now(),
            buffer: self.buffered_ahead(),
            playing: self.clock.is_playing(),
            stalled: self.clock.is_stalled(),
            bps: bps.copied().unwrap_or(0.0),
        }
    }

    /// Ends the session, unless it has already ended.
    pub fn end_session(&mut self, now: Micros, end: SessionEnd) {
        self.advance_clock(now);
        if self.ended.is_none() {
            self.clock.record_wait(&mut self.journal);
            self.ended = Some(end);
        }
    }

    /// Returns the reason why the session ended, or none while the session continues.
    pub fn end_reason(&self) -> Option<SessionEnd> {
        self.ended
    }

    /// Summarizes the session so far.
    pub fn summary(&self) -> SessionSummary {
        let bitrates = &self.bitrates;
        self.journal
            .summary(bitrates, |level| self.level_quality_factors(level))
    }

    /// Returns the approximate memory use of this viewer in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Viewer>()
            + size_of::<ViewerPlan>()
            + self.plan.manifest.url.as_str().len()
            + self.plan.seeks.capacity() * size_of::<(Micros, f64)>()
            + size_of::<EwmaEstimator>()
            + self.abr.as_deref().map_or(0, size_of_val)
            + self.levels.len() * (size_of::<u16>() + size_of::<f64>())
            + self
                .tracks
                .iter()
                .map(TrackState::memory_bytes)
                .sum::<usize>()
            + size_of::<PlaybackJournal>()
            + self.journal.memory_bytes()
    }

    fn level_quality_factors(&self, level: u16) -> LevelQualityFactors {
        let stream = self.stream.as_ref();
        let level = self
            .levels
            .get(usize::from(level))
            .and_then(|n| stream?.levels.get(usize::from(*n)));
        let audio = level.and_then(|level| Some(stream?.audios.get(level.audio?)?.bps / 1000.0));
        LevelQualityFactors {
            resolution: level
                .and_then(|level| level.resolution)
                .unwrap_or((1280, 720)),
            frame_rate: level.and_then(|level| level.frame_rate).unwrap_or(25.0),
            screen_lines: self.plan.device.screen_lines,
            audio_kbps: audio.filter(|kbps| *kbps > 0.0),
            handheld: self.plan.device.handheld,
        }
    }

    /// Sets up the levels and the tracks of a parsed manifest.
    fn set_up_tracks(&mut self, stream: Arc<TitleLadder>) {
        self.manifest.finish_fetch();
        self.levels = self.plan.device.allowed_levels(&stream).into();
        let bps = |n: &u16| stream.levels[usize::from(*n)].bps;
        self.bitrates = self.levels.iter().map(bps).collect();
        self.tracks = vec![TrackState::new(TrackRole::Main, stream.levels.len())];
        if stream.levels.iter().any(|level| level.audio.is_some()) {
            self.tracks
                .push(TrackState::new(TrackRole::Audio, stream.audios.len()));
        }
        if stream.text.is_some() {
            self.tracks.push(TrackState::new(TrackRole::Text, 1));
        }
        self.stream = Some(stream);
    }

    /// Iterates over the video and audio tracks. Playback does not depend on the subtitle track.
    fn media_tracks(&self) -> impl Iterator<Item = &TrackState> {
        let needed = |track: &&TrackState| track.role != TrackRole::Text;
        self.tracks.iter().filter(needed)
    }

    /// Returns how many microseconds of media can be played before video or audio runs empty.
    fn buffered_ahead(&self) -> Micros {
        let ends = self
            .media_tracks()
            .filter(|track| !track.done)
            .map(|track| track.end_us);
        let position = self.clock.position();
        match ends.min() {
            Some(end) => end.saturating_sub(position).max(0) as Micros,
            None => self.title_end().saturating_sub(position).max(0) as Micros,
        }
    }

    /// Returns the media time at which the longest track ends, in microseconds. The result is final
    /// only once all tracks are complete.
    fn title_end(&self) -> i64 {
        self.media_tracks()
            .map(|track| track.end_us)
            .max()
            .unwrap_or(0)
    }

    fn is_fully_fetched(&self) -> bool {
        !self.tracks.is_empty() && self.media_tracks().all(|track| track.done)
    }

    /// Advances the clock to `now`. Playback advances only as far as media is buffered.
    fn advance_clock(&mut self, now: Micros) {
        if self.ended.is_some() {
            return;
        }
        let dry = self.clock.advance_to(now, self.buffered_ahead());
        let position = self.clock.position();
        if let Some((main, others)) = self.tracks.split_first_mut() {
            main.play_until(position, &mut self.journal);
            others
                .iter_mut()
                .for_each(|track| track.discard_media_before(position));
        }
        if let Some(at) = dry {
            if self.is_fully_fetched() {
                self.ended = Some(SessionEnd::Finished);
                self.clock.record_wait(&mut self.journal);
            } else {
                self.starved = true;
                self.clock.enter_stall(at);
            }
        }
    }

    /// Starts or resumes playback if video and audio have buffered enough.
    fn start_playing(&mut self) {
        if self.clock.is_playing() || self.tracks.is_empty() {
            return;
        }
        let enough = if self.clock.is_stalled() {
            self.settings.resume_s
        } else {
            self.settings.start_s
        };
        let enough = ((enough.min(self.settings.buffer_max_s / 2.0) * 1e6) as Micros).max(1);
        let ahead = self.buffered_ahead();
        let all_here = self.is_fully_fetched() && ahead > 0;
        if all_here || ahead >= enough {
            self.clock.start_playing(&mut self.journal);
        } else if self.is_fully_fetched() {
            self.ended = Some(SessionEnd::Finished);
        }
    }

    /// Lets the viewer leave, give up or seek if the plan requires this at `now`.
    fn perform_planned_actions(&mut self, now: Micros) {
        if now >= self.plan.leave_at {
            return self.end_session(now, SessionEnd::Left);
        }
        if let Some(patience) = self.plan.patience
            && self
                .clock
                .waiting_since()
                .is_some_and(|since| now >= since + patience)
        {
            return self.end_session(now, SessionEnd::GaveUp);
        }
        while let Some((at, share)) = self.plan.seeks.get(self.next_seek).copied()
            && now >= at
        {
            self.next_seek += 1;
            if self.clock.has_started() {
                self.seek_to(share);
            }
        }
    }

    /// Seeks to `share` (0 to 1) of the title. If video or audio is not buffered at the target,
    /// cancels all fetches and empties all buffers.
    fn seek_to(&mut self, share: f64) {
        let main = self.tracks.first().and_then(|track| track.known_segments());
        let Some(length) = main.map(|segments| track_buffer::micros(segments.last_segment_end()))
        else {
            return;
        };
        let target = (length as f64 * share.clamp(0.0, 1.0)) as i64;
        let ahead = self.media_tracks().all(|track| track.is_buffered(target));
        self.clock.seek_to(target, &mut self.journal);
        if ahead {
            self.tracks
                .iter_mut()
                .for_each(|track| track.discard_media_before(target));
            return;
        }
        for track in &mut self.tracks {
            self.cancelled.extend(track.clear_buffer(target));
        }
        self.abr.iter_mut().for_each(|abr| abr.reset_after_seek());
        self.chosen = 0;
    }

    /// Returns the time at which the viewer must be polled even if no result has arrived.
    fn wake_at(&self) -> Micros {
        let dry = self
            .clock
            .is_playing()
            .then(|| self.clock.now() + self.buffered_ahead());
        let seek = self.plan.seeks.get(self.next_seek).map(|(at, _)| *at);
        let give_up = self
            .plan
            .patience
            .and_then(|patience| Some(self.clock.waiting_since()? + patience));
        let unfinished = self.tracks.iter().filter(|track| !track.done);
        let slot = unfinished.filter_map(|track| track.slot.not_before);
        let slot = slot.chain(self.manifest.not_before).min();
        let all = [dry, seek, give_up, slot, self.abandon_check];
        all.into_iter()
            .flatten()
            .min()
            .unwrap_or(Micros::MAX)
            .min(self.plan.leave_at)
    }
}

impl Player for Viewer {
    fn poll(&mut self, now: Micros) -> PlayerAction {
        self.advance_clock(now);
        if self.ended.is_none() {
            self.start_playing();
            self.perform_planned_actions(now);
            self.abandon_slow_segment(now);
        }
        if let Some(id) = self.cancelled.pop() {
            return PlayerAction::Cancel(id);
        }
        if self.ended.is_some() {
            return PlayerAction::Done;
        }
        if let Some(fetch) = self.next_fetch(now) {
            return PlayerAction::Fetch(Box::new(fetch));
        }
        if self.ended.is_some() {
            PlayerAction::Done
        } else {
            PlayerAction::Wait(self.wake_at().max(now + 1))
        }
    }

    fn record_progress(&mut self, id: u32, progress: FetchProgress) {
        let track = self.tracks.first_mut();
        track
            .into_iter()
            .for_each(|track| track.slot.record_progress(id, progress));
    }

    fn handle_result(&mut self, now: Micros, id: u32, result: FetchResult) {
        self.advance_clock(now);
        if self.ended.is_some() {
            return;
        }
        if self.manifest.is_pending(id) {
            match result.document.filter(|_| result.ok) {
                Some(ParsedDocument::TitleLadder(stream)) => self.set_up_tracks(stream),
                // The manifest URL can also refer to a single media playlist.
                Some(ParsedDocument::Segments(segments)) => {
                    self.set_up_tracks(Arc::new(TitleLadder::from_segments(segments)));
                }
                _ => self.retry_or_fail(now, None),
            }
        } else if let Some(n) = self
            .tracks
            .iter()
            .position(|track| track.slot.is_pending(id))
        {
            self.handle_track_result(now, n, result);
        }
    }
}
