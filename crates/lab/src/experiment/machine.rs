//! What an experiment ran on, and with what.

use super::folder::opened;
use super::versions::said;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const FILE: &str = "machine.jsonl";

/// A machine with its programs, from when an experiment was begun (or went on) on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Seconds since 1970.
    pub unix_s: f64,
    /// The agent that it is the machine of; none of whoever ran the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The document's size that was run, such as `small`.
    pub scale: Option<String>,
    /// The processor's model.
    pub cpu: String,
    /// Processors that this program may use.
    pub cores: usize,
    /// Of memory.
    pub memory_bytes: u64,
    /// The kernel's name and release.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// By program.
    pub versions: BTreeMap<String, String>,
}

impl Machine {
    /// This one, now. Each of `versions` is a command, whose first words are kept.
    pub(crate) fn here(scale: Option<&str>, versions: &BTreeMap<String, String>) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let memory = after(&read("/proc/meminfo"), "MemTotal:").replace("kB", "");
        let memory_kb: u64 = memory.trim().parse().unwrap_or(0);
        let kernel = ["ostype", "osrelease"].map(|name| read(&format!("/proc/sys/kernel/{name}")));
        let own = ("headwater".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Machine {
            // In whole milliseconds: more digits might not come back from JSON the same.
            unix_s: now.unwrap_or_default().as_millis() as f64 / 1e3,
            agent: None,
            scale: scale.map(str::to_owned),
            cpu: after(&read("/proc/cpuinfo"), "model name").replace(": ", ""),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kb << 10,
            kernel: kernel.map(|part| part.trim().to_owned()).join(" "),
            system: after(&read("/etc/os-release"), "PRETTY_NAME=").replace('"', ""),
            versions: said(versions).into_iter().chain([own]).collect(),
        }
    }

    /// Writes this one down in an experiment's folder, unless it stands there as it is.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn note(&self, out: &Path) -> Result<(), String> {
        let path = out.join(FILE);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let same = |other: &Machine| {
            let then = Machine {
                unix_s: self.unix_s,
                ..other.clone()
            };
            then == *self
        };
        let before = Machine::read_all(out)?;
        let own = before.iter().rfind(|other| other.agent == self.agent);
        if own.is_some_and(same) {
            return Ok(());
        }
        let line = serde_json::to_string(self).map_err(|error| error.to_string())? + "\n";
        let mut file = opened(&path).map_err(failed)?;
        file.write_all(line.as_bytes()).map_err(failed)
    }

    /// All that an experiment ran on; none where nothing was written down.
    ///
    /// # Errors
    /// A line that says nothing of a machine.
    pub fn read_all(out: &Path) -> Result<Vec<Machine>, String> {
        super::record::lines(&out.join(FILE))
    }
}

/// What follows a word at the beginning of a line.
fn after(text: &str, word: &str) -> String {
    let found = text.lines().find_map(|line| line.strip_prefix(word));
    found.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_written_down_once() {
        let out = std::env::temp_dir().join(format!("lab-machine-{}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let versions = [(
            "sh".to_owned(),
            "echo; echo '  1.2  ' >&2; echo no".to_owned(),
        )];
        let here = Machine::here(Some("small"), &versions.into());
        assert!(here.cores > 0 && here.memory_bytes > 1 << 20, "{here:?}");
        assert!(here.kernel.starts_with("Linux "), "{here:?}");
        assert_eq!(here.versions["sh"], "no");
        here.note(&out).unwrap();
        Machine {
            unix_s: 0.0,
            ..here.clone()
        }
        .note(&out)
        .unwrap();
        assert_eq!(Machine::read_all(&out).unwrap().first(), Some(&here));
        assert_eq!(Machine::read_all(&out).unwrap().len(), 1);
        // Killed while it was written: what is torn is not there, and the next one is whole.
        let torn = fs::read_to_string(out.join(FILE)).unwrap() + "{\"unix_s\":";
        fs::write(out.join(FILE), torn).unwrap();
        let other = Machine { cores: 99, ..here };
        other.note(&out).unwrap();
        assert_eq!(Machine::read_all(&out).unwrap().len(), 2);
        // An agent's does not stand between two that are the same.
        let agent = Some("one".to_owned());
        let agents = Machine {
            agent,
            ..other.clone()
        };
        for machine in [&agents, &other, &agents] {
            machine.note(&out).unwrap();
        }
        assert_eq!(Machine::read_all(&out).unwrap().last(), Some(&agents));
        assert_eq!(Machine::read_all(&out).unwrap().len(), 3);
        fs::remove_dir_all(&out).unwrap();
    }
}
