//! A document's commands: how they are started, and what they said.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines of what a command said last, told with its failure.
const LAST_LINES: usize = 5;

/// A text for the shell that will run in a folder, its standard output in this file and its
/// standard error beside it.
///
/// # Errors
/// A sentence, where the files cannot be made.
pub(super) fn shell(text: &str, folder: &Path, output: &Path) -> Result<Command, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", output.display());
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(text)
        .current_dir(folder)
        .env("PATH", path());
    command
        .stdin(Stdio::null())
        .stdout(File::create(output).map_err(failed)?);
    command.stderr(File::create(output.with_extension("errors")).map_err(failed)?);
    // Ctrl-C at a terminal goes to the foreground's whole group: what is measured ends when we say.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

/// This program's own folder first, so that `headwater` in a document is this one.
pub(super) fn path() -> std::ffi::OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    let all = own.into_iter().chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap_or(others)
}

/// The end of what a command said, for whoever looks for the reason.
pub(super) fn last_words(output: &Path) -> String {
    let read = |path: &Path| std::fs::read(path).unwrap_or_default();
    let said = [read(output), read(&output.with_extension("errors"))].concat();
    let said = String::from_utf8_lossy(&said).trim_end().to_owned();
    let mut words: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    words.drain(..words.len().saturating_sub(LAST_LINES));
    if words.is_empty() {
        return String::new();
    }
    format!("; it said: {}", words.join(" | "))
}
