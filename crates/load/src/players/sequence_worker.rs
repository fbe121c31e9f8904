//! Emulates the worker of document 2, "Load testing VOD configurations" (docs/findings.md). The
//! worker fetches the manifest, and then alternately one audio segment and one video segment,
//! without pauses. At the end of the title, the worker starts again with the manifest.

use super::abr::FixedLevel;
use super::player_interface::{
    DocumentFormat, FetchPurpose, FetchResult, MediaFetch, Micros, ParsedDocument, Player,
    PlayerAction,
};
use super::title_ladder::{RenditionSource, TitleLadder};
use super::viewer::SessionEnd;
use media::manifest::read::{ResourceRange, SegmentList, SegmentListSource};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of consecutive failed requests for segments. After one more failure, the worker
/// waits one second and restarts the title. If a document cannot be fetched or parsed, the worker
/// does this after the first failure.
const FAILURES_MAX: u32 = 3;

/// A worker that fetches the segments of a title in sequence.
#[derive(Debug)]
pub struct SequenceWorker {
    manifest: ResourceRange,
    level: FixedLevel,
    leave_at: Micros,
    stream: Option<Arc<TitleLadder>>,
    /// The tracks in the order of their requests: the separate audio track, if any, then the video
    /// track.
    tracks: Vec<SequenceTrack>,
    /// Index of the track whose segment is fetched next.
    turn: usize,
    segment: usize,
    pending: Option<(u32, FetchPurpose)>,
    next_id: u32,
    failures: u32,
    not_before: Micros,
    rounds: u64,
    ended: Option<SessionEnd>,
}

#[derive(Debug)]
struct SequenceTrack {
    purpose: FetchPurpose,
    segments: Option<Arc<SegmentList>>,
    remaining_sources: VecDeque<SegmentListSource>,
    init: Option<u16>,
}

impl SequenceWorker {
    /// Creates a worker that requests one level until `leave_at`.
    pub fn new(manifest: ResourceRange, level: FixedLevel, leave_at: Micros) -> SequenceWorker {
        SequenceWorker {
            manifest,
            level,
            leave_at,
            stream: None,
            tracks: Vec::new(),
            turn: 0,
            segment: 0,
            pending: None,
            next_id: 0,
            failures: 0,
            not_before: 0,
            rounds: 0,
            ended: None,
        }
    }

    /// Returns how often the worker has restarted the title, at the end of the title or after
    /// failures.
    pub fn restart_count(&self) -> u64 {
        self.rounds
    }

    /// Ends the session.
    pub fn end_session(&mut self, end: SessionEnd) {
        self.ended.get_or_insert(end);
    }

    /// Returns the reason why the session ended, or none while the session continues.
    pub fn end_reason(&self) -> Option<SessionEnd> {
        self.ended
    }

    fn set_up_tracks(&mut self, stream: Arc<TitleLadder>) {
        let bitrates: Vec<f64> = stream.levels.iter().map(|level| level.bps).collect();
        let level = self.level.level(&bitrates);
        let chosen = &stream.levels[level];
        let track = |purpose, source: &RenditionSource| SequenceTrack {
            purpose,
            segments: source.known.clone(),
            remaining_sources: source.segment_sources.clone().into(),
            init: None,
        };
        let audio = chosen
            .audio
            .map(|n| track(FetchPurpose::Audio, &stream.audios[n]));
        self.tracks = audio.into_iter().collect();
        self.tracks.push(track(FetchPurpose::Video, &chosen.source));
        (self.turn, self.segment) = (0, 0);
        self.stream = Some(stream);
    }

    fn restart_title(&mut self) {
        (self.stream, self.tracks) = (None, Vec::new());
        self.rounds += 1;
    }

    fn next(&mut self) -> Option<(FetchPurpose, ResourceRange, DocumentFormat)> {
        if self.stream.is_none() {
            return Some((
                FetchPurpose::Manifest,
                self.manifest.clone(),
                DocumentFormat::Manifest,
            ));
        }
        self.skip_missing_segments();
        let longest = self
            .tracks
            .iter()
            .filter_map(|track| track.segments.as_ref())
            .map(|segments| segments.len())
            .max();
        let known = self
            .tracks
            .iter()
            .all(|track| track.segments.is_some() && track.remaining_sources.is_empty());
        if known && longest.is_some_and(|longest| self.segment >= longest) {
            self.restart_title();
            return Some((
                FetchPurpose::Manifest,
                self.manifest.clone(),
                DocumentFormat::Manifest,
            ));
        }
        let (turn, segment) = (self.turn, self.segment);
        let track = &mut self.tracks[turn];
        let found = track.next(segment);
        if !matches!(
            found,
            Some((FetchPurpose::Audio | FetchPurpose::Video, ..)) | None
        ) {
            return found;
        }
        self.advance_to_next_track();
        found
    }

