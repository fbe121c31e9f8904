//! Tests `headwater check` for files, folders and URLs: text, JSON and exit codes.

use crate::support::{HeadwaterServer, TempFolder, fixture_path, fixtures_folder};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

struct CheckOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run_check(args: &[&str]) -> CheckOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let output = command.arg("check").args(args).output().unwrap();
    CheckOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns the titles of the `--json` report.
fn parse_titles(output: &CheckOutput) -> Vec<Value> {
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    document["titles"].as_array().unwrap().clone()
}

/// Returns the level and the text of each finding about a title.
fn list_findings(title: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = title["findings"].as_array().unwrap().iter();
    findings
        .map(|f| (text(&f["level"]), text(&f["what"])))
        .collect()
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_good_film_is_described_without_findings() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let output = run_check(&[path_text(&film)]);
    assert_eq!((output.code, &*output.stderr), (Some(0), ""));
    for part in [
        "10.000 s",
        "320x180",
        "avc1.",
        "mp4a.40.2",
        "no problems found",
    ] {
        assert!(
            output.stdout.contains(part),
            "{part} is not in\n{}",
            output.stdout
        );
    }
    let output = run_check(&[path_text(&film), "--json", "--segment", "2s"]);
    assert_eq!((output.code, &*output.stderr), (Some(0), ""));
    let titles = parse_titles(&output);
    assert_eq!(titles.len(), 1);
    assert_eq!(titles[0]["duration_s"], 10.0);
    assert_eq!(titles[0]["renditions"][0]["segments"], 5);
    assert_eq!(list_findings(&titles[0]), []);
}

#[test]
fn unaligned_key_frames_are_reported_with_a_remedy() {
    let Some(folder) = fixture_path("unaligned") else {
        return;
    };
    for segment in ["2s", "6s"] {
        let output = run_check(&[path_text(&folder), "--segment", segment]);
        // The title is playable, so the finding is not an error.
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let words = "aligned with those of video=";
        assert!(
            output.stdout.contains(words),
            "{segment}:\n{}",
            output.stdout
        );
        assert!(
            output.stdout.contains("-keyint_min"),
            "no remedy:\n{}",
            output.stdout
        );
    }
    let Some(folder) = fixture_path("ladder") else {
        return;
    };
    let output = run_check(&[path_text(&folder)]);
    assert!(!output.stdout.contains("aligned"), "{}", output.stdout);
}

#[test]
fn unsupported_films_are_reported_as_errors() {
    let Some(bad) = fixtures_folder().map(|f| f.join("bad")) else {
        return;
    };
    let film = std::fs::read(bad.join("good.mp4")).unwrap();
    let folder = TempFolder::new();
    let cut = folder.write_file("cut.mp4", &film[..film.len() / 2]);
    let pcm = bad.join("pcm.mov");
    for (file, word) in [(&cut, ""), (&pcm, "sowt")] {
        let output = run_check(&[path_text(file)]);
        assert_eq!(output.code, Some(1), "{}", output.stdout);
        assert!(
            output.stdout.contains("error: ") && output.stdout.contains(word),
            "{}",
            output.stdout
        );
        let output = run_check(&[path_text(file), "--json"]);
        assert_eq!(output.code, Some(1));
        let found = list_findings(&parse_titles(&output)[0]);
        assert!(found.len() == 1 && found[0].0 == "error", "{found:?}");
    }
    // If one of several films is bad, all films are reported and the command fails.
    folder.write_file("film.mp4", &film);
    let output = run_check(&[path_text(&folder.0), "--json"]);
    assert_eq!(output.code, Some(1));
    let levels: Vec<_> = parse_titles(&output)
        .iter()
        .map(|t| list_findings(t).len())
        .collect();
    assert_eq!(levels, [1, 0], "{}", output.stdout);
}

#[test]
fn a_folder_is_checked_as_one_title_or_several() {
    let Some(ladder) = fixture_path("ladder") else {
        return;
    };
    let output = run_check(&[path_text(&ladder), "--json"]);
    let one = parse_titles(&output);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["renditions"].as_array().unwrap().len(), 5);
    // Films in different folders are separate titles, at any depth.
    let (folder, film) = (
        TempFolder::new(),
        std::fs::read(ladder.join("v1_180p.mp4")).unwrap(),
    );
    for name in ["one/film.mp4", "more/two/film.mp4", "notes.txt"] {
        folder.write_file(name, &film);
    }
    let output = run_check(&[path_text(&folder.0), "--json"]);
    let mut names: Vec<_> = parse_titles(&output)
        .iter()
        .map(|t| t["title"].to_string())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2);
    assert!(
        names[0].contains("more/two/film.mp4") && names[1].contains("one/film.mp4"),
        "{names:?}"
    );
}

