//! Bad files, bad URLs and files that change while served: each has its answer, and the server
//! is still there afterwards.

use crate::hls;
use crate::support::{Folder, Response, Server, fixture, fixtures, skip};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};

/// The short film that faults are put into.
fn good(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(fixtures()?.join("bad").join(name)).unwrap())
}

/// Where a box's four-letter code stands; its size lies four bytes before, its body four after.
fn find(bytes: &[u8], code: &[u8; 4]) -> usize {
    let found = bytes.windows(4).position(|w| w == code);
    found.unwrap_or_else(|| panic!("no {}", String::from_utf8_lossy(code)))
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Top-level boxes as (code, start, end).
fn top(bytes: &[u8]) -> Vec<(String, usize, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while at + 8 <= bytes.len() {
        let size = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let code = String::from_utf8_lossy(&bytes[at + 4..at + 8]).into_owned();
        found.push((code, at, at + size));
        at += size;
    }
    found
}

fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..depth {
        let mut outer = (bytes.len() as u32 + 8).to_be_bytes().to_vec();
        outer.extend(b"moov");
        outer.extend(&bytes);
        bytes = outer;
    }
    bytes
}

/// A film whose one fault is made by `fault`.
fn with(good: &[u8], fault: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = good.to_vec();
    fault(&mut bytes);
    bytes
}

/// Broken and unsupported files: refused as what they are, with words that help.
#[test]
fn broken_files_are_refused_in_words() {
    let (Some(film), Some(pcm), Some(mpeg4)) =
        (good("good.mp4"), good("pcm.mov"), good("mpeg4.mp4"))
    else {
        return;
    };
    // Offsets count from the box's code: -4 is its size, 4 its version and flags.
    let set = |code: &'static [u8; 4], offset: isize, value: u32| {
        with(&film, |b| {
            let at = find(b, code).strict_add_signed(offset);
            put32(b, at, value);
        })
    };
    let without = |code: &str| -> Vec<u8> {
        let boxes = top(&film).into_iter().filter(|(c, ..)| c != code);
        boxes.flat_map(|(_, a, b)| film[a..b].to_vec()).collect()
    };
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty.mp4", vec![], "empty"),
        (
            "garbage.mp4",
            (0..9999u32).map(|n| ((n * n) >> 3) as u8).collect(),
            "",
        ),
        ("text.mp4", b"This is not a film.\n".repeat(50), ""),
        ("only_ftyp.mp4", film[..top(&film)[0].2].to_vec(), "moov"),
        ("no_moov.mp4", without("moov"), "moov"),
        ("no_mdat.mp4", without("mdat"), ""),
        ("zero_timescale.mp4", set(b"mdhd", 16, 0), "timescale"),
        ("many_samples.mp4", set(b"stsz", 12, u32::MAX), "stsz"),
        ("many_runs.mp4", set(b"stts", 8, u32::MAX), "stts"),
        ("many_chunks.mp4", set(b"stco", 8, u32::MAX), "stco"),
        ("beyond.mp4", set(b"stco", 12, 0x7fff_0000), ""),
        ("small_box.mp4", set(b"moov", -4, 4), ""),
        ("large_box.mp4", set(b"trak", -4, 0x7fff_ffff), ""),
        ("deep.mp4", [&film[..32], &nested(1000)].concat(), ""),
        ("no_key_frame.mp4", set(b"stss", 8, 0), "key"),
        ("pcm.mov", pcm, "sowt"),
        ("mpeg4.mp4", mpeg4, "mp4v"),
    ];
    let folder = Folder::new();
    for (name, bytes, ..) in &rows {
        folder.put(name, bytes);
    }
    folder.put("good.mp4", &film);
    let mut server = Server::of(&folder.0);
    for (name, _, word) in &rows {
        for manifest in [".m3u8", ".mpd", ".json"] {
            let answer = server.get(&format!("/{name}/{manifest}"));
            let reason = answer.reason();
            assert!(
                REFUSED.contains(&answer.status),
                "{name}/{manifest}: {reason}"
            );
            let error = answer.header("headwater-error").expect(name);
            assert!(error.contains(word), "{name}: {error} does not say {word}");
        }
    }
    // Bad neighbours hurt nobody.
    server.body("/good.mp4/.m3u8");
    assert!(server.alive());
}

/// A source that is not what it should be: broken, or of a kind that is not packaged.
const REFUSED: [u16; 1] = [415];