    /// Skips the turns of segments that the playlist marks as missing (`EXT-X-GAP`).
    fn skip_missing_segments(&mut self) {
        while self
            .tracks
            .get(self.turn)
            .is_some_and(|track| track.is_missing(self.segment))
        {
            self.advance_to_next_track();
        }
    }

    /// Passes the turn to the next track.
    fn advance_to_next_track(&mut self) {
        self.turn += 1;
        if self.turn >= self.tracks.len() {
            (self.turn, self.segment) = (0, self.segment + 1);
        }
    }
}

impl SequenceTrack {
    fn is_missing(&self, segment: usize) -> bool {
        let segments = self.segments.as_ref();
        self.remaining_sources.is_empty() && segments.is_some_and(|list| list.is_gap(segment))
    }

    fn next(&mut self, segment: usize) -> Option<(FetchPurpose, ResourceRange, DocumentFormat)> {
        match self.remaining_sources.front() {
            Some(SegmentListSource::Playlist(url)) => {
                let resource = ResourceRange {
                    url: url.clone(),
                    range: None,
                };
                return Some((FetchPurpose::Playlist, resource, DocumentFormat::Manifest));
            }
            Some(SegmentListSource::Sidx(index)) => {
                return Some((
                    FetchPurpose::Index,
                    index.index_resource.clone(),
                    DocumentFormat::Index(index.clone()),
                ));
            }
            _ => {}
        }
        let segments = self.segments.clone()?;
        let init = segments.init_index(segment);
        if init.is_some() && init != self.init {
            self.init = init;
            let resource = segments.init_resource(init?).ok()??;
            return Some((FetchPurpose::Init, resource, DocumentFormat::Discard));
        }
        let resource = segments.segment_resource(segment).ok()??;
        Some((self.purpose, resource, DocumentFormat::Discard))
    }

    /// Appends the segments of a fetched document. Then appends the segments of the next sources,
    /// up to the next source that must be fetched.
    fn add_segments(&mut self, segments: &SegmentList) -> media::Result<()> {
        let mut all = self
            .segments
            .take()
            .map_or_else(SegmentList::default, |known| (*known).clone());
        all.append(segments.clone())?;
        self.remaining_sources.pop_front();
        while let Some(SegmentListSource::Segments(_)) = self.remaining_sources.front() {
            if let Some(SegmentListSource::Segments(more)) = self.remaining_sources.pop_front() {
                all.append(more)?;
            }
        }
        self.segments = Some(Arc::new(all));
        Ok(())
    }
}

impl Player for SequenceWorker {
    fn poll(&mut self, now: Micros) -> PlayerAction {
        if now >= self.leave_at {
            self.end_session(SessionEnd::Left);
        }
        if self.ended.is_some() {
            return PlayerAction::Done;
        }
        if self.pending.is_some() || now < self.not_before {
            return PlayerAction::Wait(if now < self.not_before {
                self.not_before.min(self.leave_at)
            } else {
                self.leave_at
            });
        }
        // A track can have fewer segments than the other track. The loop skips the turns of a track
        // without further segments.
        for _ in 0..4 {
            if let Some((purpose, resource, format)) = self.next() {
                self.next_id = self.next_id.wrapping_add(1);
                self.pending = Some((self.next_id, purpose));
                return PlayerAction::Fetch(Box::new(MediaFetch {
                    id: self.next_id,
                    purpose,
                    resource,
                    format,
                    cmcd: None,
                }));
            }
        }
        self.restart_title();
        self.not_before = now + 1_000_000;
        PlayerAction::Wait(self.not_before.min(self.leave_at))
    }

