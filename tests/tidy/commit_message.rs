//! Checks `scripts/commit-msg`, which `make quick` installs as a hook.

use super::root;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const REASON: &str = "The writer looked each address up under a mutex.";

#[test]
fn good_messages_are_accepted() {
    for subject in [
        "net: carry body parts to the response writer",
        "Press on: process every frame",
        "make quick: cache the output of ffprobe",
        &format!("net: {}", "a".repeat(67)),
    ] {
        let output = check_message(&format!("{subject}\n\n{REASON}\n"));
        assert!(output.status.success(), "{subject}: {output:?}");
    }
}

#[test]
fn merges_reverts_and_fixups_are_exempt() {
    for message in ["Merge main\n", "Revert \"net: x\"\n", "fixup! net: carry\n"] {
        assert!(check_message(message).status.success(), "{message}");
    }
}

#[test]
fn bad_messages_are_refused_with_the_reason() {
    for (message, reason) in [
        (
            format!("net: {}\n\n{REASON}\n", "a".repeat(68)),
            "73 characters",
        ),
        (
            format!("Keys have one spelling\n\n{REASON}\n"),
            "imperative",
        ),
        (
            format!("net: carried body parts\n\n{REASON}\n"),
            "imperative",
        ),
        (format!("net: carry body parts.\n\n{REASON}\n"), "period"),
        (format!("net: carry body parts\n{REASON}\n"), "not blank"),
        ("net: carry body parts\n".into(), "body is missing"),
        (
            "net: carry body parts\n\n# A comment that is no reason.\n".into(),
            "body is missing",
        ),
        (
            "net: carry body parts\n\nSigned-off-by: A Name <a@b.example>\n".into(),
            "body is missing",
        ),
    ] {
        let output = check_message(&message);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(errors.contains(reason), "{message}: {errors}");
    }
}

fn check_message(message: &str) -> Output {
    // The script reads the message from standard input, so that the test has no file to remove. The
    // script runs outside of a repository, where no merge can be in progress.
    let mut child = Command::new(root().join("scripts/commit-msg"))
        .arg("/dev/stdin")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(message.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_installed_hook_checks_commits_and_replaces_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("scripts");
    std::fs::create_dir(&scripts).unwrap();
    for name in ["hooks.sh", "commit-msg"] {
        std::fs::copy(root().join("scripts").join(name), scripts.join(name)).unwrap();
    }
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(folder.path()).args(arguments);
        // Ignores the Git settings of the machine, such as another folder for hooks.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_CONFIG_SYSTEM", "/dev/null");
        for (name, value) in [("NAME", "A"), ("EMAIL", "a@b.example")] {
            command.env(format!("GIT_AUTHOR_{name}"), value);
            command.env(format!("GIT_COMMITTER_{name}"), value);
        }
        command.output().unwrap()
    };
    assert!(run("git", &["init", "--quiet"]).status.success());
    let install = || run("scripts/hooks.sh", &[]);
    assert!(install().status.success());
    let commit = |message: &str| run("git", &["commit", "--allow-empty", "-m", message]);
    assert_eq!(commit("Added a hook").status.code(), Some(1));
    let accepted = commit(&format!("Add a hook\n\n{REASON}"));
    assert!(accepted.status.success(), "{accepted:?}");

    let hook = folder.path().join(".git/hooks/commit-msg");
    let installed = std::fs::read(&hook).unwrap();
    assert!(install().status.success());
    assert_eq!(std::fs::read(&hook).unwrap(), installed, "installed once");
    std::fs::write(&hook, "#!/bin/sh\nexit 0\n").unwrap();
    let other = install();
    assert!(other.status.success());
    let warning = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(warning.contains("SKIPPED commit-msg hook"), "{warning}");
    assert_eq!(
        std::fs::read_to_string(&hook).unwrap(),
        "#!/bin/sh\nexit 0\n"
    );

    // A folder for the hooks of several clones is left alone.
    let shared = folder.path().join("shared");
    let configured = run(
        "git",
        &["config", "core.hooksPath", shared.to_str().unwrap()],
    );
    assert!(configured.status.success());
    let warning = String::from_utf8_lossy(&install().stderr).into_owned();
    assert!(warning.contains("core.hooksPath is set"), "{warning}");
    assert!(!shared.exists());
}
