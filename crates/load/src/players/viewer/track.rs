//! One track: what it holds, and what it is asking for.

use super::super::player::{Micros, What};
use super::super::qoe::{Journal, Played};
use media::manifest::read::Segments;
use media::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// Starts that are nearer than this are the same: rounding of manifests.
const NEAR_US: i64 = 20_000;

/// Which of a level's sources it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Pictures, with or without sound; or sound alone where there are no pictures.
    Main,
    /// Sound beside pictures.
    Audio,
}

/// A request, and what to make of its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) at: Micros,
    pub(super) level: usize,
    pub(super) source: usize,
    pub(super) segment: usize,
    pub(super) init: u16,
    pub(super) duration_us: i64,
}

/// One request at a time, asked again if it fails.
#[derive(Debug, Default)]
pub(super) struct Asking {
    pending: Option<(u32, Option<Asked>)>,
    pub(super) failures: u32,
    pub(super) not_before: Option<Micros>,
}

impl Asking {
    pub(super) fn is_free(&self, now: Micros) -> bool {
        self.pending.is_none() && self.not_before.is_none_or(|at| now >= at)
    }

    pub(super) fn is(&self, id: u32) -> bool {
        self.pending.is_some_and(|(pending, _)| pending == id)
    }

    pub(super) fn begin(&mut self, id: u32, asked: Option<Asked>) {
        self.pending = Some((id, asked));
        self.not_before = None;
    }

    pub(super) fn finish(&mut self) -> Option<Asked> {
        self.failures = 0;
        self.pending.take().and_then(|(_, asked)| asked)
    }

    pub(super) fn again(&mut self, at: Micros) {
        self.pending = None;
        self.not_before = Some(at);
    }

    pub(super) fn cancel(&mut self) -> Option<u32> {
        self.not_before = None;
        self.failures = 0;
        self.pending.take().map(|(id, _)| id)
    }
}

/// A segment that is held.
#[derive(Debug, Clone, Copy)]
struct Held {
    end_us: i64,
    duration_us: i64,
    level: u16,
    kbps: u32,
}

#[derive(Debug)]
pub(super) struct Track {
    pub(super) role: Role,
    /// Segments of each source, as far as they are known.
    sources: Vec<Option<Arc<Segments>>>,
    /// How many pieces of each source were read.
    pub(super) pieces: Vec<u16>,
    /// The level of the last segment.
    pub(super) level: Option<usize>,
    /// The source of the last segment.
    source: usize,
    /// What was chosen for the next segment, with its source.
    pub(super) next: Option<(usize, usize)>,
    /// Since when the buffer was full.
    pub(super) full_since: Option<Micros>,
    /// Sources and init segments that were fetched.
    pub(super) inits: Vec<(u16, u16)>,
    pub(super) asking: Asking,
    held: VecDeque<Held>,
    /// Until where the main track was played.
    played_us: i64,
    /// Where what is held begins.
    begin_us: i64,
    /// Where what is held ends.
    pub(super) end_us: i64,
    /// There is nothing more to ask for.
    pub(super) done: bool,
}

