//! The text summary of a run's viewers, and the quantities that `--expect` compares with limits.

use super::drive::{LATE_P99_MAX_MS, PopulationStats};
use std::fmt::Write;

/// Formats the summary of a run's viewers.
pub fn format_summary(viewing: &PopulationStats) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_summary(&mut text, viewing);
    text
}

fn write_summary(out: &mut String, viewing: &PopulationStats) -> std::fmt::Result {
    write!(out, "\nviewers     {} arrived", viewing.viewers)?;
    for (end, count) in &viewing.ends {
        write!(out, ", {count} {}", format!("{end:?}").to_lowercase())?;
    }
    let startup = &viewing.start_delay;
    writeln!(
        out,
        "\nstart-up    {}max {:.0} ms, of {} who saw video",
        format_percentiles(
            &[("p50", 0.5), ("p95", 0.95), ("p99", 0.99)],
            startup.count(),
            |share| { format!("{:.0}", startup.quantile_ms(share)) }
        ),
        startup.max_ms(),
        startup.count()
    )?;
    let stalled = viewing
        .stall_ratios
        .iter()
        .filter(|ratio| **ratio > 0.0)
        .count();
    writeln!(
        out,
        "stalls      {} of {stalled} viewers, {:.1} s of {:.1} s ({:.2} %)",
        viewing.stalls,
        viewing.stalled_s,
        viewing.stalled_s + viewing.played_s,
        viewing.stall_ratio() * 100.0
    )?;
    let line = |out: &mut String, name: &str, values: &[f32], digits: usize, unit: &str| {
        let at = |share| format!("{:.digits$}", quantile(values, share).unwrap_or(f64::NAN));
        let count = values.len();
        let shown = [("p10", 0.1), ("p50", 0.5), ("p90", 0.9)];
        let percentiles = format_percentiles(&shown, count as u64, at);
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count.max(1) as f64;
        writeln!(
            out,
            "{name:<11} {percentiles}mean {mean:.digits$}{unit} of {count}"
        )
    };
    if !viewing.bitrates_kbps.is_empty() {
        line(out, "bitrate", &viewing.bitrates_kbps, 0, " kb/s")?;
        writeln!(out, "switches    {}", viewing.switches)?;
        writeln!(
            out,
            "abandoned   {} segments for another level, {:.1} MB received",
            viewing.abandoned,
            viewing.abandoned_bytes as f64 / 1e6
        )?;
    }
    if !viewing.mos.is_empty() {
        line(out, "linear QoE", &viewing.linear, 0, " kb/s")?;
        line(
            out,
            "MOS",
            &viewing.mos,
            2,
            " (P.1203 mode 0, parametric part)",
        )?;
    }
    for (what, count) in &viewing.unreadable {
        writeln!(out, "{count:>10}  unreadable: {what}")?;
    }
    for note in &viewing.notes {
        writeln!(out, "note        {note}")?;
    }
    write_lateness(out, viewing)
}

fn write_lateness(out: &mut String, viewing: &PopulationStats) -> std::fmt::Result {
    let late = &viewing.late;
    writeln!(
        out,
        "generator   {}max {:.2} ms late in {} reactions; a player uses at most {:.1} kB, \
         the process {:.1} kB per place",
        format_percentiles(&[("p50", 0.5), ("p99", 0.99)], late.count(), |share| {
            format!("{:.2}", late.quantile_ms(share))
        }),
        late.max_ms(),
        late.count(),
        viewing.state_bytes_max as f64 / 1e3,
        viewing.memory_bytes_per_place as f64 / 1e3
    )?;
    if viewing.fell_behind() {
        writeln!(
            out,
            "THE GENERATOR FELL BEHIND (p99 over {LATE_P99_MAX_MS} ms): stalls and latencies include its \
             lateness. Use fewer viewers or more cores."
        )?;
    }
    Ok(())
}

/// Formats the percentiles for which `count` samples are enough. A space follows each percentile.
fn format_percentiles(
    percentiles: &[(&str, f64)],
    count: u64,
    value: impl Fn(f64) -> String,
) -> String {
    let supported = percentiles
        .iter()
        .filter(|(_, share)| stats::has_enough_samples(count, *share));
    supported
        .map(|(name, share)| format!("{name} {} ", value(*share)))
        .collect()
}

/// Returns the quantile at `share` (0 to 1), which is the value with the nearest rank. Returns
/// `None` without values.
pub fn quantile(values: &[f32], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).map(|value| f64::from(*value))
}

/// A quantity of the run's viewers that an expectation compares with a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ViewerQuantity {
    /// Number of stalls of all viewers.
    Stalls,
    /// Share of the viewing time that was stalled, from 0 to 1.
    StallRatio,
    /// Number of viewers who arrived.
    Viewers,
    /// Number of viewers whose playback failed.
    Failed,
    /// Number of viewers who gave up waiting.
    GaveUp,
    /// Quantile of the start-up time, in milliseconds.
    Startup(f64),
    /// Quantile of the generator's lateness, in milliseconds.
    Late(f64),
    /// Quantile of the viewers' mean bitrate, in bits per second.
    Bitrate(f64),
    /// Quantile of the P.1203 score.
    Mos(f64),
}

impl ViewerQuantity {
    /// Parses a name such as `startup.p95`.
    pub fn parse_viewer_quantity(text: &str) -> Option<ViewerQuantity> {
        let quantile = |of: &str| {
            let percent = text
                .strip_prefix(of)?
                .strip_prefix(".p")?
                .parse::<f64>()
                .ok()?;
            (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
        };
        Some(match text {
            "stalls" => ViewerQuantity::Stalls,
            "stall-ratio" => ViewerQuantity::StallRatio,
            "viewers" => ViewerQuantity::Viewers,
            "failed" => ViewerQuantity::Failed,
            "gave-up" => ViewerQuantity::GaveUp,
            _ => {
                let startup = quantile("startup").map(ViewerQuantity::Startup);
                let late = quantile("late").map(ViewerQuantity::Late);
                let bitrate = quantile("bitrate").map(ViewerQuantity::Bitrate);
                return startup
                    .or(late)
                    .or(bitrate)
                    .or(quantile("mos").map(ViewerQuantity::Mos));
            }
        })
    }

    /// Returns the measured value, or `None` without data.
    pub fn measured_value(self, viewing: &PopulationStats) -> Option<f64> {
        use super::viewer::SessionEnd;
        let ended = |end| viewing.ends.get(&end).copied().unwrap_or(0) as f64;
        let times = |times: &crate::result::LatencyHistogram, share| {
            (times.count() > 0).then(|| times.quantile_ms(share))
        };
        match self {
            ViewerQuantity::Stalls => Some(viewing.stalls as f64),
            ViewerQuantity::StallRatio => (viewing.played_s > 0.0).then(|| viewing.stall_ratio()),
            ViewerQuantity::Viewers => Some(viewing.viewers as f64),
            ViewerQuantity::Failed => Some(ended(SessionEnd::Failed)),
            ViewerQuantity::GaveUp => Some(ended(SessionEnd::GaveUp)),
            ViewerQuantity::Startup(share) => times(&viewing.start_delay, share),
            ViewerQuantity::Late(share) => times(&viewing.late, share),
            ViewerQuantity::Bitrate(share) => {
                quantile(&viewing.bitrates_kbps, share).map(|kbps| kbps * 1000.0)
            }
            ViewerQuantity::Mos(share) => quantile(&viewing.mos, share),
        }
    }
}
