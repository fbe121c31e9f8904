//! A viewer: a media clock, a start-up, buffers for pictures and sound, stalls, and a rule that
//! chooses the bitrate.
//!
//! Pictures and sound are fetched beside each other, one request at a time each, as players do. A
//! segment is asked for when it fits below the buffer's bound; playing starts when each track holds
//! enough, stops when one runs dry, and goes on when each holds enough again.

mod answers;
mod clock;
mod fetching;
mod telling;
#[cfg(test)]
mod tests;
mod track;
mod words;

pub use words::{End, Glance, Plan, Setup};

use super::abr::{Abr, Estimator};
use super::player::{Answer, Document, Micros, Player, Step};
use super::qoe::{Journal, Judged, Summary};
use super::stream::Stream;
use clock::Clock;
use std::sync::Arc;
use track::{Role, Track};

/// A viewer.
#[derive(Debug)]
pub struct Viewer {
    setup: Arc<Setup>,
    plan: Box<Plan>,
    stream: Option<Arc<Stream>>,
    /// Levels that the device allows, and their bitrates.
    levels: Box<[u16]>,
    bitrates: Box<[f64]>,
    /// Lent out while it looks at the viewer.
    abr: Option<Box<dyn Abr>>,
    estimator: Box<Estimator>,
    manifest: track::Asking,
    tracks: Vec<Track>,
    clock: Clock,
    journal: Box<Journal>,
    next_seek: usize,
    next_id: u32,
    cancelled: Vec<u32>,
    ended: Option<End>,
    chosen: usize,
    starved: bool,
    sequence: u32,
}

impl Viewer {
    /// A viewer who wishes to play now.
    pub fn new(setup: Arc<Setup>, plan: Plan, abr: Box<dyn Abr>, now: Micros) -> Viewer {
        Viewer {
            setup,
            plan: Box::new(plan),
            stream: None,
            levels: Box::default(),
            bitrates: Box::default(),
            abr: Some(abr),
            estimator: Box::default(),
            manifest: track::Asking::default(),
            tracks: Vec::new(),
            clock: Clock::new(now),
            journal: Box::default(),
            next_seek: 0,
            next_id: 0,
            cancelled: Vec::new(),
            ended: None,
            chosen: 0,
            starved: false,
            sequence: 0,
        }
    }

    /// What it does.
    pub fn glance(&self) -> Glance {
        let bps = self
            .tracks
            .first()
            .and_then(|track| self.bitrates.get(track.level?));
        Glance {
            at: self.clock.now(),
            buffer: self.ahead(),
            playing: self.clock.is_playing(),
            stalled: self.clock.is_stalled(),
            bps: bps.copied().unwrap_or(0.0),
        }
    }

    /// Ends it, for the reason given, unless it has ended.
    pub fn end(&mut self, now: Micros, end: End) {
        self.advance(now);
        if self.ended.is_none() {
            self.clock.close(&mut self.journal);
            self.ended = Some(end);
        }
    }

    /// How it ended; nothing while it goes on.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// The sum of what happened so far.
    pub fn summary(&self) -> Summary {
        let bitrates = &self.bitrates;
        self.journal.summary(bitrates, |level| self.judged(level))
    }

