//! Tests damaged files, hostile URLs, and files that change while they are served. The server
//! returns a defined response in each case, and keeps running.

use crate::hls_playlists as hls;
use crate::support::{
    HeadwaterServer, HttpResponse, TempFolder, fixture_path, fixtures_folder, report_skip,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};

/// Reads a short film that the tests damage.
fn read_film(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(fixtures_folder()?.join("bad").join(name)).unwrap())
}

/// Returns the position of a box's four-letter code. The size field starts four bytes before this
/// position, and the body starts four bytes after it.
fn find_box(bytes: &[u8], code: &[u8; 4]) -> usize {
    let found = bytes.windows(4).position(|w| w == code);
    found.unwrap_or_else(|| panic!("no {}", String::from_utf8_lossy(code)))
}

fn write_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Lists the top-level boxes as (code, start, end).
fn list_boxes(bytes: &[u8]) -> Vec<(String, usize, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while at + 8 <= bytes.len() {
        let size = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let code = String::from_utf8_lossy(&bytes[at + 4..at + 8]).into_owned();
        found.push((code, at, at + size));
        at += size;
    }
    found
}

fn nest_boxes(depth: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..depth {
        let mut outer = (bytes.len() as u32 + 8).to_be_bytes().to_vec();
        outer.extend(b"moov");
        outer.extend(&bytes);
        bytes = outer;
    }
    bytes
}

/// Returns a copy of a film that `fault` damaged.
fn damage(good: &[u8], fault: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = good.to_vec();
    fault(&mut bytes);
    bytes
}

#[test]
fn damaged_and_unsupported_files_are_refused_with_a_reason() {
    let (Some(film), Some(pcm), Some(mpeg4)) = (
        read_film("good.mp4"),
        read_film("pcm.mov"),
        read_film("mpeg4.mp4"),
    ) else {
        return;
    };
    // Offsets are relative to the box's code. Offset -4 is the size, and offset 4 is the version
    // and flags.
    let set = |code: &'static [u8; 4], offset: isize, value: u32| {
        damage(&film, |b| {
            let at = find_box(b, code).strict_add_signed(offset);
            write_u32(b, at, value);
        })
    };
    let without = |code: &str| -> Vec<u8> {
        let boxes = list_boxes(&film).into_iter().filter(|(c, ..)| c != code);
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
        (
            "only_ftyp.mp4",
            film[..list_boxes(&film)[0].2].to_vec(),
            "moov",
        ),
        ("no_moov.mp4", without("moov"), "moov"),
        ("no_mdat.mp4", without("mdat"), ""),
        ("zero_timescale.mp4", set(b"mdhd", 16, 0), "timescale"),
        ("many_samples.mp4", set(b"stsz", 12, u32::MAX), "stsz"),
        ("many_runs.mp4", set(b"stts", 8, u32::MAX), "stts"),
        ("many_chunks.mp4", set(b"stco", 8, u32::MAX), "stco"),
        ("beyond.mp4", set(b"stco", 12, 0x7fff_0000), ""),
        ("small_box.mp4", set(b"moov", -4, 4), ""),
        ("large_box.mp4", set(b"trak", -4, 0x7fff_ffff), ""),
        ("deep.mp4", [&film[..32], &nest_boxes(1000)].concat(), ""),
        ("no_key_frame.mp4", set(b"stss", 8, 0), "key"),
        ("pcm.mov", pcm, "sowt"),
        ("mpeg4.mp4", mpeg4, "mp4v"),
    ];
    let folder = TempFolder::new();
    for (name, bytes, ..) in &rows {
        folder.write_file(name, bytes);
    }
    folder.write_file("good.mp4", &film);
    let mut server = HeadwaterServer::serve_source(&folder.0);
    for (name, _, word) in &rows {
        for manifest in [".m3u8", ".mpd", ".json"] {
            let response = server.get(&format!("/{name}/{manifest}"));
            let reason = response.error_reason();
            assert!(
                REFUSED.contains(&response.status),
                "{name}/{manifest}: {reason}"
            );
            let error = response.header("headwater-error").expect(name);
            assert!(
                error.contains(word),
                "{name}: {error} does not contain {word}"
            );
        }
    }
    // Damaged files do not affect other titles.
    server.get_body("/good.mp4/.m3u8");
    assert!(server.is_alive());
}

