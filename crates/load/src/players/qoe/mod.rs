//! Quality of experience of a session. Records stalls, bitrates and level changes, and computes
//! scores.

mod p1203;
#[cfg(test)]
mod p1203_reference;

pub use p1203::{LevelQualityFactors, mos};

/// A stretch of media played at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayedStretch {
    /// Duration of the stretch, in milliseconds of media.
    pub ms: u32,
    /// Index of the level in the ladder.
    pub level: u16,
    /// Actual bitrate of the segments in this stretch, in kilobits per second, including muxed
    /// audio.
    pub kbps: u32,
}

/// A stall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallEvent {
    /// Milliseconds of media played before the stall.
    pub at_ms: u64,
    /// Length of the stall, in milliseconds.
    pub ms: u64,
}

/// Maximum number of stretches per viewer. Two-second segments reach this limit only after more
/// than a day.
const PLAYED_MAX: usize = 100_000;

/// The events of a viewer's session.
#[derive(Debug, Clone, Default)]
pub struct PlaybackJournal {
    /// Milliseconds from the play request to the first frame; `None` if no frame was shown.
    pub start_delay_ms: Option<u64>,
    /// Stalls. Waits after seeks are not included.
    pub stalls: Vec<StallEvent>,
    /// Total wait after seeks, in milliseconds.
    pub seek_wait_ms: u64,
    /// Stretches played, in order.
    pub played: Vec<PlayedStretch>,
    /// Milliseconds of media played.
    pub played_ms: u64,
    /// Number of segments that were abandoned and requested again at another level.
    pub abandoned: u64,
    /// Number of bytes received for the abandoned segments.
    pub abandoned_bytes: u64,
}

/// The summary of a session.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SessionSummary {
    /// See [`PlaybackJournal::start_delay_ms`].
    pub start_delay_ms: Option<u64>,
    /// Number of stalls.
    pub stalls: u64,
    /// Stalled milliseconds.
    pub stalled_ms: u64,
    /// Stalled time divided by the sum of played and stalled time.
    pub stall_ratio: f64,
    /// Milliseconds of media played.
    pub played_ms: u64,
    /// Mean declared bitrate of the media played, in kilobits per second.
    pub bitrate_kbps: f64,
    /// Number of level changes between stretches.
    pub switches: u64,
    /// Number of segments that were abandoned and requested again at another level.
    #[serde(default)]
    pub abandoned: u64,
    /// Number of bytes received for the abandoned segments.
    #[serde(default)]
    pub abandoned_bytes: u64,
    /// The linear score of the MPC paper; `None` if less than one second was played.
    pub linear: Option<f64>,
    /// The score that [`mos`] computes.
    pub mos: Option<f64>,
}

impl PlaybackJournal {
    /// Adds a stretch. If the last stretch has the same level and bitrate, extends the last stretch
    /// instead.
    pub fn add_played(&mut self, stretch: PlayedStretch) {
        self.played_ms += u64::from(stretch.ms);
        let same =
            |last: &&mut PlayedStretch| last.level == stretch.level && last.kbps == stretch.kbps;
        if let Some(last) = self.played.last_mut().filter(same) {
            last.ms = last.ms.saturating_add(stretch.ms);
        } else if self.played.len() < PLAYED_MAX {
            self.played.push(stretch);
        }
    }

    /// Returns the total length of all stalls, in milliseconds.
    pub fn stalled_ms(&self) -> u64 {
        self.stalls.iter().map(|stall| stall.ms).sum()
    }

    /// Returns the approximate memory use in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.played.capacity() * size_of::<PlayedStretch>()
            + self.stalls.capacity() * size_of::<StallEvent>()
    }

    /// Summarizes the session. `bitrates` are the bitrates of the ladder, in bits per second.
    pub fn summary(
        &self,
        bitrates: &[f64],
        judged: impl Fn(u16) -> LevelQualityFactors,
    ) -> SessionSummary {
        let kbps = |stretch: &PlayedStretch| {
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
        SessionSummary {
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
            abandoned: self.abandoned,
            abandoned_bytes: self.abandoned_bytes,
            linear: linear_qoe_score(self, kbps),
            mos: mos(self, judged),
        }
    }
}

/// Returns the linear score of MPC (Yin et al., SIGCOMM 2015, "balanced") per second of playback.
/// The score is the sum of the bitrates, minus the bitrate changes, minus 3000 kb/s for each second
/// of stall and start-up. This total is divided by the seconds of playback. The paper sums the
/// bitrates of segments. This score weights each bitrate by the seconds played, so that titles with
/// different segment durations are comparable.
fn linear_qoe_score(
    journal: &PlaybackJournal,
    kbps: impl Fn(&PlayedStretch) -> f64,
) -> Option<f64> {
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

    const JUDGED: LevelQualityFactors = LevelQualityFactors {
        resolution: (1280, 720),
        frame_rate: 25.0,
        screen_lines: 1080,
        audio_kbps: Some(128.0),
        handheld: false,
    };

    fn test_journal(stretches: &[(u32, u16)]) -> PlaybackJournal {
        let mut journal = PlaybackJournal {
            start_delay_ms: Some(500),
            ..PlaybackJournal::default()
        };
        for (ms, level) in stretches {
            journal.add_played(PlayedStretch {
                ms: *ms,
                level: *level,
                kbps: 1000 * (u32::from(*level) + 1),
            });
        }
        journal
    }

    #[test]
    fn a_session_is_summarized_with_stalls_and_switches() {
        let mut journal = test_journal(&[(4000, 0), (2000, 0), (4000, 1)]);
        journal.stalls.push(StallEvent {
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
        // The bitrates contribute 6 s × 1000 kb/s + 4 s × 2000 kb/s = 14000. The level change costs
        // 1000. Stall and start-up last 3 s, and each second costs 3000. With 10 s of playback, the
        // score is (14000 − 1000 − 3 × 3000) / 10.
        assert_eq!(summary.linear, Some(400.0));
    }

    #[test]
    fn a_session_without_playback_has_no_score() {
        let summary = PlaybackJournal::default().summary(&[1e6], |_| JUDGED);
        assert_eq!(
            (summary.linear, summary.mos, summary.stall_ratio),
            (None, None, 0.0)
        );
    }

    #[test]
    fn the_score_falls_with_stalls_and_rises_with_bitrate() {
        let score =
            |journal: &PlaybackJournal| journal.summary(&[1e6, 2e6], |_| JUDGED).mos.unwrap();
        let smooth = score(&test_journal(&[(60_000, 1)]));
        let poor = score(&test_journal(&[(60_000, 0)]));
        let mut broken = test_journal(&[(60_000, 1)]);
        broken.stalls.push(StallEvent {
            at_ms: 30_000,
            ms: 5000,
        });
        broken.stalls.push(StallEvent {
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
