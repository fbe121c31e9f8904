//! The machine of an experiment, with the versions of the programs.

use super::file_error::FileError;
use super::record::RecordFileError;
use super::result_folder::open_records_for_append;
use super::versions::query_versions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const FILE: &str = "machine.jsonl";

/// A description of a machine and its programs. It is made when an experiment starts or resumes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineDescription {
    /// Time of the description, in seconds since 1970.
    pub unix_s: f64,
    /// Name of the agent on this machine; `None` for the machine that controls the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Scale of the run, such as `small`.
    pub scale: Option<String>,
    /// Processor model.
    pub cpu: String,
    /// Number of processors that this program may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// Versions, by program.
    pub versions: BTreeMap<String, String>,
}

impl MachineDescription {
    /// Describes this machine. Each value of `versions` is a command, and the first line of its
    /// output is recorded.
    pub(crate) fn describe_this_machine(
        scale: Option<&str>,
        versions: &BTreeMap<String, String>,
    ) -> MachineDescription {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let memory = text_after(&read("/proc/meminfo"), "MemTotal:").replace("kB", "");
        let memory_kb: u64 = memory.trim().parse().unwrap_or(0);
        let kernel = ["ostype", "osrelease"].map(|name| read(&format!("/proc/sys/kernel/{name}")));
        let own = ("headwater".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        MachineDescription {
            // Rounds to milliseconds, because more digits may be lost in a conversion to JSON and
            // back.
            unix_s: now.unwrap_or_default().as_millis() as f64 / 1e3,
            agent: None,
            scale: scale.map(str::to_owned),
            cpu: text_after(&read("/proc/cpuinfo"), "model name").replace(": ", ""),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kb << 10,
            kernel: kernel.map(|part| part.trim().to_owned()).join(" "),
            system: text_after(&read("/etc/os-release"), "PRETTY_NAME=").replace('"', ""),
            versions: query_versions(versions).into_iter().chain([own]).collect(),
        }
    }

    /// Appends the description to the file in an experiment's folder, unless the last description
    /// of the same agent is equal.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn append_if_changed(&self, out: &Path) -> Result<(), RecordFileError> {
        let path = out.join(FILE);
        let failed = |error| FileError::new(&path, error);
        let same = |other: &MachineDescription| {
            let then = MachineDescription {
                unix_s: self.unix_s,
                ..other.clone()
            };
            then == *self
        };
        let before = MachineDescription::read_machine_descriptions(out)?;
        let own = before.iter().rfind(|other| other.agent == self.agent);
        if own.is_some_and(same) {
            return Ok(());
        }
        let line = serde_json::to_string(self).map_err(RecordFileError::Encode)? + "\n";
        let mut file = open_records_for_append(&path).map_err(failed)?;
        file.write_all(line.as_bytes()).map_err(failed)?;
        Ok(())
    }

    /// Reads all descriptions in an experiment's folder. Returns an empty list if the file does not
    /// exist.
    ///
    /// # Errors
    /// The file cannot be read, or a line is invalid.
    pub fn read_machine_descriptions(
        out: &Path,
    ) -> Result<Vec<MachineDescription>, RecordFileError> {
        super::record::read_json_lines(&out.join(FILE))
    }
}

/// Returns the text after `word` in the first line that starts with `word`.
fn text_after(text: &str, word: &str) -> String {
    let found = text.lines().find_map(|line| line.strip_prefix(word));
    found.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_recorded_once() {
        let out = std::env::temp_dir().join(format!("lab-machine-{}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let versions = [(
            "sh".to_owned(),
            "echo; echo '  1.2  ' >&2; echo no".to_owned(),
        )];
        let here = MachineDescription::describe_this_machine(Some("small"), &versions.into());
        assert!(here.cores > 0 && here.memory_bytes > 1 << 20, "{here:?}");
        assert!(here.kernel.starts_with("Linux "), "{here:?}");
        assert_eq!(here.versions["sh"], "no");
        here.append_if_changed(&out).unwrap();
        MachineDescription {
            unix_s: 0.0,
            ..here.clone()
        }
        .append_if_changed(&out)
        .unwrap();
        assert_eq!(
            MachineDescription::read_machine_descriptions(&out)
                .unwrap()
                .first(),
            Some(&here)
        );
        assert_eq!(
            MachineDescription::read_machine_descriptions(&out)
                .unwrap()
                .len(),
            1
        );
        // A process that is killed while it writes leaves an incomplete line. That line is removed.
        let torn = fs::read_to_string(out.join(FILE)).unwrap() + "{\"unix_s\":";
        fs::write(out.join(FILE), torn).unwrap();
        let other = MachineDescription { cores: 99, ..here };
        other.append_if_changed(&out).unwrap();
        assert_eq!(
            MachineDescription::read_machine_descriptions(&out)
                .unwrap()
                .len(),
            2
        );
        // Each description is compared with the last description of the same agent. Therefore, only
        // the first of the following three descriptions is new.
        let agent = Some("one".to_owned());
        let agents = MachineDescription {
            agent,
            ..other.clone()
        };
        for machine in [&agents, &other, &agents] {
            machine.append_if_changed(&out).unwrap();
        }
        assert_eq!(
            MachineDescription::read_machine_descriptions(&out)
                .unwrap()
                .last(),
            Some(&agents)
        );
        assert_eq!(
            MachineDescription::read_machine_descriptions(&out)
                .unwrap()
                .len(),
            3
        );
        fs::remove_dir_all(&out).unwrap();
    }
}
