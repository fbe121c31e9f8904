//! What programs say of themselves.

use super::command::path;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest text that is kept.
const CHARS_MAX: usize = 200;
/// Most of each output that is looked at.
const BYTES_MAX: u64 = 16 << 10;
/// How long they may take, all at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what was killed may take to be gone.
const GRACE: Duration = Duration::from_millis(500);

/// By program, the first line that its command prints, on standard output if there is one.
pub(super) fn said(versions: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    thread::scope(|scope| {
        let asked: Vec<_> = versions
            .iter()
            .map(|(name, command)| (name, scope.spawn(|| first_line(command))))
            .collect();
        let told = asked.into_iter().map(|(name, asked)| {
            let line = asked.join();
            (name.clone(), line.unwrap_or_else(|_| "says nothing".into()))
        });
        told.collect()
    })
}

/// Whatever it does after that is ended with it.
fn first_line(command: &str) -> String {
    let until = Instant::now() + PATIENCE;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path());
    shell.stdin(Stdio::null()).process_group(0);
    let piped = shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match piped.spawn() {
        Ok(child) => child,
        Err(error) => return error.to_string(),
    };
    let heard = [child.stdout.take().map(hear), child.stderr.take().map(hear)];
    let told = |within: &dyn Fn() -> Duration| {
        let mut outputs = heard.iter().flatten();
        outputs.find_map(|output| output.recv_timeout(within()).ok().flatten())
    };
    let told_itself = told(&|| until.saturating_duration_since(Instant::now()));
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    // Of what did not end by itself, what it had begun to say.
    let first = told_itself.or_else(|| told(&|| GRACE));
    let first = first.unwrap_or_else(|| "says nothing".into());
    first.trim().chars().take(CHARS_MAX).collect()
}

/// The first line of an output that is not blank, once it is there or the output has ended; nobody
/// need wait for it.
fn hear(output: impl Read + Send + 'static) -> Receiver<Option<String>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(output.take(BYTES_MAX)).split(b'\n');
        let lines = lines.map_while(Result::ok);
        let mut texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        let _ = tell.send(texts.find(|text| !text.trim().is_empty()));
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(command: &str) -> String {
        let versions = [("x".to_owned(), command.to_owned())];
        said(&versions.into()).remove("x").unwrap()
    }

    #[test]
    fn the_first_line_is_kept_and_what_goes_on_is_ended() {
        assert_eq!(one("echo; echo '  1.2  ' >&2; echo no"), "no");
        assert_eq!(one("echo '  1.2  ' >&2"), "1.2");
        assert_eq!(one("true"), "says nothing");
        assert!(one("no-such-program --version").contains("not found"));
        // Neither ends by itself.
        assert_eq!(one("echo 3.4; exec sleep 600"), "3.4");
        assert_eq!(one("yes 5.6"), "5.6");
        let long = one("head -c 300 /dev/zero | tr '\\000' x");
        assert_eq!(long, "x".repeat(CHARS_MAX));
    }
}
