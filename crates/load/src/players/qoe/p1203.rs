//! Computes a mean opinion score (MOS) with the parametric part of ITU-T P.1203 (P.1203.1, P.1203.2
//! and P.1203.3). In mode 0, this part needs only the bitrate, the resolution and the frame rate.
//!
//! In the standard, a random forest contributes one quarter of the score. Here, the random forest
//! is left out, and the terms for quality changes are simplified. The tests in `p1203_reference.rs`
//! compare the score (O.46) with the reference implementation. The mean absolute error is 0.17,
//! both for the ten published mode 0 examples and for 300 generated sessions of one to five
//! minutes. For the generated sessions, the score is 0.17 lower than the reference on average. The
//! standard deviation of the difference is 0.13, and the maximum error is 1.43. The video score of
//! each second (O.22) differs by at most 0.006. The audio score (O.21) and the stall score (O.23)
//! are equal to the reference. Use the score to compare runs, not to certify quality.

use super::PlaybackJournal;

/// The properties of a level and of the device that affect the quality score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelQualityFactors {
    /// Coded width and height, in pixels.
    pub resolution: (u32, u32),
    /// Frames per second.
    pub frame_rate: f64,
    /// Height of the screen in lines. The screen has an aspect ratio of 16:9.
    pub screen_lines: u32,
    /// Bitrate of the separate AAC audio in kilobits per second. If the bitrate is unknown, the
    /// audio gets the same score as the video.
    pub audio_kbps: Option<f64>,
    /// The device is a phone.
    pub handheld: bool,
}

/// Maximum length of the media that is scored, in seconds (four hours).
const SECONDS_MAX: usize = 4 * 3600;

/// Returns the score from 1 to 5, or none if at most half a second was played.
pub fn mos(journal: &PlaybackJournal, judged: impl Fn(u16) -> LevelQualityFactors) -> Option<f64> {
    let parts = score_components(journal, judged);
    if parts.seconds.is_empty() {
        return None;
    }
    let impact = (parts.stalls - 1.0) / 4.0;
    let mos = (1.0 + (parts.integrate_over_time - 1.0) * impact).clamp(1.0, 5.0);
    Some((0.02833052 + 0.98117059 * mos).clamp(1.0, 5.0))
}

/// The scores from which the final score is computed.
pub(super) struct ScoreComponents {
    /// The video score (O.22) and the audio score (O.21) of each second.
    pub(super) seconds: Vec<(f64, f64)>,
    /// The audiovisual score, integrated over time (O.35); NaN if nothing was played.
    pub(super) integrate_over_time: f64,
    /// The stall score (O.23).
    pub(super) stalls: f64,
}

pub(super) fn score_components(
    journal: &PlaybackJournal,
    judged: impl Fn(u16) -> LevelQualityFactors,
) -> ScoreComponents {
    let seconds = score_seconds(journal, judged);
    let both = seconds.iter().map(|(video, audio)| {
        let sum = -0.00069084 + 0.15374283 * audio + 0.97153861 * video;
        (sum + 0.02461776 * audio * video).clamp(1.0, 5.0)
    });
    let both: Vec<f64> = both.collect();
    ScoreComponents {
        integrate_over_time: if both.is_empty() {
            f64::NAN
        } else {
            integrate_over_time(&both)
        },
        stalls: 1.0 + 4.0 * stalling_factor(journal, both.len() as f64),
        seconds,
    }
}

/// Returns the video score (O.22) and the audio score (O.21) of each second.
fn score_seconds(
    journal: &PlaybackJournal,
    judged: impl Fn(u16) -> LevelQualityFactors,
) -> Vec<(f64, f64)> {
    let mut scores = Vec::new();
    let (mut at_ms, mut next_ms) = (0_u64, 500_u64);
    for (n, stretch) in journal.played.iter().enumerate() {
        let begin_ms = at_ms;
        at_ms += u64::from(stretch.ms);
        // The stretch that is played in the middle of a second determines the score of this second.
        while next_ms < at_ms && scores.len() < SECONDS_MAX {
            let judged = judged(stretch.level);
            let video = video_score(mean_kbps_near(journal, n, begin_ms, next_ms), &judged);
            scores.push((video, judged.audio_kbps.map_or(video, audio_score)));
            next_ms += 1000;
        }
    }
    scores
}