/// Cut anywhere, a file is refused, or all that its manifests list is served in full.
#[test]
fn truncation_at_every_box_is_survived() {
    let (Some(film), Some(fragmented)) = (good("good.mp4"), good("good_frag.mp4")) else {
        return;
    };
    let folder = Folder::new();
    let mut names = Vec::new();
    for (kind, bytes) in [("film", &film), ("frag", &fragmented)] {
        for (number, (code, start, end)) in top(bytes).into_iter().enumerate() {
            for cut in [start + 4, start + 8, (start + end) / 2, end] {
                let name = format!("{kind}_{number}_{code}_{cut}.mp4");
                folder.put(&name, &bytes[..cut.min(bytes.len())]);
                names.push(name);
            }
        }
    }
    let mut server = Server::of(&folder.0);
    for name in names {
        let answer = server.get(&format!("/{name}/.m3u8"));
        if answer.status == 200 {
            everything_listed_is_served(&server, &name);
        } else {
            assert!(
                REFUSED.contains(&answer.status),
                "{name}: {}",
                answer.reason()
            );
        }
    }
    assert!(server.alive());
}

fn everything_listed_is_served(server: &Server, name: &str) {
    for playlist in hls::media_playlists(server, &format!("/{name}/.m3u8")) {
        let media = hls::media(server, &playlist);
        assert!(!media.segments.is_empty(), "{playlist}");
        for (_, segment) in media.segments {
            assert_full(&server.get(&segment), &segment);
        }
    }
}

fn assert_full(answer: &Response, target: &str) {
    assert_eq!(answer.status, 200, "{target}: {}", answer.reason());
    let length = answer.header("content-length").unwrap();
    assert_eq!(length, answer.body.len().to_string(), "{target} was cut");
    assert!(!answer.body.is_empty(), "{target}");
}

/// A track with no samples at all is left out; a film of nothing but such tracks is refused.
#[test]
fn empty_tracks_are_left_out() {
    let Some(film) = good("good.mp4") else { return };
    let empty = |bytes: &mut Vec<u8>, from: usize| {
        for (code, offset) in [(b"stts", 8), (b"stsc", 8), (b"stsz", 12), (b"stco", 8)] {
            let at = from + find(&bytes[from..], code) + offset;
            put32(bytes, at, 0);
        }
    };
    let first = find(&film, b"stbl");
    let second = first + 4 + find(&film[first + 4..], b"stbl");
    let folder = Folder::new();
    folder.put(
        "all.mp4",
        &with(&film, |b| {
            empty(b, first);
            empty(b, second);
        }),
    );
    folder.put("sound.mp4", &with(&film, |b| empty(b, second)));
    let server = Server::of(&folder.0);
    let answer = server.get("/all.mp4/.m3u8");
    assert!(REFUSED.contains(&answer.status), "{}", answer.reason());
    let answer = server.get("/sound.mp4/.m3u8");
    if answer.status == 200 {
        everything_listed_is_served(&server, "sound.mp4");
    } else {
        assert!(REFUSED.contains(&answer.status), "{}", answer.reason());
    }
}

#[test]
fn no_url_leaves_the_library() {
    let Some(film) = good("good.mp4") else { return };
    let folder = Folder::new();
    folder.put("outside.mp4", &film);
    folder.put("library/good.mp4", &film);
    let library = folder.0.join("library");
    symlink(folder.0.join("outside.mp4"), library.join("link.mp4")).unwrap();
    symlink(&folder.0, library.join("up")).unwrap();
    let mut server = Server::of(&library);
    for target in [
        "/../outside.mp4",
        "/../outside.mp4/.m3u8",
        "/%2e%2e/outside.mp4",
        "/%2E%2e/outside.mp4/.m3u8",
        "/..%2foutside.mp4",
        "/good.mp4/../../outside.mp4",
        "/.%2e/.%2e/.%2e/.%2e/etc/passwd",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/..\\outside.mp4",
        "/%5c..%5coutside.mp4",
        "/%c0%ae%c0%ae/outside.mp4",
        "/good.mp4%00.m3u8",
        "/%00",
        "/good%",
        "/good%zz.mp4",
        "/link.mp4",
        "/link.mp4/.m3u8",
        "/up/outside.mp4",
        "/up/outside.mp4/.m3u8",
        "/./good.mp4/./",
    ] {
        let answer = server.get(target);
        let refused = [400, 403, 404].contains(&answer.status);
        assert!(refused, "{target}: {}", answer.reason());
        assert!(!answer.body.windows(4).any(|w| w == b"moov"), "{target}");
    }
    assert_eq!(server.get("/good.mp4/.m3u8").status, 200);
    assert!(server.alive());
}

