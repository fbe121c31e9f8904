//! Finds existing media sources, and makes missing sources with their commands.

use super::ExperimentDocument;
use super::deploy::PAUSE;
use super::file_error::FileError;
use super::result_folder::DocumentAndOutputFolders;
use super::shell_process::{last_output, shell_command};
use crate::link::{CleanupGuard, NetworkNamespace};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

/// The reason why a source is unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("source {name}: {} does not exist", path.display())]
    Missing { name: String, path: PathBuf },
    #[error("source {name}: cannot create files: {source}")]
    Files {
        name: String,
        source: std::io::Error,
    },
    #[error("source {name}: {status}{last_output}")]
    Command {
        name: String,
        status: ExitStatus,
        last_output: String,
    },
    #[error("source {0}: stopped while it was being made")]
    Stopped(String),
    #[error(transparent)]
    Output(#[from] FileError),
}

/// Returns the paths of the wanted sources. Runs the commands that make missing sources.
///
/// # Errors
/// A source does not exist or cannot be made.
pub(crate) fn prepare_sources(
    document: &ExperimentDocument,
    wanted: &dyn Fn(&str) -> bool,
    folders: &DocumentAndOutputFolders,
    stop: &AtomicBool,
) -> Result<BTreeMap<String, PathBuf>, SourceError> {
    let mut found = BTreeMap::new();
    let all = document.source.iter();
    for (name, source) in all.filter(|(name, _)| wanted(name.get_ref())) {
        let name = name.get_ref();
        let path = match (&source.media, &source.make) {
            (Some(media), _) => folders.base.join(media.get_ref()),
            (None, Some(command)) => make_source(name, command.get_ref(), folders, stop)?,
            (None, None) => continue,
        };
        if !path.exists() {
            return Err(SourceError::Missing {
                name: name.clone(),
                path,
            });
        }
        found.insert(name.clone(), path);
    }
    Ok(found)
}

/// Makes a source in a temporary folder and then renames the folder, so that no run sees an
/// incomplete source.
fn make_source(
    name: &str,
    command: &str,
    folders: &DocumentAndOutputFolders,
    stop: &AtomicBool,
) -> Result<PathBuf, SourceError> {
    let path = folders.out.join("sources").join(name);
    if path.exists() {
        return Ok(path);
    }
    let failed = |source| SourceError::Files {
        name: name.to_owned(),
        source,
    };
    let half = path.with_extension("half");
    let inside = NetworkNamespace::create_uts_namespace().map_err(failed)?;
    let mut guard = CleanupGuard::start().map_err(failed)?;
    guard.register_namespace(&inside).map_err(failed)?;
    guard.delete_at_exit(&half).map_err(failed)?;
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(half.join("files")).map_err(failed)?;
    let output = half.join("output");
    let mut shell = shell_command(command, &half.join("files"), &output)?;
    shell.env("HERE", &folders.base);
    let mut child = inside.run_in_namespace(|| shell.spawn()).map_err(failed)?;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if stop.load(Ordering::Relaxed) => break None,
            None => std::thread::sleep(PAUSE),
        }
    };
    let result = match status {
        Some(status) if status.success() => fs::rename(half.join("files"), &path).map_err(failed),
        Some(status) => Err(SourceError::Command {
            name: name.to_owned(),
            status,
            last_output: last_output(&output),
        }),
        None => Err(SourceError::Stopped(name.to_owned())),
    };
    drop(guard);
    let _ = child.wait();
    result.map(|()| path)
}
