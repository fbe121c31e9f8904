//! Shows live progress on standard error. On a terminal, a bar and two lines are redrawn every
//! second. Otherwise, one line is written every second.

use super::number_format::format_ms;
use crate::rate::RateProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// The progress display of a run.
#[derive(Debug)]
pub struct LiveProgress {
    bar: Option<ProgressBar>,
}

impl LiveProgress {
    /// Creates the display of a run that takes `length_s` seconds.
    pub fn new(length_s: f64) -> LiveProgress {
        if !std::io::stderr().is_terminal() {
            return LiveProgress { bar: None };
        }
        let bar = ProgressBar::with_draw_target(
            Some(length_s.ceil() as u64),
            ProgressDrawTarget::stderr(),
        );
        // If the template were invalid, the bar would have its default style.
        if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan} {pos}/{len} s\n{msg}") {
            bar.set_style(style);
        }
        LiveProgress { bar: Some(bar) }
    }

    /// Shows the two lines of a finished second. `second` is counted from 0.
    pub fn show_second(&self, second: u64, [above, below]: &[String; 2]) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(second + 1);
                bar.set_message(format!("{above}\n{below}"));
            }
            None => eprintln!("{:>4} s · {above} · {below}", second + 1),
        }
    }

    /// Removes the progress display from the terminal.
    pub fn clear_progress(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Formats the statistics of one second as two lines: request rates and latencies.
pub fn format_progress(progress: &RateProgress<'_>) -> [String; 2] {
    let s = progress.second;
    let rates = format!(
        "{}/s of {}/s due · {:.1} Mb/s · {} open · {} errors · {} unsent",
        s.ended,
        s.due,
        s.bytes as f64 * 8.0 / 1e6,
        s.open,
        s.errors,
        progress.unsent
    );
    // Leaves out each percentile that would be random because the second has too few requests.
    let percentile = |name, share, ms| match stats::has_enough_samples(s.ended, share) {
        true => format!(" {name} {}", format_ms(ms)),
        false => String::new(),
    };
    let sent = [
        percentile("p50", 0.5, s.sent_p50_ms),
        percentile("p99", 0.99, s.sent_p99_ms),
    ];
    let from_sent = match sent.concat() {
        figures if figures.is_empty() => String::new(),
        figures => format!(" · from sent{figures} ms"),
    };
    let latency = format!(
        "from due{}{}{} max {} ms{from_sent}",
        percentile("p50", 0.5, s.due_p50_ms),
        percentile("p90", 0.9, s.due_p90_ms),
        percentile("p99", 0.99, s.due_p99_ms),
        format_ms(s.due_max_ms)
    );
    [rates, latency]
}
