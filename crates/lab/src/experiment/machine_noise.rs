//! Other activity of the machine during a measurement.

use serde::{Deserialize, Serialize};

/// Activity of the machine between two points in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineNoise {
    /// One-minute load average of the kernel at the end of the measurement.
    pub load: f64,
    /// Share of processor time that was not idle.
    pub busy: f64,
    /// Share of processor time that the hypervisor took.
    pub steal: f64,
}

impl MachineNoise {
    /// Combines the noise of two machines. Each resulting value is the maximum of the two machines.
    pub(super) fn combine_worst(self, other: MachineNoise) -> MachineNoise {
        MachineNoise {
            load: self.load.max(other.load),
            busy: self.busy.max(other.busy),
            steal: self.steal.max(other.steal),
        }
    }
}

/// Processor time since boot, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuTicks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl CpuTicks {
    /// Reads the current ticks. Returns zeros if `/proc` is unavailable.
    pub(crate) fn now() -> CpuTicks {
        CpuTicks::parse_stat(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the line `cpu` of `/proc/stat`, whose fields are user, nice, system, idle, iowait,
    /// irq, softirq and steal (see proc(5)).
    fn parse_stat(text: &str) -> CpuTicks {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .map_while(|t| t.parse().ok())
            .collect();
        let at = |n: usize| ticks.get(n).copied().unwrap_or(0);
        CpuTicks {
            all: ticks.iter().sum(),
            idle: at(3) + at(4),
            stolen: at(7),
        }
    }

    /// Returns the activity of the machine since these CPU counters were read.
    pub(crate) fn noise_since_read(self) -> MachineNoise {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|text| text.parse().ok());
        self.noise_until(CpuTicks::now(), load.unwrap_or(0.0))
    }

    fn noise_until(self, now: CpuTicks, load: f64) -> MachineNoise {
        let all = now.all.saturating_sub(self.all).max(1) as f64;
        MachineNoise {
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
    fn shares_are_computed_from_ticks() {
        let before = CpuTicks::parse_stat("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1");
        let after = CpuTicks::parse_stat("cpu  130 0 60 840 60 0 0 10 9 9\n");
        let noise = before.noise_until(after, 1.5);
        assert_eq!(noise.load, 1.5);
        assert!((noise.busy - 0.5).abs() < 1e-12 && (noise.steal - 0.1).abs() < 1e-12);
    }
}
