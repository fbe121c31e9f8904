//! The consumer of "Optimizing single-server streaming": ranges of one MP4 file, one after another,
//! never more than fifteen seconds ahead of what is played.

use super::player::{Answer, Document, Fetch, Micros, Player, Reading, Step, What};
use super::qoe::{Journal, Stall};
use super::viewer::End;
use media::manifest::read::Part;
use url::Url;

/// Bytes of the file's head that are looked at for its length in seconds.
const HEAD_BYTES: u64 = 1 << 20;

/// How it asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Habit {
    /// Seconds that are held at most.
    pub ahead_max_s: f64,
    /// Bytes of each request.
    pub range_bytes: u64,
    /// Failures in a row after which it gives up.
    pub retries: u32,
}

impl Default for Habit {
    fn default() -> Habit {
        Habit {
            ahead_max_s: 15.0,
            range_bytes: 1 << 20,
            retries: 3,
        }
    }
}

/// A consumer. Seconds follow from bytes as if the file had one bitrate throughout.
#[derive(Debug)]
pub struct Consumer {
    url: Url,
    habit: Habit,
    leave_at: Micros,
    began: Micros,
    now: Micros,
    /// Bytes and microseconds of the file, once known.
    file: Option<(u64, u64)>,
    /// Bytes that were fetched, from the first.
    have: u64,
    position_us: u64,
    playing: bool,
    waits_since: Option<Micros>,
    pending: Option<(u32, u64)>,
    next_id: u32,
    failures: u32,
    not_before: Micros,
    journal: Box<Journal>,
    ended: Option<End>,
}

