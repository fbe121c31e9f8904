//! Emulates the consumer of document 3, "Optimizing Single Server Content Streaming"
//! (docs/document-3.md). The consumer requests consecutive ranges of one MP4 file. By default, the
//! ranges end at most fifteen seconds after the playback position.

use super::player_interface::{
    DocumentFormat, FetchPurpose, FetchResult, MediaFetch, Micros, ParsedDocument, Player,
    PlayerAction,
};
use super::qoe::{PlaybackJournal, StallEvent};
use super::viewer::SessionEnd;
use media::manifest::read::ResourceRange;
use url::Url;

/// Length of the first range, in bytes. The duration of the file is read from this range.
const HEAD_BYTES: u64 = 1 << 20;

/// Settings of a consumer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConsumerSettings {
    /// Maximum length of the buffered media, in seconds.
    pub ahead_max_s: f64,
    /// Length of each range except the first, in bytes.
    pub range_bytes: u64,
    /// Maximum number of consecutive retries. If the last retry fails, the consumer gives up.
    pub retries: u32,
}

impl Default for ConsumerSettings {
    fn default() -> ConsumerSettings {
        ConsumerSettings {
            ahead_max_s: 15.0,
            range_bytes: 1 << 20,
            retries: 3,
        }
    }
}

/// A consumer of one file. Bytes are converted to seconds as if the file had a constant bitrate.
#[derive(Debug)]
pub struct RangeConsumer {
    url: Url,
    settings: ConsumerSettings,
    leave_at: Micros,
    began: Micros,
    now: Micros,
    /// Size of the file in bytes, and duration of the file in microseconds; `None` until the first
    /// range has been parsed.
    file: Option<(u64, u64)>,
    /// Number of bytes that have been fetched, from the start of the file.
    have: u64,
    position_us: u64,
    playing: bool,
    waits_since: Option<Micros>,
    pending: Option<(u32, u64)>,
    next_id: u32,
    failures: u32,
    not_before: Micros,
    journal: Box<PlaybackJournal>,
    ended: Option<SessionEnd>,
}

impl RangeConsumer {
    /// Creates a consumer whose session starts at `now`.
    pub fn new(
        url: Url,
        settings: ConsumerSettings,
        leave_at: Micros,
        now: Micros,
    ) -> RangeConsumer {
        RangeConsumer {
            url,
            settings,
            leave_at,
            began: now,
            now,
            file: None,
            have: 0,
            position_us: 0,
            playing: false,
            waits_since: Some(now),
            pending: None,
            next_id: 0,
            failures: 0,
            not_before: 0,
            journal: Box::default(),
            ended: None,
        }
    }

    /// Returns the events of the session.
    pub fn journal(&self) -> &PlaybackJournal {
        &self.journal
    }

    /// Ends the session.
    pub fn end_session(&mut self, now: Micros, end: SessionEnd) {
        self.advance_clock(now);
        if self.ended.is_none() {
            self.record_wait();
            self.ended = Some(end);
        }
    }

    /// Returns the reason why the session ended, or `None` while the session continues.
    pub fn end_reason(&self) -> Option<SessionEnd> {
        self.ended
    }

    /// Returns whether the consumer is playing, and how many microseconds of media are buffered.
    pub fn playback_status(&self) -> (bool, Micros) {
        (self.playing, self.buffered_us())
    }

    /// Returns the length of the media fetched so far, in microseconds.
    fn fetched_us(&self) -> u64 {
        self.file.map_or(0, |(bytes, us)| {
            (u128::from(self.have) * u128::from(us) / u128::from(bytes.max(1))) as u64
        })
    }

    fn buffered_us(&self) -> u64 {
        self.fetched_us().saturating_sub(self.position_us)
    }

    fn is_complete(&self) -> bool {
        self.file.is_some_and(|(bytes, _)| self.have >= bytes)
    }

    fn advance_clock(&mut self, now: Micros) {
        let passed = now.saturating_sub(self.now);
        let before = self.now;
        self.now = self.now.max(now);
        if !self.playing || self.ended.is_some() {
            return;
        }
        let buffered_us = self.buffered_us();
        let played = passed.min(buffered_us);
        self.position_us += played;
        self.journal.played_ms = self.position_us / 1000;
        if passed >= buffered_us {
            self.playing = false;
            if self.is_complete() {
                self.ended = Some(SessionEnd::Finished);
            } else {
                self.waits_since = Some(before + buffered_us);
            }
        }
    }

    fn start_playback(&mut self) {
        if self.playing || self.buffered_us() == 0 || self.ended.is_some() {
            return;
        }
        self.record_wait();
        self.playing = true;
    }

    fn record_wait(&mut self) {
        let Some(since) = self.waits_since.take() else {
            return;
        };
        let ms = (self.now - since) / 1000;
        if self.position_us > 0 {
            self.journal.stalls.push(StallEvent {
                at_ms: self.journal.played_ms,
                ms,
            });
        } else if self.buffered_us() > 0 {
            self.journal.start_delay_ms = Some((self.now - self.began) / 1000);
        }
    }

