//! Where media lies, or is made.

use super::Document;
use super::command::{last_words, shell};
use super::deploy::PAUSE;
use super::folder::Folders;
use crate::link::{Guard, Namespace};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the sources lie that are wanted; those that are made are made now, unless they have been.
///
/// # Errors
/// Which is not there, or could not be made.
pub(crate) fn sources(
    document: &Document,
    wanted: &dyn Fn(&str) -> bool,
    folders: &Folders,
    stop: &AtomicBool,
) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut found = BTreeMap::new();
    let all = document.source.iter();
    for (name, source) in all.filter(|(name, _)| wanted(name.get_ref())) {
        let name = name.get_ref();
        let path = match (&source.media, &source.make) {
            (Some(media), _) => folders.base.join(media.get_ref()),
            (None, Some(command)) => make(name, command.get_ref(), folders, stop)?,
            (None, None) => continue,
        };
        if !path.exists() {
            return Err(format!("source {name}: {} is not there", path.display()));
        }
        found.insert(name.clone(), path);
    }
    Ok(found)
}

/// Made aside: what stands under its name is whole.
fn make(
    name: &str,
    command: &str,
    folders: &Folders,
    stop: &AtomicBool,
) -> Result<PathBuf, String> {
    let path = folders.out.join("sources").join(name);
    if path.exists() {
        return Ok(path);
    }
    let failed = |error: std::io::Error| format!("source {name}: {error}");
    let half = path.with_extension("half");
    let inside = Namespace::same_network().map_err(failed)?;
    let mut guard = Guard::start().map_err(failed)?;
    guard.watch(&inside).map_err(failed)?;
    guard.remove(&half).map_err(failed)?;
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(half.join("files")).map_err(failed)?;
    let output = half.join("said");
    let mut shell = shell(command, &half.join("files"), &output)?;
    shell.env("HERE", &folders.base);
    let mut child = inside.within(|| shell.spawn()).map_err(failed)?;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break Some(status),
            None if stop.load(Ordering::Relaxed) => break None,
            None => std::thread::sleep(PAUSE),
        }
    };
    let result = match status {
        Some(status) if status.success() => fs::rename(half.join("files"), &path).map_err(failed),
        Some(status) => Err(format!("source {name}: {status}{}", last_words(&output))),
        None => Err(format!("source {name}: stopped while it was made")),
    };
    drop(guard);
    let _ = child.wait();
    result.map(|()| path)
}
