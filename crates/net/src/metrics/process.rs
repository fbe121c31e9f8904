//! Metrics of the process, with the standard names of the Prometheus client libraries.

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

/// Clock ticks per second for the times in `/proc` (`USER_HZ`). The value is a fixed part of the
/// kernel's interface on all processors that the project supports.
const TICKS_PER_S: f64 = 100.0;

/// Reads the metrics of this process from the kernel at each scrape, except the start time, which
/// is read once. Metrics that the kernel does not report are omitted.
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
        let kib = |name| Some(parse_proc_number(&status, name)? << 10);
        let gauges = [
            (&RESIDENT, kib("VmRSS:")),
            (&VIRTUAL, kib("VmSize:")),
            (&THREADS, parse_proc_number(&status, "Threads:")),
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

/// Returns the number that follows `name` in the text of `/proc/PID/status` or `/proc/stat`. Memory
/// sizes in `/proc/PID/status` are in KiB.
fn parse_proc_number(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the number of open descriptors. Since Linux 6.2, the size of the folder `/proc/self/fd`
/// is this number. On older kernels, the function counts the entries of the folder and subtracts
/// the descriptor that reads the folder.
fn count_descriptors() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    match fs::metadata(FOLDER).ok()?.len() {
        0 => Some((fs::read_dir(FOLDER).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

/// Returns the processor time of all threads in seconds, from fields 14 and 15 of `/proc/PID/stat`
/// (proc_pid_stat(5)).
fn read_cpu_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    Some((parse_proc_stat_field(&stat, 14)? + parse_proc_stat_field(&stat, 15)?) / TICKS_PER_S)
}

/// Returns the start of this process in seconds since 1970, from field 22 of `/proc/PID/stat`
/// (proc_pid_stat(5)).
fn read_start_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = parse_proc_number(&system, "btime ")?;
    Some(boot as f64 + parse_proc_stat_field(&stat, 22)? / TICKS_PER_S)
}

/// Returns a field of `/proc/PID/stat`. Fields are numbered from 1. Fields 1 and 2 are not
/// supported.
fn parse_proc_stat_field(stat: &str, field: usize) -> Option<f64> {
    // Field 2 is the program's name in parentheses and may contain spaces, so the split starts
    // after the last parenthesis.
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
        // The tolerance is necessary because the kernel reports the boot time in whole seconds.
        assert!(start > 1.6e9 && start < since_1970 + 2.0, "{start}");
        // The kernel counts processor time in hundredths of a second, so the loop runs until the
        // time has increased.
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
            ["VmRSS:", "VmSize:"].map(|name| parse_proc_number(&status, name).unwrap());
        assert!(resident > 100 && resident < virtual_size);
    }
}
