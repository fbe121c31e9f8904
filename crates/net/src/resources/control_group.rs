//! The control groups of a process.

use std::path::{Path, PathBuf};

/// The version of a control-group hierarchy. The names of the files that contain limits and usage
/// depend on the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlGroupVersion {
    V1,
    V2,
}

/// The control groups of a process, in hierarchies of both versions.
#[derive(Debug, Clone)]
pub(super) struct ControlGroups {
    /// The folder in which the hierarchies are mounted.
    mount: PathBuf,
    /// Text in the format of `/proc/self/cgroup`.
    lines: String,
}

impl ControlGroups {
    pub(super) fn of_this_process() -> ControlGroups {
        ControlGroups {
            mount: PathBuf::from("/sys/fs/cgroup"),
            lines: std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        }
    }

    #[cfg(test)]
    pub(super) fn new(mount: &Path, lines: &str) -> ControlGroups {
        ControlGroups {
            mount: mount.to_owned(),
            lines: lines.to_owned(),
        }
    }

    /// Returns the folders of the groups for `controller`, from the process's own group up to the
    /// root of each hierarchy. Some of these folders may not exist.
    pub(super) fn controller_folders(
        &self,
        controller: &str,
    ) -> Vec<(ControlGroupVersion, PathBuf)> {
        let lines = self.lines.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            Some((controllers, path.trim_start_matches('/')))
        });
        let found = lines.flat_map(|(controllers, path)| {
            let (version, roots) = if controllers.is_empty() {
                // Systems that use both versions mount version 2 at `unified`.
                let roots = vec![self.mount.clone(), self.mount.join("unified")];
                (ControlGroupVersion::V2, roots)
            } else if controllers.split(',').any(|one| one == controller) {
                (ControlGroupVersion::V1, vec![self.mount.join(controller)])
            } else {
                (ControlGroupVersion::V1, Vec::new())
            };
            roots.into_iter().flat_map(move |root| {
                let folders = list_ancestors(&root, path);
                folders.into_iter().map(move |folder| (version, folder))
            })
        });
        found.collect()
    }

    /// Returns the lowest CPU quota of all groups, or `None` if no group has a quota. The unit is
    /// processors, so 0.5 means half of a processor.
    pub(super) fn cpu_quota(&self) -> Option<f64> {
        let folders = self.controller_folders("cpu");
        let quotas = folders
            .iter()
            .filter_map(|(version, folder)| match version {
                ControlGroupVersion::V2 => {
                    let text = std::fs::read_to_string(folder.join("cpu.max")).ok()?;
                    let (quota, period) = text.trim().split_once(' ')?;
                    parse_quota(quota, period)
                }
                ControlGroupVersion::V1 => {
                    let read = |file| std::fs::read_to_string(folder.join(file)).ok();
                    let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
                    parse_quota(quota.trim(), period.trim())
                }
            });
        quotas.reduce(f64::min)
    }
}

/// Returns the folder of a group and its parent folders up to `root`. Inside a container, `path`
/// may be the group's path on the host. In this case, only `root` exists.
fn list_ancestors(root: &Path, path: &str) -> Vec<PathBuf> {
    let group = root.join(path);
    let groups = group.ancestors();
    let inside = groups.take_while(|group| group.starts_with(root));
    inside.map(Path::to_owned).collect()
}

/// Returns the quota in processors. Returns `None` for a group without a quota, which has `max` in
/// version 2 and -1 in version 1.
fn parse_quota(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}
