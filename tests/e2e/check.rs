//! `headwater check` as people and scripts meet it: words, JSON, exit codes, files and URLs.

use crate::support::{Folder, Server, fixture, fixtures};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// How it ended, what it said, and what it complained of.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn check(args: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let output = command.arg("check").args(args).output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The titles of `--json`.
fn titles(said: &Said) -> Vec<Value> {
    let document: Value = serde_json::from_str(&said.out).unwrap();
    document["titles"].as_array().unwrap().clone()
}

/// Level and words of each finding of a title.
fn findings(title: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = title["findings"].as_array().unwrap().iter();
    findings
        .map(|f| (text(&f["level"]), text(&f["what"])))
        .collect()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_good_film_has_facts_and_no_findings() {
    let Some(film) = fixture("avc.mp4") else {
        return;
    };
    let said = check(&[path(&film)]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    for part in [
        "10.000 s",
        "320x180",
        "avc1.",
        "mp4a.40.2",
        "nothing to stumble over",
    ] {
        assert!(said.out.contains(part), "{part} is not in\n{}", said.out);
    }
    let said = check(&[path(&film), "--json", "--segment", "2s"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    let titles = titles(&said);
    assert_eq!(titles.len(), 1);
    assert_eq!(titles[0]["duration_s"], 10.0);
    assert_eq!(titles[0]["renditions"][0]["segments"], 5);
    assert_eq!(findings(&titles[0]), []);
}

#[test]
fn key_frames_that_do_not_line_up_are_said() {
    let Some(folder) = fixture("unaligned") else {
        return;
    };
    for segment in ["2s", "6s"] {
        let said = check(&[path(&folder), "--segment", segment]);
        // It plays, so it is no error.
        assert_eq!(said.code, Some(0), "{}", said.err);
        let words = "line up with those of video=";
        assert!(said.out.contains(words), "{segment}:\n{}", said.out);
        assert!(said.out.contains("-keyint_min"), "no remedy:\n{}", said.out);
    }
    let Some(folder) = fixture("ladder") else {
        return;
    };
    let said = check(&[path(&folder)]);
    assert!(!said.out.contains("line up"), "{}", said.out);
}

#[test]
fn what_cannot_be_packaged_is_an_error() {
    let Some(bad) = fixtures().map(|f| f.join("bad")) else {
        return;
    };
    let film = std::fs::read(bad.join("good.mp4")).unwrap();
    let folder = Folder::new();
    let cut = folder.put("cut.mp4", &film[..film.len() / 2]);
    let pcm = bad.join("pcm.mov");
    for (file, word) in [(&cut, ""), (&pcm, "sowt")] {
        let said = check(&[path(file)]);
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(
            said.out.contains("error: ") && said.out.contains(word),
            "{}",
            said.out
        );
        let said = check(&[path(file), "--json"]);
        assert_eq!(said.code, Some(1));
        let found = findings(&titles(&said)[0]);
        assert!(found.len() == 1 && found[0].0 == "error", "{found:?}");
    }
    // One bad film among good ones: all are told of, and it fails.
    folder.put("film.mp4", &film);
    let said = check(&[path(&folder.0), "--json"]);
    assert_eq!(said.code, Some(1));
    let levels: Vec<_> = titles(&said).iter().map(|t| findings(t).len()).collect();
    assert_eq!(levels, [1, 0], "{}", said.out);
}

#[test]
fn a_folder_is_one_title_or_several() {
    let Some(ladder) = fixture("ladder") else {
        return;
    };
    let said = check(&[path(&ladder), "--json"]);
    let one = titles(&said);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["renditions"].as_array().unwrap().len(), 5);
    // Films in folders of their own, at any depth.
    let (folder, film) = (
        Folder::new(),
        std::fs::read(ladder.join("v1_180p.mp4")).unwrap(),
    );
    for name in ["one/film.mp4", "more/two/film.mp4", "notes.txt"] {
        folder.put(name, &film);
    }
    let said = check(&[path(&folder.0), "--json"]);
    let mut names: Vec<_> = titles(&said)
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
fn a_film_on_a_server_is_judged_like_the_file() {
    let Some(folder) = fixture("unaligned") else {
        return;
    };
    let Some(fragmented) = fixture("frag_mfra.mp4") else {
        return;
    };
    let server = Server::of(folder.parent().unwrap());
    for (file, target) in [
        (folder.join("a.mp4"), "/unaligned/a.mp4"),
        (fragmented, "/frag_mfra.mp4"),
    ] {
        let url = server.url(target);
        for json in [&[][..], &["--json"]] {
            let here = check(&[&[path(&file)], json].concat());
            let there = check(&[&[&*url], json].concat());
            assert_eq!(there.code, here.code, "{}", there.err);
            assert_eq!(there.out.replace(&url, path(&file)), here.out);
        }
    }
}

#[test]
fn urls_of_something_else_are_refused_in_words() {
    let Some(film) = fixture("avc.mp4") else {
        return;
    };
    let server = Server::of(&film);
    let whole = server_without_ranges();
    for (url, words) in [
        (
            server.url("/.m3u8"),
            "a manifest; give the URL of the film itself",
        ),
        (
            server.url("/.mpd"),
            "a manifest; give the URL of the film itself",
        ),
        (server.url("/nothing.mp4"), "404"),
        (whole, "the server does not answer ranges"),
        ("http://[".to_owned(), "not a URL"),
    ] {
        let said = check(&[&url]);
        assert_eq!((said.code, &*said.out), (Some(1), ""), "{url}");
        assert!(
            said.err.contains(words) && said.err.contains(&url),
            "{}",
            said.err
        );
    }
}

/// A server that answers one request with a whole file, whatever was asked.
fn server_without_ranges() -> String {
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
fn nothing_to_check_is_1_and_wrong_words_are_2() {
    let folder = Folder::new();
    let gone = folder.0.join("gone.mp4");
    for (args, code, words) in [
        (&[path(&gone)][..], 1, "No such file"),
        (&[path(&folder.0)], 1, "no film in it"),
        (&[], 2, "Usage"),
        (&[path(&folder.0), "--segment", "soon"], 2, "a duration is"),
        (&[path(&folder.0), "--nonsense"], 2, "--nonsense"),
    ] {
        let said = check(args);
        assert_eq!((said.code, &*said.out), (Some(code), ""), "{args:?}");
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
}