    fn handle_result(&mut self, now: Micros, id: u32, result: FetchResult) {
        let Some((_, purpose)) = self.pending.take_if(|(pending, _)| *pending == id) else {
            return;
        };
        let good = match (result.ok, purpose, result.document) {
            (true, FetchPurpose::Manifest, Some(ParsedDocument::TitleLadder(stream))) => {
                self.set_up_tracks(stream);
                true
            }
            (true, FetchPurpose::Manifest, Some(ParsedDocument::Segments(segments))) => {
                self.set_up_tracks(Arc::new(TitleLadder::from_segments(segments)));
                true
            }
            (
                true,
                FetchPurpose::Playlist | FetchPurpose::Index,
                Some(ParsedDocument::Segments(segments)),
            ) => {
                let track = self.tracks.get_mut(self.turn);
                track.is_some_and(|track| track.add_segments(&segments).is_ok())
            }
            (ok, purpose, _) => ok && !purpose.is_document(),
        };
        if good {
            self.failures = 0;
            return;
        }
        self.failures += 1;
        // A failed segment is counted and not requested again, as in the original worker.
        if purpose.is_document() || self.failures > FAILURES_MAX {
            self.failures = 0;
            self.restart_title();
            self.not_before = now + 1_000_000;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::title_ladder::AudioPreference;
    use super::*;
    use media::manifest::read::{Url, hls, mpd};

    fn test_title() -> Arc<TitleLadder> {
        let template = "<SegmentTemplate timescale='1' duration='2' initialization='$RepresentationID$/i' media='$RepresentationID$/$Number$'/>";
        let text = format!(
            "<MPD mediaPresentationDuration='PT4S'><Period><AdaptationSet contentType='video'>{template}<Representation id='v1' bandwidth='100000'/>\
             <Representation id='v2' bandwidth='3894000'/></AdaptationSet><AdaptationSet contentType='audio'>{template}\
             <Representation id='a' bandwidth='132000'/></AdaptationSet></Period></MPD>"
        );
        let title = mpd::parse_mpd(&manifest_url(), text.as_bytes()).unwrap();
        Arc::new(TitleLadder::new(title, false, &AudioPreference::default()).unwrap())
    }

    fn manifest_url() -> Url {
        Url::parse("http://o.test/m.mpd").unwrap()
    }

    /// Runs the worker until it has requested `steps` resources, and returns the paths of the
    /// requests. Each response arrives immediately.
    fn play_steps(
        worker: &mut SequenceWorker,
        steps: usize,
        fails: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let stream = test_title();
        let title = || ParsedDocument::TitleLadder(stream.clone());
        play_title_steps(worker, steps, title, fails)
    }

    fn play_title_steps(
        worker: &mut SequenceWorker,
        steps: usize,
        title: impl Fn() -> ParsedDocument,
        fails: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut requested = Vec::new();
        let mut now = 0;
        while requested.len() < steps {
            match worker.poll(now) {
                PlayerAction::Fetch(fetch) => {
                    let path = fetch.resource.url.path().to_string();
                    let document = (fetch.purpose == FetchPurpose::Manifest).then(&title);
                    let result = FetchResult {
                        ok: !fails(&path),
                        document,
                        ..FetchResult::default()
                    };
                    worker.handle_result(now, fetch.id, result);
                    requested.push(path);
                }
                PlayerAction::Wait(at) => now = at,
                PlayerAction::Cancel(_) => panic!(),
                PlayerAction::Done => break,
            }
        }
        requested
    }

    #[test]
    fn audio_and_video_alternate_and_the_title_restarts() {
        let resource = ResourceRange {
            url: manifest_url(),
            range: None,
        };
        let mut worker = SequenceWorker::new(resource, FixedLevel::Given(3_894_000.0), Micros::MAX);
        let round = ["/m.mpd", "/a/i", "/a/1", "/v2/i", "/v2/1", "/a/2", "/v2/2"];
        let requested = play_steps(&mut worker, 14, |_| false);
        assert_eq!(requested[..7], round);
        assert_eq!(requested[7..], round);
        assert_eq!(worker.restart_count(), 1);
    }

    #[test]
    fn missing_segments_are_not_requested() {
        let gaps = "#EXT-X-GAP\n#EXTINF:2,\n0.m4s\n".repeat(9);
        let text = format!(
            "#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-TARGETDURATION:2\n{gaps}#EXTINF:2,\n1.m4s\n\
             {gaps}#EXTINF:2,\n2.m4s\n{gaps}#EXT-X-ENDLIST\n"
        );
        let title = || match hls::parse_playlist(&manifest_url(), text.as_bytes()).unwrap() {
            hls::ParsedPlaylist::Media(media) => ParsedDocument::Segments(media.segments.into()),
            hls::ParsedPlaylist::Multivariant(_) => panic!(),
        };
        let resource = ResourceRange {
            url: manifest_url(),
            range: None,
        };
        let mut worker = SequenceWorker::new(resource, FixedLevel::Highest, Micros::MAX);
        let requested = play_title_steps(&mut worker, 6, title, |_| false);
        let round = ["/m.mpd", "/1.m4s", "/2.m4s"];
        assert_eq!(
            (&requested[..3], &requested[3..]),
            (&round.map(String::from)[..], &round.map(String::from)[..])
        );
    }

    #[test]
    fn failures_do_not_stop_the_worker_but_the_end_time_does() {
        let resource = ResourceRange {
            url: manifest_url(),
            range: None,
        };
        let mut worker = SequenceWorker::new(resource.clone(), FixedLevel::Highest, Micros::MAX);
        let requested = play_steps(&mut worker, 9, |path| path == "/a/2");
        assert_eq!(requested[5..8], ["/a/2", "/v2/2", "/m.mpd"]);
        let mut worker = SequenceWorker::new(resource, FixedLevel::Highest, 10_000_000);
        let requested = play_steps(&mut worker, 1000, |path| path == "/m.mpd");
        assert_eq!(
            (requested.len(), worker.end_reason()),
            (10, Some(SessionEnd::Left))
        );
    }
}
