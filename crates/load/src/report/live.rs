//! What is seen while a run goes on: a few lines that are redrawn, or, where there is no terminal, a
//! line every second.

use super::text::ms;
use crate::rate::Sight;
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
        let bar = ProgressBar::with_draw_target(
            Some(length_s.ceil() as u64),
            ProgressDrawTarget::stderr(),
        );
        // A template that does not parse would leave the plain bar.
        if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan} {pos}/{len} s\n{msg}") {
            bar.set_style(style);
        }
        Live { bar: Some(bar) }
    }

    /// Shows a second that ended (counted from 0), in two lines.
    pub fn show(&self, second: u64, [above, below]: &[String; 2]) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(second + 1);
                bar.set_message(format!("{above}\n{below}"));
            }
            None => eprintln!("{:>4} s · {above} · {below}", second + 1),
        }
    }

    /// Leaves the terminal as it was.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A second of requests: how many, and how long they took.
pub fn lines(sight: &Sight<'_>) -> [String; 2] {
    let s = sight.second;
    let rates = format!(
        "{}/s of {}/s due · {:.1} Mb/s · {} open · {} errors · {} never sent",
        s.ended,
        s.due,
        s.bytes as f64 * 8.0 / 1e6,
        s.open,
        s.errors,
        sight.unsent
    );
    let latency = format!(
        "from due p50 {} p90 {} p99 {} max {} ms · from sent p50 {} p99 {} ms",
        ms(s.due_p50_ms),
        ms(s.due_p90_ms),
        ms(s.due_p99_ms),
        ms(s.due_max_ms),
        ms(s.sent_p50_ms),
        ms(s.sent_p99_ms)
    );
    [rates, latency]
}
