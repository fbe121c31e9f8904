//! The memory and processors that this process may use.
//!
//! Inside a container, the limits of the control group apply instead of the machine's totals. The
//! process's own group and all parent groups are read in both versions, because each group may set
//! a limit.

use std::path::PathBuf;

use self::control_group::ControlGroups;
use self::memory_group::MemoryGroup;

mod control_group;
mod memory_group;

/// The limit on the memory of this process, and the control groups that report the memory in use.
#[derive(Debug, Clone)]
pub struct MemoryLimit {
    bytes: u64,
    /// The control groups whose limit is below the machine's RAM. Without such groups, the memory
    /// of the process itself is measured.
    groups: Vec<MemoryGroup>,
}

impl MemoryLimit {
    /// Returns the lowest limit of all control groups, or the machine's RAM if no group has a lower
    /// limit.
    pub fn detect_memory_limit() -> MemoryLimit {
        MemoryLimit::from_groups(&ControlGroups::of_this_process(), ram_bytes())
    }

    /// Creates a limit that an operator has set. The memory of the process itself is compared with
    /// this limit.
    pub fn from_configured_bytes(bytes: u64) -> MemoryLimit {
        let groups = Vec::new();
        MemoryLimit { bytes, groups }
    }

    fn from_groups(groups: &ControlGroups, ram_bytes: u64) -> MemoryLimit {
        let mut groups = MemoryGroup::find_limited_groups(groups);
        groups.retain(|group| group.limit_bytes < ram_bytes);
        let limit_min = groups.iter().map(|group| group.limit_bytes).min();
        MemoryLimit {
            bytes: limit_min.unwrap_or(ram_bytes),
            groups,
        }
    }

    /// Returns the limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory in use in bytes, for comparison with [`MemoryLimit::bytes`].
    ///
    /// The memory use of a control group is scaled from the group's own limit to this limit. Among
    /// nested groups, the group that is closest to its limit determines the result. Returns `None`
    /// if the system does not report the memory use.
    pub(crate) fn used_bytes(&self) -> Option<u64> {
        if self.groups.is_empty() {
            return process_bytes();
        }
        let scaled = self.groups.iter().filter_map(|group| {
            let used = u128::from(group.used_bytes()?) * u128::from(self.bytes);
            u64::try_from(used / u128::from(group.limit_bytes.max(1))).ok()
        });
        scaled.max()
    }
}

/// Returns the default number of workers, which is the number of processors that this process may
/// use. The affinity mask and the quota of the control group limit this number. A fraction of a
/// processor in the quota is rounded up.
pub fn default_workers() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
    limit_workers_by_quota(allowed, ControlGroups::of_this_process().cpu_quota())
}

fn limit_workers_by_quota(allowed: usize, quota: Option<f64>) -> usize {
    // The cast saturates, so it converts a quota above `usize::MAX` to `usize::MAX`.
    let quota = quota.map_or(usize::MAX, |quota| quota.ceil() as usize);
    allowed.min(quota).max(1)
}

fn ram_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// Returns the anonymous and shared memory of this process in bytes. Mapped files are not counted,
/// because the kernel drops their pages when memory is short.
fn process_bytes() -> Option<u64> {
    let status = std::fs::read_to_string(PathBuf::from("/proc/self/status")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    Some((kib("RssAnon:")? + kib("RssShmem:")?) << 10)
}

#[cfg(test)]
mod tests;