    /// Returns the time at which the buffer will have room for the next range.
    fn next_range_time(&self) -> Micros {
        let Some((bytes, us)) = self.file else {
            return self.now;
        };
        let range_us = (u128::from(self.settings.range_bytes) * u128::from(us)
            / u128::from(bytes.max(1))) as u64;
        let most = (self.settings.ahead_max_s * 1e6) as u64;
        let over = (self.buffered_us() + range_us).saturating_sub(most);
        // A range that is longer than the buffer limit never fits. Such a range is requested once
        // the buffer is empty.
        if self.buffered_us() == 0 {
            self.now
        } else {
            self.now + over.min(self.buffered_us())
        }
    }

    fn request_range(&mut self) -> PlayerAction {
        self.next_id = self.next_id.wrapping_add(1);
        let (purpose, range, format) = match self.file {
            None => (FetchPurpose::Index, 0..HEAD_BYTES, DocumentFormat::Movie),
            Some((bytes, _)) => {
                let end = self
                    .have
                    .saturating_add(self.settings.range_bytes)
                    .min(bytes);
                (FetchPurpose::Range, self.have..end, DocumentFormat::Discard)
            }
        };
        self.pending = Some((self.next_id, range.end));
        let resource = ResourceRange {
            url: self.url.clone(),
            range: Some(range),
        };
        PlayerAction::Fetch(Box::new(MediaFetch {
            id: self.next_id,
            purpose,
            resource,
            format,
            cmcd: None,
        }))
    }
}

impl Player for RangeConsumer {
    fn poll(&mut self, now: Micros) -> PlayerAction {
        self.advance_clock(now);
        self.start_playback();
        if now >= self.leave_at {
            self.end_session(now, SessionEnd::Left);
        }
        if self.ended.is_some() {
            return PlayerAction::Done;
        }
        let dry = if self.playing {
            now + self.buffered_us()
        } else {
            Micros::MAX
        };
        if self.pending.is_some() || self.is_complete() {
            return PlayerAction::Wait(dry.min(self.leave_at).max(now + 1));
        }
        let next = self.next_range_time().max(self.not_before);
        if now >= next {
            self.request_range()
        } else {
            PlayerAction::Wait(next.min(dry).min(self.leave_at).max(now + 1))
        }
    }

    fn handle_result(&mut self, now: Micros, id: u32, result: FetchResult) {
        self.advance_clock(now);
        let Some((_, end)) = self.pending.take_if(|(pending, _)| *pending == id) else {
            return;
        };
        match (result.ok, self.file, result.document) {
            (true, None, Some(ParsedDocument::File { bytes, duration_us }))
                if bytes > 0 && duration_us > 0 =>
            {
                self.file = Some((bytes, duration_us));
                self.have = end.min(bytes);
                self.failures = 0;
            }
            (true, Some(_), _) => {
                self.have = end;
                self.failures = 0;
            }
            _ => {
                self.failures += 1;
                self.not_before = now + (250_000 << self.failures.min(6));
                if self.failures > self.settings.retries {
                    self.end_session(now, SessionEnd::Failed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a file of 60 MB and 120 s (4 Mb/s) over a link of `bps` bits per second. Returns the
    /// consumer, a pair for each request, and the time at which playback ended. A pair consists of
    /// the request's time and the offset of its first byte.
    fn play_at_rate(bps: f64) -> (RangeConsumer, Vec<(Micros, u64)>, Micros) {
        let url = Url::parse("http://o.test/film.mp4").unwrap();
        let mut consumer = RangeConsumer::new(url, ConsumerSettings::default(), Micros::MAX, 0);
        let mut requested = Vec::new();
        let mut now = 0;
        loop {
            match consumer.poll(now) {
                PlayerAction::Fetch(fetch) => {
                    let range = fetch.resource.range.clone().unwrap();
                    requested.push((now, range.start));
                    let bytes = range.end - range.start;
                    now += (bytes as f64 * 8.0 / bps * 1e6) as Micros;
                    let document =
                        (fetch.purpose == FetchPurpose::Index).then_some(ParsedDocument::File {
                            bytes: 60_000_000,
                            duration_us: 120_000_000,
                        });
                    consumer.handle_result(
                        now,
                        fetch.id,
                        FetchResult {
                            ok: true,
                            bytes,
                            document,
                            ..FetchResult::default()
                        },
                    );
                }
                PlayerAction::Wait(at) => now = at,
                PlayerAction::Cancel(_) => panic!(),
                PlayerAction::Done => return (consumer, requested, now),
            }
        }
    }

    #[test]
    fn the_buffer_never_exceeds_fifteen_seconds() {
        let (consumer, requested, end) = play_at_rate(50e6);
        assert_eq!(
            (consumer.end_reason(), requested.len()),
            (Some(SessionEnd::Finished), 58)
        );
        assert!(consumer.journal().stalls.is_empty());
        assert!((120_000_000..120_500_000).contains(&end), "{end}");
        for (at, byte) in requested {
            // Each requested range must end at most 15 s after the playback position.
            let ends_s = (byte + (1 << 20)) as f64 / 500_000.0;
            assert!(ends_s <= 15.0 + at as f64 / 1e6 + 0.001, "{byte} at {at}");
        }
    }

    #[test]
    fn a_link_of_half_the_bitrate_stalls_half_of_the_time() {
        let (consumer, _, end) = play_at_rate(2e6);
        let waited = consumer.journal().stalled_ms() + consumer.journal().start_delay_ms.unwrap();
        assert!((end as f64 / 1e6 - 240.0).abs() < 5.0, "{end}");
        assert!((waited as f64 / 1e3 - 120.0).abs() < 5.0, "{waited}");
    }
}