impl Track {
    pub(super) fn new(role: Role, sources: usize) -> Track {
        Track {
            role,
            sources: vec![None; sources],
            pieces: vec![0; sources],
            level: None,
            source: 0,
            next: None,
            full_since: None,
            inits: Vec::new(),
            asking: Asking::default(),
            held: VecDeque::new(),
            played_us: 0,
            begin_us: 0,
            end_us: 0,
            done: false,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Track>()
            + self.sources.capacity() * size_of::<Option<Arc<Segments>>>()
            + self.pieces.capacity() * 2
            + self.inits.capacity() * 4
            + self.held.capacity() * size_of::<Held>()
    }

    /// Segments of a source, where they are known.
    pub(super) fn known(&self, source: usize) -> Option<&Arc<Segments>> {
        self.sources.get(source)?.as_ref()
    }

    /// Segments of the source that was used last.
    pub(super) fn segments(&self) -> Option<&Arc<Segments>> {
        self.known(self.source)
    }

    /// Takes in segments that the manifest named, or that were read; further pieces go behind.
    pub(super) fn learn(&mut self, source: usize, segments: Arc<Segments>) -> media::Result<()> {
        let Some(slot) = self.sources.get_mut(source) else {
            return Ok(());
        };
        self.pieces[source] += 1;
        *slot = Some(match slot.take() {
            None => segments,
            Some(known) => {
                let mut joined = (*known).clone();
                joined.append((*segments).clone())?;
                Arc::new(joined)
            }
        });
        Ok(())
    }

    /// The segment of a source that comes next; past the last where there is none.
    pub(super) fn next_segment(&self, segments: &Segments) -> usize {
        let from = self.end_us.saturating_add(NEAR_US);
        let at = segments.at(Time::new(from, 1_000_000));
        let covers =
            micros(segments.start(at)).saturating_add(micros(segments.duration(at))) > from;
        // Before the first segment, and where a segment reaches beyond, it is this one.
        if covers || (micros(segments.start(at)) > self.end_us) {
            at
        } else {
            at + 1
        }
    }

    /// Segments left of the last source.
    pub(super) fn left(&self) -> usize {
        self.segments().map_or(1, |segments| {
            segments.len().saturating_sub(self.next_segment(segments))
        })
    }

    /// A segment has come.
    pub(super) fn hold(&mut self, asked: &Asked, bytes: u64) {
        let Some(segments) = self.known(asked.source).cloned() else {
            return;
        };
        let end_us = micros(segments.start(asked.segment)).saturating_add(asked.duration_us);
        if self.held.is_empty() && self.end_us == self.begin_us {
            self.begin_us = micros(segments.start(asked.segment)).min(self.begin_us.max(0));
        }
        let ms = (asked.duration_us / 1000).max(1) as u64;
        self.held.push_back(Held {
            end_us,
            duration_us: asked.duration_us,
            level: asked.level as u16,
            kbps: u32::try_from(bytes.saturating_mul(8) / ms).unwrap_or(u32::MAX),
        });
        self.end_us = self.end_us.max(end_us);
        (self.level, self.source, self.next) = (Some(asked.level), asked.source, None);
    }

    /// A segment that does not exist is passed over.
    pub(super) fn pass(&mut self, end_us: i64) {
        self.end_us = self.end_us.max(end_us);
    }

    /// What was played up to a position leaves the buffer and is written down.
    pub(super) fn play(&mut self, position: i64, journal: &mut Journal) {
        while let Some(first) = self.held.front().copied() {
            let from = self.played_us.max(first.end_us - first.duration_us);
            let until = position.min(first.end_us);
            if until - from >= 1000 {
                let ms = (until - from) / 1000;
                journal.play(Played {
                    ms: ms as u32,
                    level: first.level,
                    kbps: first.kbps,
                });
                self.played_us = from + ms * 1000;
            }
            if first.end_us - position >= 1000 {
                break;
            }
            self.played_us = self.played_us.max(first.end_us);
            self.held.pop_front();
        }
    }

    pub(super) fn holds(&self, position: i64) -> bool {
        (self.begin_us.max(self.played_us)..self.end_us).contains(&position)
    }

    /// Passes over what is held up to a position.
    pub(super) fn skip(&mut self, position: i64) {
        self.played_us = position;
        while self
            .held
            .front()
            .is_some_and(|first| first.end_us <= position)
        {
            self.held.pop_front();
        }
    }

    /// Forgets what is held and asked for, and goes to the segment that is shown at a position.
    pub(super) fn flush(&mut self, position: i64) -> Option<u32> {
        let start = self.segments().map_or(position, |segments| {
            micros(segments.start(segments.at(Time::new(position, 1_000_000))))
        });
        self.held.clear();
        (self.begin_us, self.end_us, self.played_us) = (start, start, position);
        (self.done, self.next, self.full_since) = (false, None, None);
        self.asking.cancel()
    }
}

/// Whole microseconds.
pub(super) fn micros(time: Time) -> i64 {
    time.round_to(1_000_000)
}
