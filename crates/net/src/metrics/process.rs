//! Metrics of the process, with the names that Prometheus' client libraries have agreed on.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};

use super::MetricSpec;

const CPU: MetricSpec = MetricSpec {
    name: "process_cpu",
    unit: "seconds",
    help: "Processor time of all threads, in user and kernel mode.",
};
const RESIDENT: MetricSpec = MetricSpec {
    name: "process_resident_memory",
    unit: "bytes",
    help: "Resident memory, with the pages of mapped files.",
};
const VIRTUAL: MetricSpec = MetricSpec {
    name: "process_virtual_memory",
    unit: "bytes",
    help: "Size of the address space.",
};
const OPEN_FDS: MetricSpec = MetricSpec {
    name: "process_open_fds",
    unit: "",
    help: "Open file descriptors.",
};
const MAX_FDS: MetricSpec = MetricSpec {
    name: "process_max_fds",
    unit: "",
    help: "Limit on open file descriptors.",
};
const THREADS: MetricSpec = MetricSpec {
    name: "process_threads",
    unit: "",
    help: "Threads.",
};
const START_TIME: MetricSpec = MetricSpec {
    name: "process_start_time",
    unit: "seconds",
    help: "Start of the process, in seconds since 1970.",
};

/// Ticks per second of the times in `/proc`: part of the kernel's interface on all processors that we
/// build for.
const TICKS_PER_S: f64 = 100.0;

/// Reads the metrics of this process from the kernel when they are requested. A metric that the
/// kernel does not report is left out.
#[derive(Debug)]
pub(super) struct ProcessCollector {
    start_time_s: Option<f64>,
}

impl ProcessCollector {
    pub(super) fn new() -> ProcessCollector {
        ProcessCollector {
            start_time_s: read_start_time(),
        }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        if let Some(cpu) = read_cpu_time() {
            encode_metric(&mut encoder, &CPU, &ConstCounter::new(cpu))?;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kib = |name| Some(status_number(&status, name)? << 10);
        let gauges = [
            (&RESIDENT, kib("VmRSS:")),
            (&VIRTUAL, kib("VmSize:")),
            (&THREADS, status_number(&status, "Threads:")),
            (&OPEN_FDS, count_descriptors()),
            (&MAX_FDS, getrlimit(Resource::Nofile).current),
        ];
        for (spec, value) in gauges {
            if let Some(value) = value {
                encode_metric(&mut encoder, spec, &ConstGauge::new(value))?;
            }
        }
        match self.start_time_s {
            Some(start) => encode_metric(&mut encoder, &START_TIME, &ConstGauge::new(start)),
            None => Ok(()),
        }
    }
}

fn encode_metric(
    encoder: &mut DescriptorEncoder<'_>,
    spec: &MetricSpec,
    metric: &impl EncodeMetric,
) -> std::fmt::Result {
    let unit = (!spec.unit.is_empty()).then(|| Unit::Other(spec.unit.to_owned()));
    let kind: MetricType = metric.metric_type();
    metric.encode(encoder.encode_descriptor(spec.name, spec.help, unit.as_ref(), kind)?)
}

/// Returns the number after a name in `/proc/PID/status`, whose memory sizes are in KiB.
fn status_number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the number of open descriptors. Since Linux 6.2, this number is the size of the folder.
/// On older kernels, the entries of the folder are counted, without the descriptor that reads it.
fn count_descriptors() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).ok()?.len() {
        0 => Some((fs::read_dir(FOLDER).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

/// Returns the processor time of all threads in seconds: proc_pid_stat(5), fields 14 and 15.
fn read_cpu_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    Some((stat_number(&stat, 14)? + stat_number(&stat, 15)?) / TICKS_PER_S)
}

/// Returns the start of this process in seconds since 1970: proc_pid_stat(5), field 22.
fn read_start_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = status_number(&system, "btime ")?;
    Some(boot as f64 + stat_number(&stat, 22)? / TICKS_PER_S)
}

/// Returns a field of `/proc/PID/stat`, counted from 1; 3 is the first one that can be returned.
fn stat_number(stat: &str, field: usize) -> Option<f64> {
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let number = fields.split(' ').nth(field.checked_sub(3)?)?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn the_kernel_reports_plausible_numbers() {
        let start = read_start_time().unwrap();
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        // The boot time has whole seconds.
        assert!(start > 1.6e9 && start < since_1970 + 2.0, "{start}");
        // The kernel counts in hundredths of a second.
        let cpu = read_cpu_time().unwrap();
        while read_cpu_time().unwrap() <= cpu {
            std::hint::black_box(fs::read("/proc/self/stat").unwrap());
        }
        let before = count_descriptors().unwrap();
        let _open: Vec<_> = (0..100)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        assert!(count_descriptors().unwrap() >= before + 90);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let [resident, virtual_size] =
            ["VmRSS:", "VmSize:"].map(|name| status_number(&status, name).unwrap());
        assert!(resident > 100 && resident < virtual_size);
    }
}