/// Returns the mean bitrate around the time `at_ms`, in kilobits per second. Stretch `n` contains
/// this time, and starts at `begin_ms`. The mean includes adjacent stretches of the same level, up
/// to ten seconds before and after `at_ms`.
fn mean_kbps_near(journal: &PlaybackJournal, n: usize, begin_ms: u64, at_ms: u64) -> f64 {
    const AWAY_MS: u64 = 10_000;
    let level = journal.played[n].level;
    let (from, until) = (at_ms.saturating_sub(AWAY_MS), at_ms + AWAY_MS);
    let (mut bits, mut ms) = (0.0, 0.0);
    let mut add = |stretch: &super::PlayedStretch, begin: u64| {
        let end = begin + u64::from(stretch.ms);
        let within = end.min(until).saturating_sub(begin.max(from)) as f64;
        bits += f64::from(stretch.kbps) * within;
        ms += within;
    };
    let mut begin = begin_ms;
    for stretch in journal.played[n..].iter() {
        if stretch.level != level || begin >= until {
            break;
        }
        add(stretch, begin);
        begin += u64::from(stretch.ms);
    }
    let mut end = begin_ms;
    for stretch in journal.played[..n].iter().rev() {
        if stretch.level != level || end <= from {
            break;
        }
        end -= u64::from(stretch.ms);
        add(stretch, end);
    }
    if ms > 0.0 { bits / ms } else { 0.0 }
}

/// Returns the video score of one second (O.22 of P.1203.1, mode 0).
fn video_score(kbps: f64, judged: &LevelQualityFactors) -> f64 {
    let kbps = kbps.max(1.0);
    let pixels = f64::from(judged.resolution.0.max(1)) * f64::from(judged.resolution.1.max(1));
    let lines = f64::from(judged.screen_lines.max(1));
    let shown = lines * lines * 16.0 / 9.0;
    let fps = judged.frame_rate.clamp(1.0, 120.0);
    let complexity = (kbps * kbps / (pixels * fps) + 0.13183166).ln();
    let quant = 11.9983519 - 2.99991847 * (41.2475074 + kbps.ln() + complexity).ln();
    let coded = (4.66 - 0.07 * (4.06 * quant).exp()).clamp(1.0, 5.0);
    let by_coding = (100.0 - rating_from_mos(coded)).clamp(0.0, 100.0);
    let upscaled = 72.61 * (0.32 * ((shown / pixels).max(1.0) - 1.0) + 1.0).log10();
    let by_scale = upscaled.clamp(0.0, 100.0);
    let by_frames = if fps < 24.0 {
        (100.0 - by_coding - by_scale) * (30.98 - 1.29 * fps) / (64.65 + fps)
    } else {
        0.0
    };
    let lost = (by_coding + by_scale + by_frames.clamp(0.0, 100.0)).clamp(0.0, 100.0);
    let score = mos_from_rating(100.0 - lost);
    if judged.handheld {
        let near = -0.60293 + 2.12382 * score - 0.36936 * score.powi(2) + 0.03409 * score.powi(3);
        return near.clamp(1.0, 5.0);
    }
    score
}

/// Returns the audio score of one second (O.21 of P.1203.2) for AAC-LC.
fn audio_score(kbps: f64) -> f64 {
    mos_from_rating(100.0 - (100.0 * (-0.05 * kbps).exp() + 14.60))
}

/// Converts a rating from 0 to 100 to a MOS (ITU-T G.107, Annex B).
fn mos_from_rating(r: f64) -> f64 {
    if r <= 0.0 {
        return 1.05;
    }
    if r >= 100.0 {
        return 4.9;
    }
    1.05 + 3.85 * r / 100.0 + r * (r - 60.0) * (100.0 - r) * 7e-6
}

/// Computes the inverse of [`mos_from_rating`] by bisection.
fn rating_from_mos(mos: f64) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if mos_from_rating(middle) < mos {
            low = middle
        } else {
            high = middle
        }
    }
    (low + high) / 2.0
}

/// Returns the score integrated over time (O.35 of P.1203.3). This score is a weighted mean of the
/// scores of all seconds, minus penalties for low scores and for quality changes. Later scores and
/// lower scores have more weight.
pub(super) fn integrate_over_time(scores: &[f64]) -> f64 {
    let total = scores.len() as f64;
    let weight = |t: usize, score: f64| {
        let late = 0.00666620 + 0.0000404019 * ((t as f64 / total) / 0.1564978).exp();
        late * (0.14317974 - 0.02386416 * score)
    };
    let weights = || {
        scores
            .iter()
            .enumerate()
            .map(|(t, score)| (weight(t, *score), *score))
    };
    let sum: f64 = weights().map(|(weight, _)| weight).sum();
    let base = weights().map(|(weight, score)| weight * score).sum::<f64>() / sum;
    let negative = negative_bias(scores, base);
    let changes = QualityChanges::from_scores(scores);
    base - negative - changes.oscillation_penalty(total) - changes.adaptation_penalty(total)
}

