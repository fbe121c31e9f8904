//! DYNAMIC of dash.js (Spiteri et al., MMSys 2018): throughput while the buffer is short, BOLA while
//! it is long.

use super::{Abr, Bola, Choice, Throughput, View};

/// Share of the buffer's bound from which BOLA chooses, and below which throughput does again; at
/// most the seconds of dash.js (`bufferTimeDefault` 18 s, half of it).
const SHARES: [f64; 2] = [0.6, 0.3];
const MOST_S: [f64; 2] = [18.0, 9.0];

/// Two rules, of which the buffer chooses one.
#[derive(Debug, Clone, Default)]
pub struct Dynamic {
    throughput: Throughput,
    bola: Bola,
    by_buffer: bool,
    thresholds_s: Option<[f64; 2]>,
}

#[cfg(test)]
impl Dynamic {
    /// As the simulator's `dynamicdash` has it.
    pub(super) fn of_sabre() -> Dynamic {
        Dynamic {
            bola: Bola::of_sabre(),
            thresholds_s: Some([10.0, 5.0]),
            ..Dynamic::default()
        }
    }
}

impl Dynamic {
    fn thresholds_s(&self, view: &View<'_>) -> [f64; 2] {
        let shares = [0, 1].map(|n: usize| (SHARES[n] * view.buffer_max_s).min(MOST_S[n]));
        self.thresholds_s.unwrap_or(shares)
    }
}

impl Abr for Dynamic {
    fn choose(&mut self, view: &View<'_>) -> Choice {
        let [high, low] = self.thresholds_s(view);
        self.by_buffer = match self.by_buffer {
            true => view.buffer_s >= low,
            false => view.buffer_s > high,
        };
        match self.by_buffer {
            true => self.bola.choose(view),
            false => self.throughput.choose(view),
        }
    }

    fn downloaded(&mut self, view: &View<'_>, level: usize, took_s: f64) {
        self.bola.downloaded(view, level, took_s);
    }

    fn idled(&mut self, seconds: f64) {
        self.bola.idled(seconds);
    }

    fn sought(&mut self) {
        self.bola.sought();
        self.by_buffer = false;
    }
}