#[test]
fn requests_that_are_too_much_or_none_are_refused() {
    let folder = Folder::new();
    let mut server = Server::of(&folder.0);
    let long = format!("/{}", "a".repeat(16 * 1024));
    let answer = server.get(&long);
    assert!(
        [400, 404, 414, 431].contains(&answer.status),
        "{}",
        answer.status
    );
    let deep = "/a".repeat(4000);
    let answer = server.get(&deep);
    assert!(
        [400, 404, 414, 431].contains(&answer.status),
        "{}",
        answer.status
    );
    for request in [
        &b"\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\x03\x04\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ] {
        if let Some(answer) = server.raw(request, false) {
            let shown = String::from_utf8_lossy(request).into_owned();
            assert!(
                (400..500).contains(&answer.status),
                "{shown}: {}",
                answer.status
            );
        }
    }
    let mut header = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    for number in 0..20_000 {
        header.extend(format!("X-{number}: {number}\r\n").bytes());
    }
    header.extend(b"\r\n");
    if let Some(answer) = server.raw(&header, false) {
        assert!([400, 431].contains(&answer.status), "{}", answer.status);
    }
    assert!(server.alive());
}

/// A replaced file is a new title: old segments are gone (410), new ones are the new file's.
#[test]
fn a_replaced_file_never_mixes() {
    let (Some(film), Some(other)) = (good("good.mp4"), fixture("avc.mp4")) else {
        return;
    };
    let folder = Folder::new();
    folder.put("film.mp4", &film);
    let server = Server::start(&[folder.0.to_str().unwrap(), "--recheck", "0s"]);
    let old = hls::media_playlists(&server, "/film.mp4/.m3u8");
    let old = hls::media(&server, &old[0]).segments[0].1.clone();
    assert_full(&server.get(&old), &old);
    let next = folder.put("next", &std::fs::read(other).unwrap());
    std::fs::rename(next, folder.0.join("film.mp4")).unwrap();
    everything_listed_is_served(&server, "film.mp4");
    let gone = server.get(&old);
    assert_eq!(gone.status, 410, "{}", gone.reason());
}

/// A file cut short under the server's hands costs that answer, not the process.
#[test]
fn a_file_cut_while_served_costs_one_answer() {
    let Some(path) = fixture("avc.mp4") else {
        return;
    };
    let folder = Folder::new();
    let film = std::fs::read(path).unwrap();
    let cut = folder.put("film.mp4", &film);
    folder.put("good.mp4", &film);
    let mut server = Server::start(&[folder.0.to_str().unwrap(), "--recheck", "0s"]);
    let playlists = hls::media_playlists(&server, "/film.mp4/.m3u8");
    let segments: Vec<_> = playlists
        .iter()
        .flat_map(|playlist| hls::media(&server, playlist).segments)
        .collect();
    server.body(&segments[0].1);
    let file = std::fs::OpenOptions::new().write(true).open(&cut).unwrap();
    file.set_len(5000).unwrap();
    for (_, segment) in &segments {
        let head = format!("GET {segment} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(server.alive(), "the server died of {segment}");
    }
    let answer = server.get("/film.mp4/.m3u8");
    assert!(REFUSED.contains(&answer.status), "{}", answer.reason());
    everything_listed_is_served(&server, "good.mp4");
}

/// What the server may not read is refused, and said.
#[test]
fn unreadable_files_are_refused() {
    let Some(film) = good("good.mp4") else { return };
    let folder = Folder::new();
    let path = folder.put("secret.mp4", &film);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    // Root may read everything, so as root the server runs as somebody else.
    let server = if std::fs::File::open(&path).is_ok() {
        let home = Folder::new();
        match Server::start_as_nobody(&home, &[folder.0.to_str().unwrap()]) {
            Some(server) => server,
            None => return skip("unreadable files: we are root, and setpriv does not work"),
        }
    } else {
        Server::of(&folder.0)
    };
    for target in ["/secret.mp4", "/secret.mp4/.m3u8"] {
        let answer = server.get(target);
        let refused = [403, 404, 500, 502].contains(&answer.status);
        assert!(refused, "{target}: {}", answer.reason());
    }
}