impl Consumer {
    /// A consumer that wishes to play now.
    pub fn new(url: Url, habit: Habit, leave_at: Micros, now: Micros) -> Consumer {
        Consumer {
            url,
            habit,
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

    /// What happened.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Ends it.
    pub fn end(&mut self, now: Micros, end: End) {
        self.advance(now);
        if self.ended.is_none() {
            self.wrote_wait();
            self.ended = Some(end);
        }
    }

    /// How it ended.
    pub fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Whether it plays, and microseconds that it holds.
    pub fn holds(&self) -> (bool, Micros) {
        (self.playing, self.held_us())
    }

    /// Microseconds of media that can be played of what was fetched.
    fn fetched_us(&self) -> u64 {
        self.file.map_or(0, |(bytes, us)| {
            (u128::from(self.have) * u128::from(us) / u128::from(bytes.max(1))) as u64
        })
    }

    fn held_us(&self) -> u64 {
        self.fetched_us().saturating_sub(self.position_us)
    }

    fn is_whole(&self) -> bool {
        self.file.is_some_and(|(bytes, _)| self.have >= bytes)
    }

    fn advance(&mut self, now: Micros) {
        let passed = now.saturating_sub(self.now);
        let before = self.now;
        self.now = self.now.max(now);
        if !self.playing || self.ended.is_some() {
            return;
        }
        let held = self.held_us();
        let played = passed.min(held);
        self.position_us += played;
        self.journal.played_ms = self.position_us / 1000;
        if passed >= held {
            self.playing = false;
            if self.is_whole() {
                self.ended = Some(End::Finished);
            } else {
                self.waits_since = Some(before + held);
            }
        }
    }

    fn start(&mut self) {
        if self.playing || self.held_us() == 0 || self.ended.is_some() {
            return;
        }
        self.wrote_wait();
        self.playing = true;
    }

    fn wrote_wait(&mut self) {
        let Some(since) = self.waits_since.take() else {
            return;
        };
        let ms = (self.now - since) / 1000;
        if self.position_us > 0 {
            self.journal.stalls.push(Stall {
                at_ms: self.journal.played_ms,
                ms,
            });
        } else if self.held_us() > 0 {
            self.journal.start_delay_ms = Some((self.now - self.began) / 1000);
        }
    }

    /// When the next range may be asked for.
    fn room_at(&self) -> Micros {
        let Some((bytes, us)) = self.file else {
            return self.now;
        };
        let range_us =
            (u128::from(self.habit.range_bytes) * u128::from(us) / u128::from(bytes.max(1))) as u64;
        let most = (self.habit.ahead_max_s * 1e6) as u64;
        let over = (self.held_us() + range_us).saturating_sub(most);
        // A range longer than the bound is asked for when nothing is held.
        if self.held_us() == 0 {
            self.now
        } else {
            self.now + over.min(self.held_us())
        }
    }

    fn ask(&mut self) -> Step {
        self.next_id = self.next_id.wrapping_add(1);
        let (what, range, reading) = match self.file {
            None => (What::Index, 0..HEAD_BYTES, Reading::Movie),
            Some((bytes, _)) => {
                let end = self.have.saturating_add(self.habit.range_bytes).min(bytes);
                (What::Range, self.have..end, Reading::Discard)
            }
        };
        self.pending = Some((self.next_id, range.end));
        let part = Part {
            url: self.url.clone(),
            range: Some(range),
        };
        Step::Ask(Box::new(Fetch {
            id: self.next_id,
            what,
            part,
            reading,
            cmcd: None,
        }))
    }
}

impl Player for Consumer {
    fn poll(&mut self, now: Micros) -> Step {
        self.advance(now);
        self.start();
        if now >= self.leave_at {
            self.end(now, End::Left);
        }
        if self.ended.is_some() {
            return Step::Done;
        }
        let dry = if self.playing {
            now + self.held_us()
        } else {
            Micros::MAX
        };
        if self.pending.is_some() || self.is_whole() {
            return Step::Wait(dry.min(self.leave_at).max(now + 1));
        }
        let next = self.room_at().max(self.not_before);
        if now >= next {
            self.ask()
        } else {
            Step::Wait(next.min(dry).min(self.leave_at).max(now + 1))
        }
    }

    fn handle(&mut self, now: Micros, id: u32, answer: Answer) {
        self.advance(now);
        let Some((_, end)) = self.pending.take_if(|(pending, _)| *pending == id) else {
            return;
        };
        match (answer.ok, self.file, answer.document) {
            (true, None, Some(Document::File { bytes, duration_us }))
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
                if self.failures > self.habit.retries {
                    self.end(now, End::Failed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of 60 MB and 120 s: 4 Mb/s; the head is its first megabyte.
    fn run(bps: f64) -> (Consumer, Vec<(Micros, u64)>, Micros) {
        let url = Url::parse("http://o.test/film.mp4").unwrap();
        let mut consumer = Consumer::new(url, Habit::default(), Micros::MAX, 0);
        let mut asked = Vec::new();
        let mut now = 0;
        loop {
            match consumer.poll(now) {
                Step::Ask(fetch) => {
                    let range = fetch.part.range.clone().unwrap();
                    asked.push((now, range.start));
                    let bytes = range.end - range.start;
                    now += (bytes as f64 * 8.0 / bps * 1e6) as Micros;
                    let document = (fetch.what == What::Index).then_some(Document::File {
                        bytes: 60_000_000,
                        duration_us: 120_000_000,
                    });
                    consumer.handle(
                        now,
                        fetch.id,
                        Answer {
                            ok: true,
                            bytes,
                            document,
                            ..Answer::default()
                        },
                    );
                }
                Step::Wait(at) => now = at,
                Step::Cancel(_) => panic!(),
                Step::Done => return (consumer, asked, now),
            }
        }
    }

    #[test]
    fn never_more_than_fifteen_seconds_ahead() {
        let (consumer, asked, end) = run(50e6);
        assert_eq!((consumer.ended(), asked.len()), (Some(End::Finished), 58));
        assert!(consumer.journal().stalls.is_empty());
        assert!((120_000_000..120_500_000).contains(&end), "{end}");
        for (at, byte) in asked {
            // What is asked for, with it, ends at most 15 s after what is being played.
            let ends_s = (byte + (1 << 20)) as f64 / 500_000.0;
            assert!(ends_s <= 15.0 + at as f64 / 1e6 + 0.001, "{byte} at {at}");
        }
    }

    #[test]
    fn a_link_of_half_the_bitrate_stalls_half_of_the_time() {
        let (consumer, _, end) = run(2e6);
        let waited = consumer.journal().stalled_ms() + consumer.journal().start_delay_ms.unwrap();
        assert!((end as f64 / 1e6 - 240.0).abs() < 5.0, "{end}");
        assert!((waited as f64 / 1e3 - 120.0).abs() < 5.0, "{waited}");
    }
}
