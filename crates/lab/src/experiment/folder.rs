//! An experiment's own folder.

use super::Job;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

/// Where an experiment's files are.
pub(crate) struct Folders {
    /// The document's own.
    pub(crate) base: PathBuf,
    pub(crate) out: PathBuf,
}

impl Folders {
    pub(super) fn of(job: &Job) -> Result<Folders, String> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| error.to_string());
        Ok(Folders {
            base: absolute(&job.base)?,
            out: absolute(&job.out)?,
        })
    }
}

/// To be continued after its last whole line.
pub(super) fn opened(records: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(records)?;
    if file.try_lock().is_err() {
        return Err(std::io::Error::other(
            "another run is at work in this folder",
        ));
    }
    let text = fs::read(records)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n');
    file.set_len(whole.map_or(0, |at| at as u64 + 1))?;
    Ok(file)
}

/// The folder is this document's.
pub(super) fn claim(out: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", out.display());
    fs::create_dir_all(out).map_err(failed)?;
    let own = out.join("document.toml");
    match fs::read_to_string(&own) {
        Ok(same) if same == text => Ok(()),
        // One that is empty was made by whoever was killed before it was written.
        Ok(other) if !other.is_empty() => Err(format!(
            "{} holds runs of another document, or of this one before it was changed: give another \
             --out, or remove it",
            out.display()
        )),
        _ => fs::write(own, text).map_err(failed),
    }
}
