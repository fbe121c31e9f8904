//! Caches the output of ffprobe and ffmpeg for files, because starting them takes most of the
//! time of these tests.
//!
//! An entry's name is a hash of the program's version, its arguments, the file's extension and the
//! file's content, so that an entry never has to be invalidated. Output for URLs is not cached,
//! because tests with URLs also test the requests that the program sends. Entries are in
//! `target/ffmpeg-output` and are removed when no test has read them for two weeks.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use std::{fs, io::Write};

const UNREAD_AGE_MAX: Duration = Duration::from_secs(14 * 24 * 3600);

/// Returns the standard output of `program`. `arguments` must include `input`. Panics if the
/// program fails, or reports an error for which `is_serious` returns true.
pub fn run_cached(
    program: &str,
    arguments: &[&str],
    input: &str,
    is_serious: impl Fn(&str) -> bool,
) -> Vec<u8> {
    let entry = entry_path(program, arguments, input);
    if let Some(stdout) = entry.as_deref().and_then(read_entry) {
        return stdout;
    }
    let output = run_program(program, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {input}: {errors}");
    let serious: Vec<_> = errors.lines().filter(|line| is_serious(line)).collect();
    assert!(serious.is_empty(), "{program} {input}: {serious:?}");
    if let Some(entry) = entry {
        write_entry(&entry, &output.stdout);
    }
    output.stdout
}

fn run_program(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the path of the entry for these arguments, or None if the input is not a file.
fn entry_path(program: &str, arguments: &[&str], input: &str) -> Option<PathBuf> {
    let content = fs::read(input).ok()?;
    let mut hasher = DefaultHasher::new();
    program_version(program).hash(&mut hasher);
    // Ignores the path of the input, because the path differs from run to run and does not occur in
    // the output.
    let others = arguments.iter().filter(|argument| **argument != input);
    others.collect::<Vec<_>>().hash(&mut hasher);
    Path::new(input).extension().hash(&mut hasher);
    content.hash(&mut hasher);
    let name = format!("{program}-{:016x}-{}", hasher.finish(), content.len());
    Some(cache_folder().join(name))
}

fn program_version(program: &str) -> &'static [u8] {
    static FFPROBE: OnceLock<Vec<u8>> = OnceLock::new();
    static FFMPEG: OnceLock<Vec<u8>> = OnceLock::new();
    let version = if program == "ffprobe" {
        &FFPROBE
    } else {
        &FFMPEG
    };
    version.get_or_init(|| run_program(program, &["-version"]).stdout)
}

/// Returns an entry's content, and marks the entry as read.
fn read_entry(path: &Path) -> Option<Vec<u8>> {
    let content = fs::read(path).ok()?;
    if let Ok(file) = fs::File::open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(content)
}

/// Writes a partial file and then renames the file, so that a concurrent test never reads an
/// incomplete entry.
fn write_entry(path: &Path, content: &[u8]) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let partial = path.with_extension(format!("{}-{count}.partial", std::process::id()));
    let mut file = fs::File::create(&partial).unwrap();
    file.write_all(content).unwrap();
    fs::rename(&partial, path).unwrap();
}

fn cache_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/ffmpeg-output");
        fs::create_dir_all(&folder).unwrap();
        remove_unread_entries(&folder);
        folder
    })
}

fn remove_unread_entries(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > UNREAD_AGE_MAX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[test]
fn entries_depend_on_content_and_arguments_only() {
    let folder = crate::support::TempFolder::new();
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.write_file(name, bytes).display().to_string();
        entry_path("true", &["-i", &path], &path).unwrap()
    };
    let first = path("a/film.mp4", b"one");
    assert_eq!(first, path("b/other.mp4", b"one"));
    assert_ne!(first, path("a/film.mp4", b"two"));
    assert_ne!(first, path("a/film.ts", b"one"));
    let input = folder
        .write_file("a/film.mp4", b"one")
        .display()
        .to_string();
    assert_ne!(first, entry_path("true", &["-x", &input], &input).unwrap());
    assert_eq!(entry_path("true", &[], "http://127.0.0.1/film.mp4"), None);
}

#[test]
fn stored_entries_are_read_back_whole() {
    let folder = crate::support::TempFolder::new();
    let entry = folder.0.join("ffprobe-0-0");
    assert_eq!(read_entry(&entry), None);
    write_entry(&entry, b"{}");
    assert_eq!(read_entry(&entry).as_deref(), Some(b"{}".as_slice()));
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        1,
        "no partial file"
    );
}
