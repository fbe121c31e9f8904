//! A control group with a memory limit.

use std::path::{Path, PathBuf};

use super::control_group::{ControlGroupVersion, ControlGroups};

/// A control group that limits memory.
#[derive(Debug, Clone)]
pub(super) struct MemoryGroup {
    folder: PathBuf,
    version: ControlGroupVersion,
    pub(super) limit_bytes: u64,
}

impl MemoryGroup {
    /// Returns the control groups of a process that have a memory limit.
    pub(super) fn find_limited_groups(groups: &ControlGroups) -> Vec<MemoryGroup> {
        let folders = groups.controller_folders("memory").into_iter();
        let limited = folders.filter_map(|(version, folder)| {
            let file = match version {
                ControlGroupVersion::V2 => "memory.max",
                ControlGroupVersion::V1 => "memory.limit_in_bytes",
            };
            let limit_bytes = read_number(&folder.join(file))?;
            Some(MemoryGroup {
                folder,
                version,
                limit_bytes,
            })
        });
        limited.collect()
    }

    /// Returns the bytes of memory in use, without the pages of files and the kernel's caches of
    /// folders and inodes.
    ///
    /// The kernel drops file pages before the group reaches its limit. The function therefore
    /// subtracts both lists of file pages, the active list and the inactive list. The active list
    /// contains the pages of films that are sent often. If these pages were counted, popular films
    /// would look like an overload. The kernel also drops reclaimable slab memory, which grows with
    /// the number of files that were looked up. Version 1 does not report this memory.
    pub(super) fn used_bytes(&self) -> Option<u64> {
        let (current, prefix) = match self.version {
            ControlGroupVersion::V2 => ("memory.current", ""),
            ControlGroupVersion::V1 => ("memory.usage_in_bytes", "total_"),
        };
        let current = read_number(&self.folder.join(current))?;
        let stat = std::fs::read_to_string(self.folder.join("memory.stat")).ok()?;
        let bytes = |name: &str| -> u64 {
            let value = stat.lines().find_map(|line| {
                let name_and_value = line.strip_prefix(prefix)?;
                name_and_value.strip_prefix(name)?.strip_prefix(' ')
            });
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        let files = bytes("inactive_file").saturating_add(bytes("active_file"));
        let caches = files.saturating_add(bytes("slab_reclaimable"));
        Some(current.saturating_sub(caches))
    }
}

/// Returns the number in a file, or `None` if the file is missing or contains `max`.
fn read_number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}
