//! Encrypts films with ffmpeg and the reference packager, and decrypts frames with ffmpeg.

use super::keys::segments;
use super::{TestServer, demo_folder};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub const KEY: &str = "000102030405060708090a0b0c0d0e0f";
pub const KEY_ID: &str = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";
pub const UUID: &str = "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf";

pub fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(&program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{:?}: {error}", program.as_ref()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    output.stdout
}

/// Runs a program with `input` as its standard input. Returns the standard output of the program.
/// If the program fails or stops reading before the end of the input, returns its errors.
pub fn run_with_input(
    program: &str,
    arguments: &[&str],
    input: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let written = writer.join().unwrap();
    match output.status.success() && written.is_ok() {
        true => Ok(output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

pub fn has_ffmpeg() -> bool {
    let found = Command::new("ffmpeg").arg("-version").output().is_ok();
    if !found {
        println!("SKIPPED: ffmpeg is not installed");
    }
    found
}

/// Writes a film with video and audio, encrypted with `cenc`.
pub fn encrypt_film(out: &Path) {
    let flags = [
        "-encryption_scheme",
        "cenc-aes-ctr",
        "-encryption_key",
        KEY,
        "-encryption_kid",
        KEY_ID,
    ];
    copy_demo(out, &flags);
}

/// Writes the film of [`encrypt_film`] without encryption.
pub fn join_film(out: &Path) {
    copy_demo(out, &[]);
}

fn copy_demo(out: &Path, flags: &[&str]) {
    let video = demo_folder().join("video-180p.mp4");
    let audio = demo_folder().join("audio-eng.m4a");
    let (video, audio) = (video.to_str().unwrap(), audio.to_str().unwrap());
    let inputs = [
        "-v", "error", "-i", video, "-i", audio, "-map", "0:v", "-map", "1:a", "-c", "copy",
    ];
    let out = [out.to_str().unwrap()];
    run("ffmpeg", &[&inputs[..], flags, &out].concat());
}

/// Serves a folder with `film.mp4`, which `make` writes.
pub fn serve_film(flags: &[&str], make: impl FnOnce(&Path)) -> TestServer {
    let root = tempfile::tempdir().unwrap();
    make(&root.path().join("film.mp4"));
    TestServer::from_folder(root, &[&["--segment", "2s"], flags].concat())
}

/// Returns the concatenated init segment and media segments of a media playlist.
pub fn join_segments(server: &TestServer, playlist: &str) -> Vec<u8> {
    let parts = segments(server, playlist).into_iter().map(|url| {
        let response = server.get(&url);
        assert_eq!(response.status, 200, "{url}");
        response.body
    });
    parts.collect::<Vec<_>>().concat()
}

/// Returns the hashes of the decoded frames of a media playlist.
pub fn frame_hashes(server: &TestServer, playlist: &str, key: Option<&str>) -> Vec<String> {
    let hashes = try_frame_hashes(server, playlist, key);
    hashes.unwrap_or_else(|errors| panic!("{playlist}: {errors}"))
}

/// Returns the hashes of the decoded frames of a media playlist, or the errors of ffmpeg.
pub fn try_frame_hashes(
    server: &TestServer,
    playlist: &str,
    key: Option<&str>,
) -> Result<Vec<String>, String> {
    let key = key.map_or(Vec::new(), |key| vec!["-decryption_key", key]);
    let input = ["-i", "-", "-fps_mode", "passthrough", "-f", "framemd5", "-"];
    // FFmpeg reads from a pipe, because a pipe is not seekable. From seekable input, FFmpeg 5 would
    // use the `senc` of the last fragment to decrypt all fragments.
    let text = run_with_input(
        "ffmpeg",
        &[&["-v", "error"], &key[..], &input].concat(),
        join_segments(server, playlist),
    );
    let text = String::from_utf8(text?).unwrap();
    let frames = text.lines().filter(|line| !line.starts_with('#'));
    Ok(frames
        .map(|line| line.rsplit(',').next().unwrap().trim().to_owned())
        .collect())
}

/// Encrypts the demo film with the reference packager (`scripts/packager.sh`). Returns `None` if
/// the packager is not installed.
pub fn package(out: &Path, scheme: &str) -> Option<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packager = root.join("target/packager/packager");
    if !packager.exists() {
        println!("SKIPPED: scripts/packager.sh has not run");
        return None;
    }
    let input = demo_folder().join("video-180p.mp4");
    let stream = format!(
        "in={},stream=video,output={}",
        input.display(),
        out.display()
    );
    let keys = format!("label=:key_id={KEY_ID}:key={KEY}");
    let scheme = format!("--protection_scheme={scheme}");
    let systems = "--protection_systems=Widevine,PlayReady,CommonSystem";
    run(
        packager,
        &[
            &stream,
            "--enable_raw_key_encryption",
            "--keys",
            &keys,
            &scheme,
            systems,
            "--clear_lead=0",
        ],
    );
    Some(())
}
