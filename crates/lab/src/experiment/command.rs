//! A document's commands: how they are started, and what they said.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines of what a command said last, told with its failure.
const LAST_LINES: usize = 5;
/// Most bytes of each of its outputs that are looked at for them.
const LAST_BYTES: u64 = 16 << 10;

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
    let read = |path: &Path| end_of(path).unwrap_or_default();
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

/// What a file ends with: a log may be longer than memory, and a line than anybody reads.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(LAST_BYTES);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LAST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_output_is_told() {
        let output = std::env::temp_dir().join(format!("lab-words-{}.out", std::process::id()));
        let long = "x".repeat(1 << 20) + "\nfirst\nlast\n";
        std::fs::write(&output, long).unwrap();
        let said = last_words(&output);
        assert!(said.ends_with(" | first | last"), "{}", said.len());
        assert!(said.len() as u64 <= 2 * LAST_BYTES, "{}", said.len());
        std::fs::remove_file(&output).unwrap();
    }
}