#[test]
fn a_folder_has_the_titles_of_the_library_list() {
    let (Some(film), Some(ladder)) = (fixture_path("avc.mp4"), fixture_path("ladder")) else {
        return;
    };
    let folder = TempFolder::new();
    for rung in ["v1_180p.mp4", "v2_270p.mp4", "a_eng.mp4"] {
        folder.write_file(
            &format!("renditions/{rung}"),
            &std::fs::read(ladder.join(rung)).unwrap(),
        );
    }
    // Films of equal duration, frame size and bitrate look like renditions, but are no bitrate
    // ladder.
    for name in ["series/e1.mp4", "series/e2.mp4"] {
        folder.write_file(name, &std::fs::read(&film).unwrap());
    }
    let output = run_check(&[path_text(&folder.0), "--json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let prefix = format!("{}/", path_text(&folder.0));
    let names = parse_titles(&output);
    let names = names.iter().map(|t| t["title"].as_str().unwrap());
    let mut checked: Vec<_> = names.map(|name| name.replace(&prefix, "")).collect();
    checked.sort();
    let server = HeadwaterServer::serve_source(&folder.0);
    let list: Value = serde_json::from_str(&server.get_text("/-/library.json")).unwrap();
    let listed = list["titles"].as_array().unwrap().iter();
    let mut listed: Vec<_> = listed.map(|t| t["path"].as_str().unwrap()).collect();
    listed.sort_unstable();
    assert_eq!(checked, listed);
    assert_eq!(checked, ["renditions", "series/e1.mp4", "series/e2.mp4"]);
}

#[test]
fn links_out_of_a_folder_are_reported_until_they_are_followed() {
    let Some(film) = fixture_path("short.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    let link = folder.0.join("far.mp4");
    std::os::unix::fs::symlink(&film, &link).unwrap();
    let words = "far.mp4 is a link out of the library; allow it with --follow-links";
    let output = run_check(&[path_text(&folder.0)]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stderr.contains(words), "{}", output.stderr);
    let server = HeadwaterServer::serve_source(&folder.0);
    let list: Value = serde_json::from_str(&server.get_text("/-/library.json")).unwrap();
    assert_eq!(
        (&list["titles"], &list["ignored"]["count"]),
        (&json!([]), &json!(1))
    );
    assert_eq!(list["ignored"]["first"][0]["file"], "far.mp4");
    for target in [&folder.0, &link] {
        let output = run_check(&[path_text(target), "--follow-links", "--json"]);
        assert_eq!((output.code, &*output.stderr), (Some(0), ""));
        assert_eq!(parse_titles(&output).len(), 1);
    }
}

#[test]
fn a_url_is_checked_like_the_file() {
    let Some(folder) = fixture_path("unaligned") else {
        return;
    };
    let Some(fragmented) = fixture_path("frag_mfra.mp4") else {
        return;
    };
    let server = HeadwaterServer::serve_source(folder.parent().unwrap());
    for (file, target) in [
        (folder.join("a.mp4"), "/unaligned/a.mp4"),
        (fragmented, "/frag_mfra.mp4"),
    ] {
        let url = server.url(target);
        for json in [&[][..], &["--json"]] {
            let here = run_check(&[&[path_text(&file)], json].concat());
            let there = run_check(&[&[&*url], json].concat());
            assert_eq!(there.code, here.code, "{}", there.stderr);
            assert_eq!(there.stdout.replace(&url, path_text(&file)), here.stdout);
        }
    }
}

#[test]
fn urls_of_manifests_are_refused_with_a_reason() {
    let Some(film) = fixture_path("avc.mp4") else {
        return;
    };
    let server = HeadwaterServer::serve_source(&film);
    let whole = start_server_without_ranges();
    for (url, words) in [
        (
            server.url("/.m3u8"),
            "a manifest; give the URL of the film itself",
        ),
        (
            server.url("/.mpd"),
            "a manifest; give the URL of the film itself",
        ),
        (server.url("/nothing.mp4"), "no such file"),
        (whole, "the storage ignores Range"),
        ("http://[".to_owned(), "not a URL"),
    ] {
        let output = run_check(&[&url]);
        assert_eq!((output.code, &*output.stdout), (Some(1), ""), "{url}");
        assert!(
            output.stderr.contains(words) && output.stderr.contains(&url),
            "{}",
            output.stderr
        );
    }
}

/// Starts a server that responds to one request with the whole file and ignores the range.
fn start_server_without_ranges() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/film.mp4", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfilm");
    });
    url
}

#[test]
fn missing_films_exit_with_1_and_bad_arguments_with_2() {
    let folder = TempFolder::new();
    let gone = folder.0.join("gone.mp4");
    for (args, code, words) in [
        (&[path_text(&gone)][..], 1, "o such file"),
        (&[path_text(&folder.0)], 1, "no film found"),
        (&[], 2, "Usage"),
        (
            &[path_text(&folder.0), "--segment", "soon"],
            2,
            "expected a duration",
        ),
        (&[path_text(&folder.0), "--nonsense"], 2, "--nonsense"),
    ] {
        let output = run_check(args);
        assert_eq!((output.code, &*output.stdout), (Some(code), ""), "{args:?}");
        assert!(output.stderr.contains(words), "{args:?}: {}", output.stderr);
    }
}

