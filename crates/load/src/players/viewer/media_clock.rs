//! The media clock stores the playback position, and the reason for an interruption of playback.

use super::super::player_interface::Micros;
use super::super::qoe::{PlaybackJournal, StallEvent};

#[derive(Debug, Clone, Copy, PartialEq)]
enum ClockState {
    /// The first frame has not been shown yet.
    Starting,
    Playing,
    /// The buffer has been empty since this time.
    Stalled(Micros),
    /// A seek is in progress, and playback has been interrupted since this time.
    Seeking(Micros),
}

/// A clock whose playback position advances only during playback.
#[derive(Debug)]
pub(super) struct MediaClock {
    began: Micros,
    now: Micros,
    position: i64,
    state: ClockState,
}

impl MediaClock {
    pub(super) fn new(now: Micros) -> MediaClock {
        MediaClock {
            began: now,
            now,
            position: 0,
            state: ClockState::Starting,
        }
    }

    /// Returns the time of the last update.
    pub(super) fn now(&self) -> Micros {
        self.now
    }

    /// Returns the playback position in microseconds.
    pub(super) fn position(&self) -> i64 {
        self.position
    }

    pub(super) fn is_playing(&self) -> bool {
        self.state == ClockState::Playing
    }

    pub(super) fn is_stalled(&self) -> bool {
        matches!(self.state, ClockState::Stalled(_))
    }

    pub(super) fn is_seeking(&self) -> bool {
        matches!(self.state, ClockState::Seeking(_))
    }

    /// Returns whether playback has ever started.
    pub(super) fn has_started(&self) -> bool {
        self.state != ClockState::Starting
    }

    /// Returns the time at which the current wait for playback started, or none during playback.
    pub(super) fn waiting_since(&self) -> Option<Micros> {
        match self.state {
            ClockState::Starting => Some(self.began),
            ClockState::Playing => None,
            ClockState::Stalled(since) | ClockState::Seeking(since) => Some(since),
        }
    }

    /// Advances the clock to `now`, and the playback position by at most `ahead` microseconds. If
    /// the buffer ran empty, returns the time at which this happened.
    pub(super) fn advance_to(&mut self, now: Micros, ahead: Micros) -> Option<Micros> {
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

    pub(super) fn enter_stall(&mut self, at: Micros) {
        self.state = ClockState::Stalled(at);
    }

    /// Seeks to a position. A stall ends with the seek, because the wait that follows is caused by
    /// the viewer.
    pub(super) fn seek_to(&mut self, position: i64, journal: &mut PlaybackJournal) {
        let since = match self.state {
            ClockState::Stalled(_) => {
                self.record_wait(journal);
                self.now
            }
            _ => self.waiting_since().unwrap_or(self.now),
        };
        self.position = position;
        self.state = ClockState::Seeking(since);
    }

    /// Sets the playback position to the start of the first segment, unless playback has started.
    pub(super) fn start_at(&mut self, position: i64) {
        if self.state == ClockState::Starting {
            self.position = position;
        }
    }

    pub(super) fn start_playing(&mut self, journal: &mut PlaybackJournal) {
        self.record_wait(journal);
        if self.state == ClockState::Starting {
            journal.start_delay_ms = Some((self.now - self.began) / 1000);
        }
        self.state = ClockState::Playing;
    }

    /// Adds the duration of the current stall or seek to the journal.
    pub(super) fn record_wait(&mut self, journal: &mut PlaybackJournal) {
        match self.state {
            ClockState::Stalled(since) => journal.stalls.push(StallEvent {
                at_ms: journal.played_ms,
                ms: (self.now - since) / 1000,
            }),
            ClockState::Seeking(since) => journal.seek_wait_ms += (self.now - since) / 1000,
            ClockState::Starting | ClockState::Playing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_recorded_up_to_a_seek() {
        let mut journal = PlaybackJournal::default();
        let mut clock = MediaClock::new(0);
        clock.start_playing(&mut journal);
        clock.advance_to(2_000_000, 1_000_000);
        clock.enter_stall(1_000_000);
        clock.advance_to(4_000_000, 0);
        clock.seek_to(60_000_000, &mut journal);
        clock.advance_to(4_500_000, 0);
        clock.start_playing(&mut journal);
        assert_eq!((journal.stalled_ms(), journal.seek_wait_ms), (3000, 500));
    }
}
