//! What else the machine did while we measured.

use serde::{Deserialize, Serialize};

/// Between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Processes that ran or wanted to, averaged over a minute, at the end.
    pub load: f64,
    /// Share of processor time in which something ran.
    pub busy: f64,
    /// Share of processor time that the host took from this machine.
    pub steal: f64,
}

impl Noise {
    /// The worse of two machines' in everything.
    pub(super) fn worst(self, other: Noise) -> Noise {
        Noise {
            load: self.load.max(other.load),
            busy: self.busy.max(other.busy),
            steal: self.steal.max(other.steal),
        }
    }
}

/// Processor time since the machine began, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    /// Now; nothing where `/proc` does not say.
    pub(crate) fn now() -> Ticks {
        Ticks::read(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The line `cpu` of proc(5): user nice system idle iowait irq softirq steal.
    fn read(text: &str) -> Ticks {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .map_while(|t| t.parse().ok())
            .collect();
        let at = |n: usize| ticks.get(n).copied().unwrap_or(0);
        Ticks {
            all: ticks.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
        }
    }

    /// What happened since.
    pub(crate) fn since(self) -> Noise {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|text| text.parse().ok());
        self.until(Ticks::now(), load.unwrap_or(0.0))
    }

    fn until(self, now: Ticks, load: f64) -> Noise {
        let all = now.all.saturating_sub(self.all).max(1) as f64;
        Noise {
            load,
            busy: 1.0 - now.idle.saturating_sub(self.idle) as f64 / all,
            steal: now.stolen.saturating_sub(self.stolen) as f64 / all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_known_ticks() {
        let before = Ticks::read("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1");
        let after = Ticks::read("cpu  130 0 60 840 60 0 0 10 9 9\n");
        let noise = before.until(after, 1.5);
        assert_eq!(noise.load, 1.5);
        assert!((noise.busy - 0.5).abs() < 1e-12 && (noise.steal - 0.1).abs() < 1e-12);
    }
}