/// Statuses for a source that is damaged or cannot be packaged.
const REFUSED: [u16; 1] = [415];

/// A truncated file is refused, or all segments in its playlists are served completely.
#[test]
fn truncation_at_every_box_is_survived() {
    let (Some(film), Some(fragmented)) = (read_film("good.mp4"), read_film("good_frag.mp4")) else {
        return;
    };
    let folder = TempFolder::new();
    let mut names = Vec::new();
    for (kind, bytes) in [("film", &film), ("frag", &fragmented)] {
        for (number, (code, start, end)) in list_boxes(bytes).into_iter().enumerate() {
            for cut in [start + 4, start + 8, (start + end) / 2, end] {
                let name = format!("{kind}_{number}_{code}_{cut}.mp4");
                folder.write_file(&name, &bytes[..cut.min(bytes.len())]);
                names.push(name);
            }
        }
    }
    let mut server = HeadwaterServer::serve_source(&folder.0);
    for name in names {
        let response = server.get(&format!("/{name}/.m3u8"));
        if response.status == 200 {
            assert_listed_segments_are_served(&server, &name);
        } else {
            assert!(
                REFUSED.contains(&response.status),
                "{name}: {}",
                response.error_reason()
            );
        }
    }
    assert!(server.is_alive());
}

fn assert_listed_segments_are_served(server: &HeadwaterServer, name: &str) {
    for playlist in hls::list_media_playlists(server, &format!("/{name}/.m3u8")) {
        let media = hls::fetch_media_playlist(server, &playlist);
        assert!(!media.segments.is_empty(), "{playlist}");
        for (_, segment) in media.segments {
            assert_complete(&server.get(&segment), &segment);
        }
    }
}

fn assert_complete(response: &HttpResponse, target: &str) {
    assert_eq!(
        response.status,
        200,
        "{target}: {}",
        response.error_reason()
    );
    let length = response.header("content-length").unwrap();
    assert_eq!(length, response.body.len().to_string(), "{target} was cut");
    assert!(!response.body.is_empty(), "{target}");
}

/// A track without samples is omitted. A film that has only such tracks is refused.
#[test]
fn empty_tracks_are_omitted() {
    let Some(film) = read_film("good.mp4") else {
        return;
    };
    let empty = |bytes: &mut Vec<u8>, from: usize| {
        for (code, offset) in [(b"stts", 8), (b"stsc", 8), (b"stsz", 12), (b"stco", 8)] {
            let at = from + find_box(&bytes[from..], code) + offset;
            write_u32(bytes, at, 0);
        }
    };
    let first = find_box(&film, b"stbl");
    let second = first + 4 + find_box(&film[first + 4..], b"stbl");
    let folder = TempFolder::new();
    folder.write_file(
        "all.mp4",
        &damage(&film, |b| {
            empty(b, first);
            empty(b, second);
        }),
    );
    folder.write_file("sound.mp4", &damage(&film, |b| empty(b, second)));
    let server = HeadwaterServer::serve_source(&folder.0);
    let response = server.get("/all.mp4/.m3u8");
    assert!(
        REFUSED.contains(&response.status),
        "{}",
        response.error_reason()
    );
    let response = server.get("/sound.mp4/.m3u8");
    if response.status == 200 {
        assert_listed_segments_are_served(&server, "sound.mp4");
    } else {
        assert!(
            REFUSED.contains(&response.status),
            "{}",
            response.error_reason()
        );
    }
}

#[test]
fn no_url_reads_outside_the_library() {
    let Some(film) = read_film("good.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("outside.mp4", &film);
    folder.write_file("library/good.mp4", &film);
    let library = folder.0.join("library");
    symlink(folder.0.join("outside.mp4"), library.join("link.mp4")).unwrap();
    symlink(&folder.0, library.join("up")).unwrap();
    let mut server = HeadwaterServer::serve_source(&library);
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
        let response = server.get(target);
        let refused = [400, 403, 404].contains(&response.status);
        assert!(refused, "{target}: {}", response.error_reason());
        assert!(!response.body.windows(4).any(|w| w == b"moov"), "{target}");
    }
    assert_eq!(server.get("/good.mp4/.m3u8").status, 200);
    assert!(server.is_alive());
}

