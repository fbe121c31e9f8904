//! Tests the command line of `headwater lab link`.

#![allow(clippy::unwrap_used)]

#[path = "../support/link.rs"]
mod link;

use link::{Bed, SERVER};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lab(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("lab").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Starts `headwater serve` with the built-in film at the server end of the link.
fn serve(bed: &Bed) -> Child {
    let mut command = bed.at_server(env!("CARGO_BIN_EXE_headwater"));
    command.args(["serve", "--listen", &format!("{SERVER}:80")]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, format!("listening on http://{SERVER}:80\n"));
    child
}

/// Waits until a process that is not a child of this test has exited. Panics after 30 s.
fn gone(pid: u32) {
    let began = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "{pid} is alive");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_and_requests_over_a_link() {
    let args = ["--rate", "40mbit", "--delay", "10ms", "--loss", "0.5%"];
    let Some(bed) = Bed::start("a_server_and_requests_over_a_link", &args) else {
        return;
    };
    let mut server = serve(&bed);
    let url = format!("http://{SERVER}/Headwater/.m3u8");
    let mut load = bed.at_client(env!("CARGO_BIN_EXE_headwater"));
    load.args(["load", "rate", &url, "--rate", "20", "--duration", "1s"]);
    load.args(["--expect", "errors = 0", "--expect", "requests = 20"]);
    // The round trip takes 20 ms, so no response can be faster.
    load.args(["--expect", "p50 >= 20ms"]);
    let output = load.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let report = bed.end();
    assert!(report["down"]["delivered"].as_u64() > Some(20), "{report}");
    assert_eq!(report["shape"]["down"]["delay_ms"], 10.0, "{report}");
    // When the link ended, it sent SIGTERM to the server, so the server exited with success.
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_commands_status_is_the_links() {
    if Bed::start("the_commands_status_is_the_links", &[]).is_none() {
        return;
    }
    for (command, status) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 1)] {
        let output = lab(&["link", "--delay", "1ms", "--", "sh", "-c", command]);
        assert_eq!(output.status.code(), Some(status), "{command}");
    }
    let output = lab(&["link", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no-such-program"));
}

#[test]
fn nothing_stays_when_the_link_is_killed() {
    let Some(mut bed) = Bed::start("nothing_stays_when_the_link_is_killed", &[]) else {
        return;
    };
    // Starts a shell with a child process, and a shell that ignores SIGTERM.
    let mut busy = bed.at_client("sh");
    busy.args(["-c", "sleep 600 & echo $!; wait"]);
    let mut busy = busy.stdout(Stdio::piped()).spawn().unwrap();
    let mut deaf = bed.at_server("sh");
    deaf.args(["-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"]);
    let mut deaf = deaf.stdout(Stdio::piped()).spawn().unwrap();
    let [sleeper, word] = [&mut busy, &mut deaf].map(|child| {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        line.trim().to_owned()
    });
    assert_eq!(word, "deaf");
    bed.kill();
    busy.wait().unwrap();
    deaf.wait().unwrap();
    gone(sleeper.parse().unwrap());
    let output = lab(&["exec", &bed.name, "client", "--", "true"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn a_signal_ends_a_link_that_still_waits() {
    if Bed::start("a_signal_ends_a_link_that_still_waits", &[]).is_none() {
        return;
    }
    let name = format!("waits-{}", std::process::id());
    let waits = [
        (&["--server", "sleep 600"][..], 1, "the link was stopped"),
        (&["--compete", "reno", "--settle", "25s"], 130, ""),
    ];
    for (args, status, message) in waits {
        let mut link = Command::new(env!("CARGO_BIN_EXE_headwater"));
        link.args(["lab", "link", "--name", &name]).args(args);
        let link = link.args(["--", "true"]).stderr(Stdio::piped()).spawn();
        let link = link.unwrap();
        // A link that answers `lab exec` already handles signals.
        let began = Instant::now();
        while !lab(&["exec", &name, "client", "--", "true"])
            .status
            .success()
        {
            assert!(began.elapsed() < Duration::from_secs(20), "{args:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = link.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let output = link.wait_with_output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
}

#[test]
fn wrong_words_are_told_from_wrong_machines() {
    for (args, message) in [
        (&["link", "--rate", "fast"][..], "--rate"),
        (
            &["link", "--rate", "1mbit", "--delay", "0ms"],
            "queue = \"1bdp\"",
        ),
        (&["link", "--loss", "200%"], "--loss"),
        (&["link", "--delay", "20"], "--delay"),
    ] {
        let output = lab(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(message), "{args:?}");
    }
}