/// Makes a folder with a good film, films that are rejected for different reasons, and a film that
/// is not MP4.
fn mixed_folder() -> Option<TempFolder> {
    let bad = fixtures_folder().map(|folder| folder.join("bad"))?;
    let folder = TempFolder::new();
    let film = std::fs::read(bad.join("good.mp4")).unwrap();
    folder.write_file("a/fine.mp4", &film);
    folder.write_file("b/cut.mp4", &film[..film.len() / 2]);
    folder.write_file("c/empty.mp4", b"");
    folder.write_file(
        "d/really.mp4",
        &[0x1a, 0x45, 0xdf, 0xa3, 1, 2, 3, 4, 5, 6, 7, 8],
    );
    folder.write_file("e/sound.mov", &std::fs::read(bad.join("pcm.mov")).unwrap());
    folder.write_file(
        "f/pictures.mp4",
        &std::fs::read(bad.join("mpeg4.mp4")).unwrap(),
    );
    folder.write_file("g/the x.mkv", b"not looked at");
    folder.write_file("g/notes.txt", b"not a film");
    Some(folder)
}

#[test]
fn each_kind_of_fault_has_its_own_remedy() {
    let Some(folder) = mixed_folder() else {
        return;
    };
    let output = run_check(&[path_text(&folder.0)]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let remedy_of = |name: &str| {
        let found = output.stdout.split("\nerror: ").find(|part| {
            let place = part.split(": ").next().unwrap();
            place.ends_with(name)
        });
        let found = found.unwrap_or_else(|| panic!("no error of {name}: {}", output.stdout));
        found
            .split("  do: ")
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap()
    };
    for (name, part) in [
        ("cut.mp4", "its end is missing"),
        ("empty.mp4", "copy the film again"),
        ("really.mp4", "remux with `ffmpeg -i really.mp4 -c copy"),
        ("sound.mov", "`ffmpeg -i sound.mov -c:v copy -c:a aac"),
        ("pictures.mp4", "`ffmpeg -i pictures.mp4 -c:v libx264"),
    ] {
        let remedy = remedy_of(name);
        assert!(remedy.contains(part), "{name}: {remedy}");
    }
}

#[test]
fn a_folder_ends_with_a_summary() {
    let Some(folder) = mixed_folder() else {
        return;
    };
    let output = run_check(&[path_text(&folder.0)]);
    let last = output.stdout.lines().last().unwrap();
    let counts =
        "6 titles: 1 fine, 0 with warnings, 5 rejected, 1 ignored: g/the x.mkv is not MP4; ";
    assert!(last.starts_with(counts), "{last}");
    assert!(last.contains("remux with `ffmpeg -i 'the x.mkv'"), "{last}");
    let output = run_check(&[path_text(&folder.0), "--json"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["ignored"][0]["file"], "g/the x.mkv");
    // Checks the folder of this film, which contains no other film, and then the film itself.
    let other = folder.0.join("g");
    for target in [path_text(&other), path_text(&other.join("the x.mkv"))] {
        let output = run_check(&[target]);
        assert_eq!(output.code, Some(1));
        assert!(
            output.stderr.contains("the x.mkv is not MP4"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn colors_are_for_terminals_only() {
    let Some(bad) = fixtures_folder().map(|folder| folder.join("bad")) else {
        return;
    };
    let film = bad.join("pcm.mov");
    let piped = run_check(&[path_text(&film)]);
    assert!(!piped.stdout.contains('\x1b'), "{}", piped.stdout);
    // `script` runs a command in a new terminal.
    let line = format!(
        "{} check {}",
        env!("CARGO_BIN_EXE_headwater"),
        path_text(&film)
    );
    let in_terminal = |variable: &str| {
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm");
        command.env_remove("NO_COLOR").env(variable, "1").output()
    };
    let Ok(shown) = in_terminal("ANOTHER") else {
        return crate::support::report_skip("no script to open a terminal");
    };
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\x1b[1;31merror:\x1b[0m "), "{shown:?}");
    let plain = in_terminal("NO_COLOR").unwrap().stdout;
    assert!(!String::from_utf8_lossy(&plain).contains('\x1b'));
}

#[test]
fn video_that_begins_after_its_audio_is_reported_with_the_effect_on_hls_js() {
    let Some(film) = fixture_path("video_late.mp4") else {
        return;
    };
    let output = run_check(&["--json", path_text(&film)]);
    let findings = list_findings(&parse_titles(&output)[0]);
    let hint = |(level, what): &(String, String)| {
        level == "hint" && what.contains("starts 0.700 s") && what.contains("hls.js skips")
    };
    assert!(findings.iter().any(hint), "{findings:?}");
}
