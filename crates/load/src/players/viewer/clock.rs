//! The media clock: where it plays, and why it does not.

use super::super::player::Micros;
use super::super::qoe::{Journal, Stall};

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Before the first picture.
    Starting,
    Playing,
    /// Out of something to play, since then.
    Stalled(Micros),
    /// Somewhere else, since then.
    Seeking(Micros),
}

/// Advances with time while it plays.
#[derive(Debug)]
pub(super) struct Clock {
    began: Micros,
    now: Micros,
    position: i64,
    state: State,
}

impl Clock {
    pub(super) fn new(now: Micros) -> Clock {
        Clock {
            began: now,
            now,
            position: 0,
            state: State::Starting,
        }
    }

    /// When it was looked at last.
    pub(super) fn now(&self) -> Micros {
        self.now
    }

    /// Microseconds of media from its start.
    pub(super) fn position(&self) -> i64 {
        self.position
    }

    pub(super) fn is_playing(&self) -> bool {
        self.state == State::Playing
    }

    pub(super) fn is_stalled(&self) -> bool {
        matches!(self.state, State::Stalled(_))
    }

    pub(super) fn is_seeking(&self) -> bool {
        matches!(self.state, State::Seeking(_))
    }

    /// Whether a picture was ever shown.
    pub(super) fn has_started(&self) -> bool {
        self.state != State::Starting
    }

    /// Since when it waits for bytes; nothing while it plays.
    pub(super) fn waits_since(&self) -> Option<Micros> {
        match self.state {
            State::Starting => Some(self.began),
            State::Playing => None,
            State::Stalled(since) | State::Seeking(since) => Some(since),
        }
    }

    /// Runs until `now`, through at most `ahead` microseconds of media. Says when it ran dry.
    pub(super) fn run(&mut self, now: Micros, ahead: Micros) -> Option<Micros> {
        let passed = now.saturating_sub(self.now);
        let before = self.now;
        self.now = self.now.max(now);
        if !self.is_playing() {
            return None;
        }
        let played = passed.min(ahead);
        self.position = self.position.saturating_add(played as i64);
        (passed >= ahead).then_some(before + ahead)
    }

    pub(super) fn stall(&mut self, at: Micros) {
        self.state = State::Stalled(at);
    }

    pub(super) fn seek(&mut self, position: i64) {
        let since = self.waits_since().unwrap_or(self.now);
        self.position = position;
        self.state = State::Seeking(since);
    }

    /// Where the first segment begins, should that not be zero.
    pub(super) fn begin_at(&mut self, position: i64) {
        if self.state == State::Starting {
            self.position = position;
        }
    }

    pub(super) fn start(&mut self, journal: &mut Journal) {
        self.close(journal);
        if self.state == State::Starting {
            journal.start_delay_ms = Some((self.now - self.began) / 1000);
        }
        self.state = State::Playing;
    }

    /// Writes down a wait that goes on.
    pub(super) fn close(&mut self, journal: &mut Journal) {
        match self.state {
            State::Stalled(since) => journal.stalls.push(Stall {
                at_ms: journal.played_ms,
                ms: (self.now - since) / 1000,
            }),
            State::Seeking(since) => journal.seek_wait_ms += (self.now - since) / 1000,
            State::Starting | State::Playing => {}
        }
    }
}
