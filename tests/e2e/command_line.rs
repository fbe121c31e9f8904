//! Tests the command line: addresses, messages, exit codes, help and environment variables.

use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

fn headwater(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.args(args);
    command
}

fn run_to_end(args: &[&str]) -> Output {
    headwater(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_bad_listen_address_is_wrong_usage() {
    for command in [
        &["serve"][..],
        &["edge", "--origin", "http://127.0.0.1:9"],
        &["lab", "serve"],
    ] {
        for bad in ["nowhere", "127.0.0.1:x", "127.0.0.1:99999", "::1:8080"] {
            let output = run_to_end(&[command, &["--listen", bad]].concat());
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command:?} {bad}: {error}");
            assert!(
                error.contains(&format!("listen = {bad:?} (--listen)")),
                "{error}"
            );
        }
    }
}

#[test]
fn a_port_alone_listens_on_this_machine() {
    let mut child = headwater(&["serve", "--listen", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("listening"));
    let _ = (child.kill(), child.wait());
    let line = line.unwrap();
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
}

#[test]
fn a_port_in_use_names_the_remedy_once() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in [
        &["serve"][..],
        &["edge", "--origin", "http://127.0.0.1:9"],
        &["lab", "serve"],
    ] {
        let output = run_to_end(&[command, &["--listen", &address]].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {error}");
        assert!(
            error.contains("stop the program that uses the port, or choose another port"),
            "{command:?}: {error}"
        );
        assert_eq!(error.matches(&address).count(), 1, "{command:?}: {error}");
    }
}

#[test]
fn completions_for_a_reader_that_leaves_do_not_panic() {
    for shell in ["bash", "zsh", "fish"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = headwater(&["completions", shell])
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(text(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn completions_that_cannot_be_written_are_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = headwater(&["completions", "bash"])
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let error = text(&output.stderr);
    assert!(error.contains("cannot write the completions"), "{error}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_unknown_variable_is_a_warning_with_the_nearest_name() {
    let output = headwater(&["serve", "--print-config"])
        .env("HEADWATER_SEGMNT", "secret-value")
        .env("HEADWATER_MEMORY", "1GiB")
        .output()
        .unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("HEADWATER_SEGMNT"), "{error}");
    assert!(error.contains("did you mean HEADWATER_SEGMENT?"), "{error}");
    // A variable of the edge causes no warning, because all programs may share one environment.
    assert!(!error.contains("HEADWATER_MEMORY"), "{error}");
    assert!(!error.contains("secret-value"), "{error}");
}

#[test]
fn printed_settings_name_real_arguments() {
    let output = run_to_end(&["serve", "films", "--listen", "0", "--print-config"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("source = \"films\"  # SOURCE\n"), "{shown}");
    assert!(shown.contains("listen = [\"0\"]  # --listen\n"), "{shown}");
}

#[test]
fn insecure_is_a_plain_flag() {
    let folder = TempFolder::new();
    let file = folder.write_file("load.toml", b"insecure = true\n");
    let url = "https://127.0.0.1:9/";
    let config = ["--config", file.to_str().unwrap()];
    for (flags, shown) in [
        (&["--insecure", url][..], "insecure = \"yes\"  # --insecure"),
        (&["--insecure=no", url], "insecure = \"no\"  # --insecure"),
        (&[url], "insecure = \"no\"  # default"),
        (&config, "insecure = \"yes\"  # /"),
    ] {
        let args = [&["load", "rate", "--print-config"], flags].concat();
        let output = run_to_end(&args);
        let stdout = text(&output.stdout);
        assert!(stdout.contains(shown), "{flags:?}: {stdout}");
    }
}

/// Returns the options that a help text lists.
fn list_options(help: &str) -> Vec<&str> {
    let words = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("-h, ").unwrap_or(line);
        line.strip_prefix("--")
    });
    words
        .map(|line| line.split([' ', '[', '<']).next().unwrap())
        .collect()
}

#[test]
fn help_is_grouped_and_short_help_shows_a_dozen_options() {
    for (command, heading) in [("serve", "Remote storage:"), ("edge", "Origins:")] {
        let long = run_to_end(&[command, "--help"]);
        let long = text(&long.stdout);
        assert!(long.contains(&format!("\n{heading}\n")), "{long}");
        // Every option belongs to a topic, so the general list contains only `--help`.
        assert!(!long.contains("Other options"), "{long}");
        let general = long.split("\nOptions:\n").nth(1).unwrap();
        let general = general.split("\n\n").next().unwrap();
        assert_eq!(list_options(general), ["help"], "{general}");
        let short = run_to_end(&[command, "-h"]);
        let short = text(&short.stdout);
        let options = list_options(short);
        assert!((10..=15).contains(&options.len()), "{options:?}");
        assert!(options.len() < list_options(long).len() / 2);
        assert!(short.contains("--help` describes all options"), "{short}");
        assert!(short.lines().count() < 40, "{short}");
    }
}

#[test]
fn links_to_other_disks_are_followed_if_allowed() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let (library, disk) = (TempFolder::new(), TempFolder::new());
    std::fs::copy(&film, disk.0.join("film.mp4")).unwrap();
    std::os::unix::fs::symlink(&disk.0, library.0.join("disk2")).unwrap();
    let path = library.0.to_str().unwrap();
    let refusing = HeadwaterServer::serve(&[path]);
    let refused = refusing.get("/disk2/film.mp4/.m3u8");
    assert_eq!(refused.status, 403);
    assert!(text(&refused.body).contains("--follow-links"));
    let following = HeadwaterServer::serve(&[path, "--follow-links"]);
    let playlist = following.get_text("/disk2/film.mp4/.m3u8");
    assert!(playlist.starts_with("#EXTM3U"), "{playlist}");
    let list: serde_json::Value =
        serde_json::from_str(&following.get_text("/-/library.json")).unwrap();
    assert_eq!(list["titles"][0]["path"], "disk2/film.mp4");
}

#[test]
fn error_pages_contain_no_internal_words() {
    let folder = TempFolder::new();
    folder.write_file("broken.mp4", b"no film");
    let server = HeadwaterServer::serve(&[folder.0.to_str().unwrap()]);
    for target in ["/missing.mp4/.m3u8", "/broken.mp4/.m3u8", "/a/../b", "/%ff"] {
        let response = server.get(target);
        let body = text(&response.body);
        assert!(response.status >= 400 && !body.is_empty(), "{target}");
        for word in ["client;", "upstream;", "internal;"] {
            assert!(!body.contains(word), "{target}: {body}");
        }
    }
}
