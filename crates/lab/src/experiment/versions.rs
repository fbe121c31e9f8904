//! Queries the versions of programs.

use super::shell_process::program_search_path;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a version, in characters.
const CHARS_MAX: usize = 200;
/// Maximum number of bytes that are read from each output.
const BYTES_MAX: u64 = 16 << 10;
/// Time limit for all commands, which run concurrently.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for reading the remaining output of a killed command.
const GRACE: Duration = Duration::from_millis(500);

/// Returns the first line that each command prints. Standard output takes precedence over standard
/// error.
pub(super) fn query_versions(versions: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    thread::scope(|scope| {
        let queries: Vec<_> = versions
            .iter()
            .map(|(name, command)| (name, scope.spawn(|| run_for_first_line(command))))
            .collect();
        let lines = queries.into_iter().map(|(name, query)| {
            let line = query.join();
            (name.clone(), line.unwrap_or_else(|_| "no output".into()))
        });
        lines.collect()
    })
}

/// Returns the first line that a command prints. Before it returns, the function kills the command
/// and its children.
fn run_for_first_line(command: &str) -> String {
    let deadline = Instant::now() + RESPONSE_TIMEOUT;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("PATH", program_search_path());
    shell.stdin(Stdio::null()).process_group(0);
    let piped = shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match piped.spawn() {
        Ok(child) => child,
        Err(error) => return error.to_string(),
    };
    let receivers = [
        child.stdout.take().map(read_first_line),
        child.stderr.take().map(read_first_line),
    ];
    let wait_for_line = |within: &dyn Fn() -> Duration| {
        let mut outputs = receivers.iter().flatten();
        outputs.find_map(|output| output.recv_timeout(within()).ok().flatten())
    };
    let printed_in_time = wait_for_line(&|| deadline.saturating_duration_since(Instant::now()));
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    // If no complete line arrived in time, uses an incomplete line of the killed command.
    let first = printed_in_time.or_else(|| wait_for_line(&|| GRACE));
    let first = first.unwrap_or_else(|| "no output".into());
    first.trim().chars().take(CHARS_MAX).collect()
}

/// Reads an output on a new thread. The thread sends the first line that is not blank as soon as it
/// is available, or `None` if the output has no such line.
fn read_first_line(output: impl Read + Send + 'static) -> Receiver<Option<String>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(output.take(BYTES_MAX)).split(b'\n');
        let lines = lines.map_while(Result::ok);
        let mut texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        let _ = sender.send(texts.find(|text| !text.trim().is_empty()));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query_one(command: &str) -> String {
        let versions = [("x".to_owned(), command.to_owned())];
        query_versions(&versions.into()).remove("x").unwrap()
    }

    #[test]
    fn the_first_line_is_returned_and_running_commands_are_killed() {
        assert_eq!(query_one("echo; echo '  1.2  ' >&2; echo no"), "no");
        assert_eq!(query_one("echo '  1.2  ' >&2"), "1.2");
        assert_eq!(query_one("true"), "no output");
        assert!(query_one("no-such-program --version").contains("not found"));
        // Neither of the next two commands exits by itself.
        assert_eq!(query_one("echo 3.4; exec sleep 600"), "3.4");
        assert_eq!(query_one("yes 5.6"), "5.6");
        let long = query_one("head -c 300 /dev/zero | tr '\\000' x");
        assert_eq!(long, "x".repeat(CHARS_MAX));
    }
}