#[test]
fn oversized_and_malformed_requests_are_refused() {
    let folder = TempFolder::new();
    let mut server = HeadwaterServer::serve_source(&folder.0);
    let long = format!("/{}", "a".repeat(16 * 1024));
    let response = server.get(&long);
    assert!(
        [400, 404, 414, 431].contains(&response.status),
        "{}",
        response.status
    );
    let deep = "/a".repeat(4000);
    let response = server.get(&deep);
    assert!(
        [400, 404, 414, 431].contains(&response.status),
        "{}",
        response.status
    );
    for request in [
        &b"\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\x03\x04\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ] {
        if let Some(response) = server.send_raw(request, false) {
            let shown = String::from_utf8_lossy(request).into_owned();
            assert!(
                (400..500).contains(&response.status),
                "{shown}: {}",
                response.status
            );
        }
    }
    let mut header = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    for number in 0..20_000 {
        header.extend(format!("X-{number}: {number}\r\n").bytes());
    }
    header.extend(b"\r\n");
    if let Some(response) = server.send_raw(&header, false) {
        assert!([400, 431].contains(&response.status), "{}", response.status);
    }
    assert!(server.is_alive());
}

/// A replaced file has a new version, so the old segment URLs return 410.
#[test]
fn a_replaced_file_never_mixes_with_the_old_one() {
    let (Some(film), Some(other)) = (read_film("good.mp4"), fixture_path("avc.mp4")) else {
        return;
    };
    let folder = TempFolder::new();
    folder.write_file("film.mp4", &film);
    let server = HeadwaterServer::serve(&[folder.0.to_str().unwrap(), "--recheck", "0s"]);
    let old = hls::list_media_playlists(&server, "/film.mp4/.m3u8");
    let old = hls::fetch_media_playlist(&server, &old[0]).segments[0]
        .1
        .clone();
    assert_complete(&server.get(&old), &old);
    let next = folder.write_file("next", &std::fs::read(other).unwrap());
    std::fs::rename(next, folder.0.join("film.mp4")).unwrap();
    assert_listed_segments_are_served(&server, "film.mp4");
    let gone = server.get(&old);
    assert_eq!(gone.status, 410, "{}", gone.error_reason());
}

#[test]
fn truncating_a_file_while_it_is_served_does_not_end_the_process() {
    let Some(path) = fixture_path("avc.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    let film = std::fs::read(path).unwrap();
    let cut = folder.write_file("film.mp4", &film);
    folder.write_file("good.mp4", &film);
    let mut server = HeadwaterServer::serve(&[folder.0.to_str().unwrap(), "--recheck", "0s"]);
    let playlists = hls::list_media_playlists(&server, "/film.mp4/.m3u8");
    let segments: Vec<_> = playlists
        .iter()
        .flat_map(|playlist| hls::fetch_media_playlist(&server, playlist).segments)
        .collect();
    server.get_body(&segments[0].1);
    let file = std::fs::OpenOptions::new().write(true).open(&cut).unwrap();
    file.set_len(5000).unwrap();
    for (_, segment) in &segments {
        let head = format!("GET {segment} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        assert!(server.is_alive(), "{segment} ended the server");
    }
    let response = server.get("/film.mp4/.m3u8");
    assert!(
        REFUSED.contains(&response.status),
        "{}",
        response.error_reason()
    );
    assert_listed_segments_are_served(&server, "good.mp4");
}

#[test]
fn unreadable_files_are_refused() {
    let Some(film) = read_film("good.mp4") else {
        return;
    };
    let folder = TempFolder::new();
    let path = folder.write_file("secret.mp4", &film);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    // Root can read all files, so the server must run as another user.
    let server = if std::fs::File::open(&path).is_ok() {
        let home = TempFolder::new();
        match HeadwaterServer::serve_unprivileged(&home, &[folder.0.to_str().unwrap()]) {
            Some(server) => server,
            None => {
                return report_skip(
                    "unreadable files: the tests run as root, and setpriv does not work",
                );
            }
        }
    } else {
        HeadwaterServer::serve_source(&folder.0)
    };
    for target in ["/secret.mp4", "/secret.mp4/.m3u8"] {
        let response = server.get(target);
        let refused = [403, 404, 500, 502].contains(&response.status);
        assert!(refused, "{target}: {}", response.error_reason());
    }
}
