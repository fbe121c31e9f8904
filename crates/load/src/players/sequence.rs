//! The worker of "Load testing VOD configurations": the manifest, then audio segment k, video
//! segment k, and so on, as fast as answers come; at the end it begins anew.

use super::abr::Fixed;
use super::player::{Answer, Document, Fetch, Micros, Player, Reading, Step, What};
use super::stream::{Source, Stream};
use super::viewer::End;
use media::manifest::read::{Part, Piece, Segments};
use std::collections::VecDeque;
use std::sync::Arc;

/// Failures in a row after which it begins anew, a second later each time.
const FAILURES_MAX: u32 = 3;

/// A worker.
#[derive(Debug)]
pub struct Sequence {
    manifest: Part,
    level: Fixed,
    leave_at: Micros,
    stream: Option<Arc<Stream>>,
    /// Audio, where it lies apart, then video.
    tracks: Vec<Track>,
    /// What comes next, in order.
    turn: usize,
    segment: usize,
    pending: Option<(u32, What)>,
    next_id: u32,
    failures: u32,
    not_before: Micros,
    rounds: u64,
    ended: Option<End>,
}

#[derive(Debug)]
struct Track {
    what: What,
    segments: Option<Arc<Segments>>,
    pieces: VecDeque<Piece>,
    init: Option<u16>,
}

impl Sequence {
    /// A worker that asks for one level until it is time to leave.
    pub fn new(manifest: Part, level: Fixed, leave_at: Micros) -> Sequence {
        Sequence {
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

    /// How often it came to the end and began anew.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Ends it.
    pub fn end(&mut self, end: End) {
        self.ended.get_or_insert(end);
    }

    /// How it ended.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    fn open(&mut self, stream: Arc<Stream>) {
        let bitrates: Vec<f64> = stream.levels.iter().map(|level| level.bps).collect();
        let level = self.level.level(&bitrates);
        let chosen = &stream.levels[level];
        let track = |what, source: &Source| Track {
            what,
            segments: source.known.clone(),
            pieces: source.pieces.clone().into(),
            init: None,
        };
        let audio = chosen.audio.map(|n| track(What::Audio, &stream.audios[n]));
        self.tracks = audio.into_iter().collect();
        self.tracks.push(track(What::Video, &chosen.source));
        (self.turn, self.segment) = (0, 0);
        self.stream = Some(stream);
    }

    fn again(&mut self) {
        (self.stream, self.tracks) = (None, Vec::new());
        self.rounds += 1;
    }

    fn next(&mut self) -> Option<(What, Part, Reading)> {
        if self.stream.is_none() {
            return Some((What::Manifest, self.manifest.clone(), Reading::Manifest));
        }
        let longest = self
            .tracks
            .iter()
            .filter_map(|track| track.segments.as_ref())
            .map(|segments| segments.len())
            .max();
        let known = self
            .tracks
            .iter()
            .all(|track| track.segments.is_some() && track.pieces.is_empty());
        if known && longest.is_some_and(|longest| self.segment >= longest) {
            self.again();
            return Some((What::Manifest, self.manifest.clone(), Reading::Manifest));
        }
        let (turn, segment) = (self.turn, self.segment);
        let track = &mut self.tracks[turn];
        let found = track.next(segment);
        if !matches!(found, Some((What::Audio | What::Video, ..)) | None) {
            return found;
        }
        self.turn += 1;
        if self.turn == self.tracks.len() {
            (self.turn, self.segment) = (0, segment + 1);
        }
        found
    }
}

impl Track {
    fn next(&mut self, segment: usize) -> Option<(What, Part, Reading)> {
        match self.pieces.front() {
            Some(Piece::Playlist(url)) => {
                let part = Part {
                    url: url.clone(),
                    range: None,
                };
                return Some((What::Playlist, part, Reading::Manifest));
            }
            Some(Piece::Index(index)) => {
                return Some((
                    What::Index,
                    index.part.clone(),
                    Reading::Index(index.clone()),
                ));
            }
            _ => {}
        }
        let segments = self.segments.clone()?;
        let init = segments.init(segment);
        if init.is_some() && init != self.init {
            self.init = init;
            let part = segments.init_part(init?).ok()??;
            return Some((What::Init, part, Reading::Discard));
        }
        let part = segments.part(segment).ok()??;
        Some((self.what, part, Reading::Discard))
    }