    /// Bytes of memory that this viewer alone takes, about.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Viewer>()
            + size_of::<Plan>()
            + self.plan.manifest.url.as_str().len()
            + self.plan.seeks.capacity() * size_of::<(Micros, f64)>()
            + size_of::<Estimator>()
            + self.abr.as_deref().map_or(0, size_of_val)
            + self.levels.len() * (size_of::<u16>() + size_of::<f64>())
            + self.tracks.iter().map(Track::memory_bytes).sum::<usize>()
            + size_of::<Journal>()
            + self.journal.memory_bytes()
    }

    fn judged(&self, level: u16) -> Judged {
        let stream = self.stream.as_ref();
        let level = self
            .levels
            .get(usize::from(level))
            .and_then(|n| stream?.levels.get(usize::from(*n)));
        let audio = level.and_then(|level| Some(stream?.audios.get(level.audio?)?.bps / 1000.0));
        Judged {
            resolution: level
                .and_then(|level| level.resolution)
                .unwrap_or((1280, 720)),
            frame_rate: level.and_then(|level| level.frame_rate).unwrap_or(25.0),
            screen_lines: self.plan.device.screen_lines,
            audio_kbps: audio.filter(|kbps| *kbps > 0.0),
            handheld: self.plan.device.handheld,
        }
    }

    /// The manifest has come: a ladder, and a track for pictures and one for sound.
    fn open(&mut self, stream: Arc<Stream>) {
        self.manifest.finish();
        self.levels = self.plan.device.levels(&stream).into();
        let bps = |n: &u16| stream.levels[usize::from(*n)].bps;
        self.bitrates = self.levels.iter().map(bps).collect();
        self.tracks = vec![Track::new(Role::Main, stream.levels.len())];
        if stream.levels.iter().any(|level| level.audio.is_some()) {
            self.tracks
                .push(Track::new(Role::Audio, stream.audios.len()));
        }
        self.stream = Some(stream);
    }

    /// Microseconds from the clock's position to where the first track runs dry.
    fn ahead(&self) -> Micros {
        let ends = self
            .tracks
            .iter()
            .filter(|track| !track.done)
            .map(|track| track.end_us);
        let position = self.clock.position();
        match ends.min() {
            Some(end) => end.saturating_sub(position).max(0) as Micros,
            None => self.title_end().saturating_sub(position).max(0) as Micros,
        }
    }

    /// Where the longest track ends, once all have come to their ends.
    fn title_end(&self) -> i64 {
        self.tracks
            .iter()
            .map(|track| track.end_us)
            .max()
            .unwrap_or(0)
    }

    fn all_done(&self) -> bool {
        !self.tracks.is_empty() && self.tracks.iter().all(|track| track.done)
    }

    /// Lets the clock run until now, as far as there is something to play.
    fn advance(&mut self, now: Micros) {
        if self.ended.is_some() {
            return;
        }
        let dry = self.clock.run(now, self.ahead());
        let position = self.clock.position();
        if let Some((main, others)) = self.tracks.split_first_mut() {
            main.play(position, &mut self.journal);
            others.iter_mut().for_each(|track| track.skip(position));
        }
        if let Some(at) = dry {
            if self.all_done() {
                self.ended = Some(End::Finished);
                self.clock.close(&mut self.journal);
            } else {
                self.starved = true;
                self.clock.stall(at);
            }
        }
    }

    /// Starts to play where each track holds enough.
    fn start(&mut self) {
        if self.clock.is_playing() || self.tracks.is_empty() {
            return;
        }
        let enough = if self.clock.is_stalled() {
            self.setup.resume_s
        } else {
            self.setup.start_s
        };
        let enough = ((enough.min(self.setup.buffer_max_s / 2.0) * 1e6) as Micros).max(1);
        let held = self.ahead();
        let all_here = self.all_done() && held > 0;
        if all_here || held >= enough {
            self.clock.start(&mut self.journal);
        } else if self.all_done() {
            self.ended = Some(End::Finished);
        }
    }

    /// Leaves, gives up or seeks, when it is time to.
    fn decide(&mut self, now: Micros) {
        if now >= self.plan.leave_at {
            return self.end(now, End::Left);
        }
        if let Some(patience) = self.plan.patience
            && self
                .clock
                .waits_since()
                .is_some_and(|since| now >= since + patience)
        {
            return self.end(now, End::GaveUp);
        }
        while let Some((at, share)) = self.plan.seeks.get(self.next_seek).copied()
            && now >= at
        {
            self.next_seek += 1;
            if self.clock.has_started() {
                self.seek(share);
            }
        }
    }

    /// Goes somewhere else; what is being fetched is forgotten, as what is buffered elsewhere.
    fn seek(&mut self, share: f64) {
        let main = self.tracks.first().and_then(|track| track.segments());
        let Some(length) = main.map(|segments| track::micros(segments.end())) else {
            return;
        };
        let target = (length as f64 * share.clamp(0.0, 1.0)) as i64;
        let held = self.tracks.iter().all(|track| track.holds(target));
        self.clock.seek(target);
        if held {
            self.tracks.iter_mut().for_each(|track| track.skip(target));
            return;
        }
        for track in &mut self.tracks {
            self.cancelled.extend(track.flush(target));
        }
        self.abr.iter_mut().for_each(|abr| abr.sought());
        self.chosen = 0;
    }

    /// When something will have to be done though no answer comes.
    fn wake_at(&self) -> Micros {
        let dry = self
            .clock
            .is_playing()
            .then(|| self.clock.now() + self.ahead());
        let seek = self.plan.seeks.get(self.next_seek).map(|(at, _)| *at);
        let give_up = self
            .plan
            .patience
            .and_then(|patience| Some(self.clock.waits_since()? + patience));
        let asking = self
            .tracks
            .iter()
            .filter_map(|track| track.asking.not_before);
        let asking = asking.chain(self.manifest.not_before).min();
        let all = [dry, seek, give_up, asking];
        all.into_iter()
            .flatten()
            .min()
            .unwrap_or(Micros::MAX)
            .min(self.plan.leave_at)
    }
}

impl Player for Viewer {
    fn poll(&mut self, now: Micros) -> Step {
        self.advance(now);
        if self.ended.is_none() {
            self.start();
            self.decide(now);
        }
        if let Some(id) = self.cancelled.pop() {
            return Step::Cancel(id);
        }
        if self.ended.is_some() {
            return Step::Done;
        }
        if let Some(fetch) = self.next_fetch(now) {
            return Step::Ask(Box::new(fetch));
        }
        if self.ended.is_some() {
            Step::Done
        } else {
            Step::Wait(self.wake_at().max(now + 1))
        }
    }

    fn handle(&mut self, now: Micros, id: u32, answer: Answer) {
        self.advance(now);
        if self.ended.is_some() {
            return;
        }
        if self.manifest.is(id) {
            match answer.document.filter(|_| answer.ok) {
                Some(Document::Stream(stream)) => self.open(stream),
                // A media playlist by itself is a title, too.
                Some(Document::Segments(segments)) => {
                    self.open(Arc::new(Stream::of_segments(segments)));
                }
                _ => self.failed(now, None),
            }
        } else if let Some(n) = self.tracks.iter().position(|track| track.asking.is(id)) {
            self.answered(now, n, answer);
        }
    }
}
