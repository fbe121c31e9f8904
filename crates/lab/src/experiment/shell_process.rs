//! Starts the commands of a document and reads the end of their output.

use super::file_error::FileError;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};

/// Number of output lines that an error message quotes.
const LAST_LINES: usize = 5;
/// Number of bytes that are read from the end of each output to find its last lines.
const LAST_BYTES: u64 = 16 << 10;

/// Returns a shell command that runs in `folder`. The command's standard output goes to the file
/// `output`. Its standard error goes to a file of the same name with the extension `errors`.
///
/// # Errors
/// The files cannot be created.
pub(super) fn shell_command(
    text: &str,
    folder: &Path,
    output: &Path,
) -> Result<Command, FileError> {
    let failed = |error| FileError::new(output, error);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(text)
        .current_dir(folder)
        .env("PATH", program_search_path());
    command
        .stdin(Stdio::null())
        .stdout(File::create(output).map_err(failed)?);
    command.stderr(File::create(output.with_extension("errors")).map_err(failed)?);
    // Ctrl-C sends a signal to the whole foreground process group. The command gets its own group,
    // because this program decides when its commands end.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

/// Returns `PATH` with this program's folder first, so that `headwater` in a document's command is
/// this program.
pub(super) fn program_search_path() -> std::ffi::OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let own_folder = std::env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    let all = own_folder
        .into_iter()
        .chain(std::env::split_paths(&inherited));
    std::env::join_paths(all).unwrap_or(inherited)
}

/// Returns the last lines of a command's output, for error messages.
pub(super) fn last_output(output: &Path) -> String {
    let read = |path: &Path| read_file_tail(path).unwrap_or_default();
    let text = [read(output), read(&output.with_extension("errors"))].concat();
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    let mut words: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    words.drain(..words.len().saturating_sub(LAST_LINES));
    if words.is_empty() {
        return String::new();
    }
    format!("; last output: {}", words.join(" | "))
}

/// Reads only the end of a file, because a log may be larger than memory.
fn read_file_tail(path: &Path) -> io::Result<Vec<u8>> {
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
    fn the_end_of_a_long_output_is_quoted() {
        let output = std::env::temp_dir().join(format!("lab-words-{}.out", std::process::id()));
        let long = "x".repeat(1 << 20) + "\nfirst\nlast\n";
        std::fs::write(&output, long).unwrap();
        let output_text = last_output(&output);
        assert!(
            output_text.ends_with(" | first | last"),
            "{}",
            output_text.len()
        );
        assert!(
            output_text.len() as u64 <= 2 * LAST_BYTES,
            "{}",
            output_text.len()
        );
        std::fs::remove_file(&output).unwrap();
    }
}
