//! How it was to watch: stalls, bitrates, switches, and scores made of them.

mod p1203;
#[cfg(test)]
mod reference;

pub use p1203::{Judged, mos};

/// One stretch that was played at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Played {
    /// Milliseconds of media.
    pub ms: u32,
    /// Level of the ladder.
    pub level: u16,
    /// Kilobits a second that came for it, pictures and sound in one where they are.
    pub kbps: u32,
}

/// One stall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// Milliseconds of media played before it; 0 is the wait for the start.
    pub at_ms: u64,
    /// Milliseconds that it lasted.
    pub ms: u64,
}

/// The most stretches that are kept of one viewer: a day of two-second segments and more.
const PLAYED_MAX: usize = 100_000;

/// What happened to a viewer.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// From the wish to play to the first picture; none where there was none, in milliseconds.
    pub start_delay_ms: Option<u64>,
    /// Waits in the middle, not those after seeks.
    pub stalls: Vec<Stall>,
    /// Waits after seeks, milliseconds together.
    pub seek_wait_ms: u64,
    /// What was played, in order.
    pub played: Vec<Played>,
    /// Milliseconds of media that were played.
    pub played_ms: u64,
}

/// The sum of a viewer's journal.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// As [`Journal::start_delay_ms`].
    pub start_delay_ms: Option<u64>,
    /// Stalls.
    pub stalls: u64,
    /// Milliseconds of them.
    pub stalled_ms: u64,
    /// Their share of the time between the first picture and the end.
    pub stall_ratio: f64,
    /// Milliseconds of media that were played.
    pub played_ms: u64,
    /// Mean bitrate of what was played, as the manifest has it, in kilobits a second.
    pub bitrate_kbps: f64,
    /// Changes of level between what was played.
    pub switches: u64,
    /// `linear`.
    pub linear: Option<f64>,
    /// [`mos`]: P.1203 mode 0 without its random forest.
    pub mos: Option<f64>,
}

impl Journal {
    /// Adds what was played; the same again lengthens the last stretch.
    pub fn play(&mut self, stretch: Played) {
        self.played_ms += u64::from(stretch.ms);
        let same = |last: &&mut Played| last.level == stretch.level && last.kbps == stretch.kbps;
        if let Some(last) = self.played.last_mut().filter(same) {
            last.ms = last.ms.saturating_add(stretch.ms);
        } else if self.played.len() < PLAYED_MAX {
            self.played.push(stretch);
        }
    }

    /// Milliseconds of all stalls.
    pub fn stalled_ms(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.ms).sum()
    }

    /// Bytes of memory, about.
    pub fn memory_bytes(&self) -> usize {
        self.played.capacity() * size_of::<Played>() + self.stalls.capacity() * size_of::<Stall>()
    }

    /// Sums up; `bitrates` are the ladder's in bits a second.
    pub fn summary(&self, bitrates: &[f64], judged: impl Fn(u16) -> Judged) -> Summary {
        let kbps = |stretch: &Played| {
            bitrates
                .get(usize::from(stretch.level))
                .copied()
                .unwrap_or(0.0)
                / 1000.0
        };
        let weighted: f64 = self
            .played
            .iter()
            .map(|stretch| kbps(stretch) * f64::from(stretch.ms))
            .sum();
        let known_ms: f64 = self
            .played
            .iter()
            .map(|stretch| f64::from(stretch.ms))
            .sum();
        let switches = self
            .played
            .windows(2)
            .filter(|pair| pair[0].level != pair[1].level)
            .count();
        let stalled_ms = self.stalled_ms();
        let watched_ms = self.played_ms + stalled_ms;
        Summary {
            start_delay_ms: self.start_delay_ms,
            stalls: self.stalls.len() as u64,
            stalled_ms,
            stall_ratio: if watched_ms == 0 {
                0.0
            } else {
                stalled_ms as f64 / watched_ms as f64
            },
            played_ms: self.played_ms,
            bitrate_kbps: if known_ms == 0.0 {
                0.0
            } else {
                weighted / known_ms
            },
            switches: switches as u64,
            linear: linear(self, kbps),
            mos: mos(self, judged),
        }
    }
}

/// The linear score of MPC (Yin et al., SIGCOMM 2015, "balanced"), a second of playing: mean bitrate
/// less bitrate changes, less 3000 for each second of stall and of start-up, in kilobits a second.
/// Segments of the paper are seconds here, so that titles with other segments compare.
fn linear(journal: &Journal, kbps: impl Fn(&Played) -> f64) -> Option<f64> {
    const SECOND_KBPS: f64 = 3000.0;
    let seconds = journal.played_ms as f64 / 1000.0;
    if seconds < 1.0 {
        return None;
    }
    let rates: f64 = journal
        .played
        .iter()
        .map(|stretch| kbps(stretch) * f64::from(stretch.ms) / 1000.0)
        .sum();
    let pairs = journal.played.windows(2);
    let changes: f64 = pairs
        .map(|pair| (kbps(&pair[1]) - kbps(&pair[0])).abs())
        .sum();
    let waited_s = (journal.stalled_ms() + journal.start_delay_ms.unwrap_or(0)) as f64 / 1000.0;
    Some((rates - changes - SECOND_KBPS * waited_s) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGED: Judged = Judged {
        resolution: (1280, 720),
        frame_rate: 25.0,
        screen_lines: 1080,
        audio_kbps: Some(128.0),
        handheld: false,
    };

    fn journal(stretches: &[(u32, u16)]) -> Journal {
        let mut journal = Journal {
            start_delay_ms: Some(500),
            ..Journal::default()
        };
        for (ms, level) in stretches {
            journal.play(Played {
                ms: *ms,
                level: *level,
                kbps: 1000 * (u32::from(*level) + 1),
            });
        }
        journal
    }

    #[test]
    fn a_viewer_is_summed_up() {
        let mut journal = journal(&[(4000, 0), (2000, 0), (4000, 1)]);
        journal.stalls.push(Stall {
            at_ms: 6000,
            ms: 2500,
        });
        let summary = journal.summary(&[1e6, 2e6], |_| JUDGED);
        assert_eq!(
            (summary.stalls, summary.stalled_ms, summary.played_ms),
            (1, 2500, 10_000)
        );
        assert_eq!((summary.switches, summary.bitrate_kbps), (1, 1400.0));
        assert_eq!(summary.stall_ratio, 0.2);
        // (14000 − 1000 − 3000 × 3) / 10.
        assert_eq!(summary.linear, Some(400.0));
    }

    #[test]
    fn nothing_played_is_no_score() {
        let summary = Journal::default().summary(&[1e6], |_| JUDGED);
        assert_eq!(
            (summary.linear, summary.mos, summary.stall_ratio),
            (None, None, 0.0)
        );
    }

    #[test]
    fn the_score_falls_with_stalls_and_rises_with_bitrate() {
        let score = |journal: &Journal| journal.summary(&[1e6, 2e6], |_| JUDGED).mos.unwrap();
        let smooth = score(&journal(&[(60_000, 1)]));
        let poor = score(&journal(&[(60_000, 0)]));
        let mut broken = journal(&[(60_000, 1)]);
        broken.stalls.push(Stall {
            at_ms: 30_000,
            ms: 5000,
        });
        broken.stalls.push(Stall {
            at_ms: 40_000,
            ms: 5000,
        });
        assert!(
            smooth > poor && smooth > score(&broken) + 0.3,
            "{smooth} {poor} {}",
            score(&broken)
        );
        assert!((1.0..=5.0).contains(&smooth));
    }
}