    /// Takes in what was read; pieces that the manifest named itself go behind.
    fn learn(&mut self, segments: &Segments) -> media::Result<()> {
        let mut all = self
            .segments
            .take()
            .map_or_else(Segments::default, |known| (*known).clone());
        all.append(segments.clone())?;
        self.pieces.pop_front();
        while let Some(Piece::Segments(_)) = self.pieces.front() {
            if let Some(Piece::Segments(more)) = self.pieces.pop_front() {
                all.append(more)?;
            }
        }
        self.segments = Some(Arc::new(all));
        Ok(())
    }
}

impl Player for Sequence {
    fn poll(&mut self, now: Micros) -> Step {
        if now >= self.leave_at {
            self.end(End::Left);
        }
        if self.ended.is_some() {
            return Step::Done;
        }
        if self.pending.is_some() || now < self.not_before {
            return Step::Wait(if now < self.not_before {
                self.not_before.min(self.leave_at)
            } else {
                self.leave_at
            });
        }
        // A track may end before the other: its turns are passed over.
        for _ in 0..4 {
            if let Some((what, part, reading)) = self.next() {
                self.next_id = self.next_id.wrapping_add(1);
                self.pending = Some((self.next_id, what));
                return Step::Ask(Box::new(Fetch {
                    id: self.next_id,
                    what,
                    part,
                    reading,
                    cmcd: None,
                }));
            }
        }
        self.again();
        self.not_before = now + 1_000_000;
        Step::Wait(self.not_before.min(self.leave_at))
    }

    fn handle(&mut self, now: Micros, id: u32, answer: Answer) {
        let Some((_, what)) = self.pending.take_if(|(pending, _)| *pending == id) else {
            return;
        };
        let good = match (answer.ok, what, answer.document) {
            (true, What::Manifest, Some(Document::Stream(stream))) => {
                self.open(stream);
                true
            }
            (true, What::Manifest, Some(Document::Segments(segments))) => {
                self.open(Arc::new(Stream::of_segments(segments)));
                true
            }
            (true, What::Playlist | What::Index, Some(Document::Segments(segments))) => {
                let track = self.tracks.get_mut(self.turn);
                track.is_some_and(|track| track.learn(&segments).is_ok())
            }
            (ok, what, _) => ok && !what.is_document(),
        };
        if good {
            self.failures = 0;
            return;
        }
        self.failures += 1;
        // Segments that fail are counted and passed over: the worker goes on, as the source's does.
        if what.is_document() || self.failures > FAILURES_MAX {
            self.failures = 0;
            self.again();
            self.not_before = now + 1_000_000;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Wish;
    use super::*;
    use media::manifest::read::{Url, mpd};

    fn stream() -> Arc<Stream> {
        let template = "<SegmentTemplate timescale='1' duration='2' initialization='$RepresentationID$/i' media='$RepresentationID$/$Number$'/>";
        let text = format!(
            "<MPD mediaPresentationDuration='PT4S'><Period><AdaptationSet contentType='video'>{template}<Representation id='v1' bandwidth='100000'/>\
             <Representation id='v2' bandwidth='3894000'/></AdaptationSet><AdaptationSet contentType='audio'>{template}\
             <Representation id='a' bandwidth='132000'/></AdaptationSet></Period></MPD>"
        );
        let title = mpd::read(&url(), text.as_bytes()).unwrap();
        Arc::new(Stream::new(title, false, &Wish::default()).unwrap())
    }

    fn url() -> Url {
        Url::parse("http://o.test/m.mpd").unwrap()
    }

    /// Asks and answers so many times, at once.
    fn run(worker: &mut Sequence, steps: usize, fails: impl Fn(&str) -> bool) -> Vec<String> {
        let stream = stream();
        let mut asked = Vec::new();
        let mut now = 0;
        while asked.len() < steps {
            match worker.poll(now) {
                Step::Ask(fetch) => {
                    let path = fetch.part.url.path().to_string();
                    let document =
                        (fetch.what == What::Manifest).then(|| Document::Stream(stream.clone()));
                    let answer = Answer {
                        ok: !fails(&path),
                        document,
                        ..Answer::default()
                    };
                    worker.handle(now, fetch.id, answer);
                    asked.push(path);
                }
                Step::Wait(at) => now = at,
                Step::Cancel(_) => panic!(),
                Step::Done => break,
            }
        }
        asked
    }

    #[test]
    fn manifest_then_audio_and_video_in_turn_and_over_again() {
        let part = Part {
            url: url(),
            range: None,
        };
        let mut worker = Sequence::new(part, Fixed::Given(3_894_000.0), Micros::MAX);
        let round = ["/m.mpd", "/a/i", "/a/1", "/v2/i", "/v2/1", "/a/2", "/v2/2"];
        let asked = run(&mut worker, 14, |_| false);
        assert_eq!(asked[..7], round);
        assert_eq!(asked[7..], round);
        assert_eq!(worker.rounds(), 1);
    }

    #[test]
    fn failures_do_not_stop_it_and_time_does() {
        let part = Part {
            url: url(),
            range: None,
        };
        let mut worker = Sequence::new(part.clone(), Fixed::Highest, Micros::MAX);
        let asked = run(&mut worker, 9, |path| path == "/a/2");
        assert_eq!(asked[5..8], ["/a/2", "/v2/2", "/m.mpd"]);
        let mut worker = Sequence::new(part, Fixed::Highest, 10_000_000);
        let asked = run(&mut worker, 1000, |path| path == "/m.mpd");
        assert_eq!((asked.len(), worker.ended()), (10, Some(End::Left)));
    }
}