/// Returns the penalty for low scores.
fn negative_bias(scores: &[f64], base: f64) -> f64 {
    const FACTOR: f64 = 1.87403625;
    let total = scores.len() as f64;
    let differences = scores.iter().enumerate().map(|(t, score)| {
        let recent = 0.5_f64.powf((total - t as f64 - 1.0) / 7.85416481);
        (score - base) * (FACTOR + (1.0 - FACTOR) * recent)
    });
    let mut sorted: Vec<f64> = differences.collect();
    sorted.sort_by(f64::total_cmp);
    let low = percentile(&sorted, 0.1);
    0.0185382 * (-low).max(0.0)
}

/// Returns the percentile at `share` (0 to 1), interpolated linearly between the nearest ranks.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * at.fract()
}

/// Changes of quality over time.
struct QualityChanges {
    spread: f64,
    directions: f64,
    rate: f64,
    longest: f64,
}

impl QualityChanges {
    fn from_scores(scores: &[f64]) -> QualityChanges {
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let least = scores.iter().copied().fold(f64::MAX, f64::min);
        let changed = scores
            .windows(2)
            .filter(|pair| (pair[1] - pair[0]).abs() > 0.2)
            .count();
        let (directions, longest) = count_direction_changes(scores);
        QualityChanges {
            spread: most - least,
            directions: directions as f64,
            rate: changed as f64 / scores.len() as f64,
            longest,
        }
    }

    fn oscillation_penalty(&self, total: f64) -> f64 {
        if self.longest / total >= 0.25 || self.longest >= 30.0 {
            return 0.0;
        }
        let spread = (1.0 + (self.spread + 0.001).log10()).max(0.0);
        (spread * (0.6775608 * self.directions - 8.05533303).exp()).clamp(0.0, 1.5)
    }

    fn adaptation_penalty(&self, total: f64) -> f64 {
        if self.longest / total >= 0.25 {
            return 0.0;
        }
        (0.17332553 * self.spread * self.rate - 0.01035647).clamp(0.0, 0.5)
    }
}

/// Returns how often the five-second moving average of the scores changes its direction, and the
/// longest time without such a change, in seconds.
fn count_direction_changes(scores: &[f64]) -> (usize, f64) {
    let averages: Vec<f64> = scores
        .windows(5.min(scores.len()))
        .map(|window| window.iter().sum::<f64>() / window.len() as f64)
        .collect();
    let (mut count, mut last, mut since, mut longest) = (0, 0, 0, 0);
    for (t, pair) in averages.windows(2).step_by(3).enumerate() {
        let direction = match pair[1] - pair[0] {
            change if change > 0.2 / 5.0 => 1,
            change if change < -0.2 / 5.0 => -1,
            _ => 0,
        };
        if direction != 0 && direction != last {
            count += 1;
            longest = longest.max(t * 3 - since);
            (last, since) = (direction, t * 3);
        }
    }
    (
        count,
        longest.max(scores.len().saturating_sub(since)) as f64,
    )
}

/// Returns the share of the score that remains after stalls, from 0 to 1 (P.1203.3, section 8.4).
fn stalling_factor(journal: &PlaybackJournal, total_s: f64) -> f64 {
    let first = journal.start_delay_ms.map(|ms| (0.0, ms as f64 / 1000.0));
    let later = journal
        .stalls
        .iter()
        .map(|stall| (stall.at_ms as f64 / 1000.0, stall.ms as f64 / 1000.0));
    let events: Vec<(f64, f64)> = first
        .into_iter()
        .filter(|(_, s)| *s > 0.0)
        .chain(later)
        .collect();
    if events.is_empty() {
        return 1.0;
    }
    let weighted =
        |(at, s): &(f64, f64)| s * (0.48412879 + 0.51587121 * 0.5_f64.powf((total_s - at) / 10.0));
    let length: f64 = events.iter().map(weighted).sum();
    let count = events.len() as f64;
    let gaps = events.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let interval = if events.len() > 1 {
        gaps.sum::<f64>() / (count - 1.0)
    } else {
        0.0
    };
    (-count / 9.35158684).exp()
        * (-(length / total_s) / 0.91890815).exp()
        * (-(interval / total_s) / 11.0567558).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_and_scores_convert_both_ways() {
        for r in [1.0, 20.0, 50.0, 77.7, 99.0] {
            assert!(
                (rating_from_mos(mos_from_rating(r)) - r).abs() < 1e-6 || mos_from_rating(r) < 1.05,
                "{r}"
            );
        }
    }

    #[test]
    fn percentiles_are_interpolated_linearly() {
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 0.25), 1.5);
        assert_eq!(percentile(&[4.0], 0.1), 4.0);
    }
}
