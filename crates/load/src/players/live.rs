//! What is seen of viewers while a run goes on: lines that are redrawn, or, where there is no
//! terminal, a line every second.

use super::drive::Sight;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// The view of a run, on standard error.
#[derive(Debug)]
pub struct Live {
    bar: Option<ProgressBar>,
}

impl Live {
    /// A view of a run of this length.
    pub fn new(length_s: f64) -> Live {
        if !std::io::stderr().is_terminal() {
            return Live { bar: None };
        }
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(length_s.ceil() as u64), target);
        // A template that does not parse would leave the plain bar.
        if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan} {pos}/{len} s\n{msg}") {
            bar.set_style(style);
        }
        Live { bar: Some(bar) }
    }

    /// Shows a second that ended.
    pub fn show(&self, sight: &Sight<'_>) {
        let (second, sample) = (sight.second, sight.sample);
        let viewers = format!(
            "{} viewers · {} playing · {} stalled · buffer p10 {:.1} p50 {:.1} s · {:.0} kb/s chosen",
            sample.viewers,
            sample.playing,
            sample.stalled,
            sample.buffer_p10_s,
            sample.buffer_p50_s,
            sample.bitrate_kbps,
        );
        let requests = format!(
            "{}/s · {:.1} Mb/s · {} open · {} errors · p50 {:.1} p99 {:.1} ms",
            second.ended,
            second.bytes as f64 * 8.0 / 1e6,
            second.open,
            second.errors,
            second.sent_p50_ms,
            second.sent_p99_ms,
        );
        match &self.bar {
            Some(bar) => {
                bar.set_position(second.second + 1);
                bar.set_message(format!("{viewers}\n{requests}"));
            }
            None => eprintln!("{:>4} s · {viewers} · {requests}", second.second + 1),
        }
    }

    /// Leaves the terminal as it was.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
