//! What each request is answered with: status, headers, bytes.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::symlink;
use support::{Served, demo};

/// The set and the first segment's URL of a media playlist.
fn first_segment(server: &Served, playlist: &str) -> String {
    let text = server.text(playlist);
    let segment = text.lines().find(|line| !line.starts_with('#')).unwrap();
    let folder = playlist
        .rsplit_once("/hls/")
        .or(playlist.rsplit_once("/ts/"))
        .unwrap()
        .0;
    format!("{folder}/{}", segment.strip_prefix("../").unwrap())
}

fn video_playlist(server: &Served, title: &str, folder: &str) -> String {
    let query = if folder == "ts" { "?format=ts" } else { "" };
    let text = server.text(&format!("/{title}/.m3u8{query}"));
    let prefix = format!("{folder}/video");
    let line = text.lines().find(|line| line.starts_with(&prefix)).unwrap();
    format!("/{title}/{line}")
}

#[test]
#[allow(clippy::too_many_lines)] // A table.
fn each_address_has_its_status() {
    let server = Served::new(&[]);
    std::fs::create_dir(server.path("empty")).unwrap();
    std::fs::create_dir(server.path("folder.mp4")).unwrap();
    std::fs::write(server.path("garbage.mp4"), vec![7; 5000]).unwrap();
    std::fs::write(server.path("nothing.mp4"), "").unwrap();
    std::fs::write(server.path(".secret"), "x").unwrap();
    std::fs::write(server.path("film/ready.m3u8"), "#EXTM3U ready\n").unwrap();
    symlink("/etc/hostname", server.path("out.mp4")).unwrap();
    let playlist = video_playlist(&server, "film.mp4", "hls");
    let segment = first_segment(&server, &playlist);
    let set = segment.split('/').nth(2).unwrap();
    let rendition = segment.split('/').nth(3).unwrap();
    let in_set = |name: &str| format!("/film.mp4/{set}/{rendition}/{name}");
    for (target, status, error) in [
        ("/", 200, ""),
        ("/healthz", 200, ""),
        ("/readyz", 200, ""),
        ("/metrics", 200, ""),
        ("/-/library.json", 200, ""),
        ("/film.mp4", 200, ""),
        ("/film.mp4/.m3u8", 200, ""),
        ("/film.mp4/any.m3u8", 200, ""),
        ("/film/.m3u8", 200, ""),
        ("/film/ready.m3u8", 200, ""),
        ("/film.mp4/.mpd?template=number", 200, ""),
        ("/film.mp4/.json", 200, ""),
        (&segment, 200, ""),
        (&format!("{segment}?x=1"), 200, ""),
        (&in_set("init.mp4"), 200, ""),
        (&in_set("n/1.m4s"), 200, ""),
        (
            &in_set("n/0.m4s"),
            404,
            "client; there is nothing of that name",
        ),
        (
            &in_set("n/999.m4s"),
            404,
            "client; the rendition has no such segment",
        ),
        (
            &in_set("n/01.m4s"),
            404,
            "client; there is nothing of that name",
        ),
        (
            &in_set("1.m4s"),
            404,
            "client; the rendition has no such segment",
        ),
        (&in_set("0.aac"), 404, "client; "),
        (
            &format!("/film.mp4/{set}/video=7/0.m4s"),
            404,
            "client; there is no such rendition",
        ),
        (
            &segment.replace(set, "6000-0123456789abcdef"),
            410,
            "client; the film or the way it is cut has changed",
        ),
        (
            "/film.mp4/hls/video=7.m3u8",
            404,
            "client; there is no such rendition",
        ),
        (
            "/film.mp4/.m3u8?format=webm",
            400,
            "client; format is cmaf or ts",
        ),
        ("/missing.mp4/.m3u8", 404, "client; there is no such file"),
        ("/missing.mp4", 404, "client; there is no such file"),
        ("/-/missing.js", 404, "client; the page has no such part"),
        ("/film", 404, "client; there is no such file"),
        ("/film/", 404, "client; there is nothing of that name"),
        ("/empty/.mpd", 404, "client; the folder holds no film"),
        ("/folder.mp4", 404, "client; there is no such file"),
        ("/folder.mp4/.m3u8", 404, "client; the folder holds no film"),
        ("/garbage.mp4/.m3u8", 415, "upstream; garbage.mp4: "),
        ("/nothing.mp4/.m3u8", 415, "upstream; nothing.mp4: "),
        ("/nothing.mp4", 200, ""),
        ("/out.mp4", 403, "client; a link leads out of the library"),
        (
            "/out.mp4/.m3u8",
            403,
            "client; a link leads out of the library",
        ),
        (
            "/.secret",
            404,
            "client; names that begin with a dot are not served",
        ),
        (
            "/../etc/passwd",
            400,
            "client; the path has `.` or `..` in it",
        ),
        (
            "/film/%2e%2e/film.mp4",
            400,
            "client; the path has `.` or `..` in it",
        ),
        (
            "/film%2f..%2ffilm.mp4",
            400,
            "client; the path has a control character or a backslash",
        ),
        (
            "/film.mp4%00.m3u8",
            400,
            "client; the path has a control character",
        ),
        (
            "/a%5C..%5Cb",
            400,
            "client; the path has a control character or a backslash",
        ),
        ("/%ff", 400, "client; the path is not percent-encoded UTF-8"),
        (
            "//film.mp4",
            400,
            "client; the path has an empty name in it",
        ),
        (&format!("/{}", "x".repeat(16 << 10)), 414, "client; "),
    ] {
        let answer = server.get(target);
        let short: String = target.chars().take(80).collect();
        assert_eq!(
            answer.status,
            status,
            "{short}: {}",
            answer.header("headwater-error")
        );
        let said = answer.header("headwater-error");
        assert!(
            said.starts_with(error) && said.is_empty() == error.is_empty(),
            "{short}: {said}"
        );
        if status >= 400 {
            assert_eq!(answer.header("cache-control"), "max-age=1", "{short}");
        }
        // Ours or the server library's, every answer can be read by a page of another origin.
        if status != 414 {
            let cors = answer.header("access-control-allow-origin");
            let own = ["/healthz", "/readyz", "/metrics"].contains(&target);
            assert!(own || cors == "*", "{short}: {cors:?}");
        }
    }
}

#[test]
fn each_method_has_its_status() {
    let server = Served::new(&[]);
    for (method, status) in [
        ("GET", 200),
        ("HEAD", 200),
        ("OPTIONS", 204),
        ("POST", 405),
        ("PUT", 405),
        ("DELETE", 405),
        ("PATCH", 405),
        ("TRACE", 405),
        ("BREW", 405),
    ] {
        let answer = server.ask(method, "/film.mp4/.mpd", "");
        assert_eq!(answer.status, status, "{method}");
        if status == 405 || status == 204 {
            assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS", "{method}");
        }
    }
    let post = server.ask("POST", "/film.mp4/.mpd", "Content-Length: 5\r\n");
    assert_eq!(post.status, 405);
}

#[test]
fn headers_by_kind() {
    let server = Served::new(&[]);
    let playlist = video_playlist(&server, "film", "hls");
    let segment = first_segment(&server, &playlist);
    let ts = first_segment(&server, &video_playlist(&server, "film", "ts"));
    const SOON: &str = "public, max-age=2, stale-while-revalidate=30, stale-if-error=300";
    const EVER: &str = "public, max-age=31536000, immutable";
    for (target, content_type, cache) in [
        ("/film/.m3u8", "application/vnd.apple.mpegurl", SOON),
        (&playlist, "application/vnd.apple.mpegurl", SOON),
        ("/film/.mpd", "application/dash+xml", SOON),
        ("/film/.json", "application/json", SOON),
        (&segment, "video/mp4", EVER),
        (&ts, "video/mp2t", EVER),
        ("/film.mp4", "video/mp4", SOON),
    ] {
        let get = server.get(target);
        let head = server.ask("HEAD", target, "");
        assert!(head.body.is_empty());
        for answer in [&get, &head] {
            assert_eq!(answer.status, 200, "{target}");
            assert_eq!(answer.header("content-type"), content_type, "{target}");
            assert_eq!(answer.header("cache-control"), cache, "{target}");
            assert_eq!(answer.header("accept-ranges"), "bytes", "{target}");
            assert_eq!(
                answer.header("content-length"),
                get.body.len().to_string(),
                "{target}"
            );
            assert!(
                answer.header("etag").starts_with('"'),
                "{target}: a strong tag"
            );
            assert!(answer.header("last-modified").ends_with(" GMT"), "{target}");
        }
        let next = get.header("link");
        assert_eq!(next.is_empty(), cache == SOON, "{target}: {next}");
        if let Some((url, rel)) = next.split_once("; ") {
            assert_eq!(rel, "rel=\"next\"");
            let url = url.trim_matches(['<', '>']);
            assert_eq!(server.get(url).status, 200, "{url}");
            assert_ne!(url, target);
        }
    }
}

#[test]
fn conditions_spare_the_body() {
    let server = Served::new(&[]);
    let segment = first_segment(&server, &video_playlist(&server, "film", "hls"));
    for target in ["/film/.m3u8", "/film.mp4", &segment, "/"] {
        let get = server.get(target);
        let (etag, date) = (get.header("etag"), get.header("last-modified"));
        let ask = |headers: String| server.ask("GET", target, &headers);
        let same = ask(format!("If-None-Match: {etag}\r\n"));
        assert_eq!((same.status, same.body.len()), (304, 0), "{target}");
        assert_eq!(same.header("etag"), etag);
        assert_eq!(
            ask("If-None-Match: \"other\"\r\n".into()).status,
            200,
            "{target}"
        );
        assert_eq!(
            ask("If-Match: \"other\"\r\n".into()).status,
            412,
            "{target}"
        );
        if !date.is_empty() {
            assert_eq!(
                ask(format!("If-Modified-Since: {date}\r\n")).status,
                304,
                "{target}"
            );
        }
    }
}

#[test]
fn texts_are_compressed_as_asked() {
    let server = Served::new(&[]);
    let plain = server.get("/film/.mpd");
    assert_eq!(plain.header("vary"), "Accept-Encoding");
    let mut tags = vec![plain.header("etag").to_owned()];
    for coding in ["gzip", "br", "zstd"] {
        let ask = || {
            server.ask(
                "GET",
                "/film/.mpd",
                &format!("Accept-Encoding: {coding}\r\n"),
            )
        };
        let (first, second) = (ask(), ask());
        assert_eq!(first.header("content-encoding"), coding);
        assert_eq!(first.header("vary"), "Accept-Encoding");
        assert!(first.body.len() < plain.body.len());
        assert_eq!(first.body, second.body);
        tags.push(first.header("etag").to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "each coding has a tag of its own: {tags:?}");
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let server = Served::new(&[]);
    let segment = first_segment(&server, &video_playlist(&server, "film", "hls"));
    let ts = first_segment(&server, &video_playlist(&server, "film", "ts"));
    for target in ["/film.mp4", &segment, &ts] {
        let whole = server.get(target).body;
        let len = whole.len();
        // Odd offsets and lengths, within what we make, within the file, and across both.
        for (from, to) in [
            (0, 1),
            (1, 2),
            (7, 4096),
            (4095, 70_001),
            (len - 1, len),
            (1, len),
        ] {
            let to = to.min(len);
            let range = format!("Range: bytes={from}-{}\r\n", to - 1);
            let part = server.ask("GET", target, &range);
            assert_eq!(part.status, 206, "{target} {range}");
            let said = format!("bytes {from}-{}/{len}", to - 1);
            assert_eq!(part.header("content-range"), said);
            assert_eq!(part.body, &whole[from..to], "{target} {range}");
        }
        let tail = server.ask("GET", target, "Range: bytes=-10\r\n");
        assert_eq!(tail.body, &whole[len - 10..]);
        let beyond = server.ask("GET", target, &format!("Range: bytes={len}-\r\n"));
        assert_eq!(beyond.status, 416, "{target}");
        assert_eq!(beyond.header("content-range"), format!("bytes */{len}"));
        let stale = server.ask("GET", target, "Range: bytes=0-9\r\nIf-Range: \"other\"\r\n");
        assert_eq!((stale.status, stale.body.len()), (200, len));
        let thousand = "0-0,".repeat(1000);
        let abuse = server.ask("GET", target, &format!("Range: bytes={thousand}\r\n"));
        assert_eq!((abuse.status, abuse.body.len()), (200, len), "1000 ranges");
    }
}

/// A range of a text counts over the coding that is sent.
#[test]
fn ranges_of_texts_are_parts_of_the_coding_that_is_sent() {
    let server = Served::new(&[]);
    let playlist = video_playlist(&server, "film", "hls");
    for target in ["/film/.m3u8", &playlist, "/film/.mpd", "/-/style.css", "/"] {
        for coding in ["identity", "gzip", "br", "zstd"] {
            let place = format!("{target} {coding}");
            let ask = |method: &str, headers: &str| {
                let headers = format!("Accept-Encoding: {coding}\r\n{headers}");
                server.ask(method, target, &headers)
            };
            let whole = ask("GET", "");
            let (len, etag) = (whole.body.len(), whole.header("etag"));
            let encoding = whole.header("content-encoding");
            for (spec, from, to) in [
                ("0-0".to_owned(), 0, 1),
                ("7-99".to_owned(), 7, 100),
                ("100-".to_owned(), 100, len),
                ("-9".to_owned(), len - 9, len),
            ] {
                let part = ask(
                    "GET",
                    &format!("Range: bytes={spec}\r\nIf-Range: {etag}\r\n"),
                );
                assert_eq!(part.status, 206, "{place} {spec}");
                assert_eq!(part.body, &whole.body[from..to], "{place} {spec}");
                let said = format!("bytes {from}-{}/{len}", to - 1);
                assert_eq!(part.header("content-range"), said, "{place}");
                assert_eq!(part.header("content-encoding"), encoding, "{place}");
                assert_eq!(part.header("etag"), etag, "{place}");
                assert_eq!(part.header("vary"), "Accept-Encoding", "{place}");
            }
            let date = whole.header("last-modified");
            for headers in [
                "Range: bytes=0-1,5-6\r\n".to_owned(),
                "Range: bytes=0-9\r\nIf-Range: \"other\"\r\n".to_owned(),
                format!("Range: bytes=0-9\r\nIf-Range: {date}\r\n"),
            ] {
                let all = ask("GET", &headers);
                assert_eq!((all.status, all.body), (200, whole.body.clone()), "{place}");
            }
            let head = ask("HEAD", "Range: bytes=0-9\r\n");
            assert_eq!(
                (head.status, head.header("content-length")),
                (200, &*len.to_string())
            );
            let beyond = ask("GET", &format!("Range: bytes={len}-\r\n"));
            assert_eq!(beyond.status, 416, "{place}");
            assert_eq!(beyond.header("content-range"), format!("bytes */{len}"));
            // What is sent instead of the text is not in its coding.
            let failed = ask("GET", "If-Match: \"other\"\r\n");
            for answer in [&beyond, &failed] {
                assert_eq!(answer.header("content-encoding"), "", "{place}");
            }
        }
    }
}

#[test]
fn several_ranges_come_as_parts() {
    let server = Served::new(&[]);
    let whole = std::fs::read(demo().join("video-180p.mp4")).unwrap();
    let answer = server.ask(
        "GET",
        "/film.mp4",
        "Range: bytes=5-9, 100000-100099, -3\r\n",
    );
    assert_eq!(answer.status, 206);
    let boundary = answer
        .header("content-type")
        .strip_prefix("multipart/byteranges; boundary=");
    let boundary = format!("--{}", boundary.unwrap());
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(body.matches(&boundary).count(), 4);
    for part in [
        &whole[5..10],
        &whole[100_000..100_100],
        &whole[whole.len() - 3..],
    ] {
        let mut expected = b"\r\n\r\n".to_vec();
        expected.extend_from_slice(part);
        expected.extend_from_slice(format!("\r\n{boundary}").as_bytes());
        assert!(
            answer
                .body
                .windows(expected.len())
                .any(|window| window == expected)
        );
    }
}

/// Every URL that a manifest prints, relative ones resolved.
fn urls_of(manifest: &str, text: &str) -> Vec<String> {
    let folder = manifest
        .split('?')
        .next()
        .unwrap()
        .rsplit_once('/')
        .unwrap()
        .0;
    let mut urls = Vec::new();
    for line in text.lines() {
        let quoted = line
            .split("URI=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let bare = (!line.starts_with('#') && !line.is_empty()).then_some(line);
        for url in quoted.into_iter().chain(bare) {
            let (mut base, mut rest) = (folder, url);
            while let Some(up) = rest.strip_prefix("../") {
                (base, rest) = (base.rsplit_once('/').unwrap().0, up);
            }
            urls.push(format!("{base}/{rest}"));
        }
    }
    urls
}

#[test]
fn every_url_that_playlists_print_is_served() {
    let server = Served::new(&["--segment", "4s"]);
    let mut ahead = vec!["/film/.m3u8".to_owned(), "/film/.m3u8?format=ts".to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    let mut media = 0;
    while let Some(url) = ahead.pop() {
        if !seen.insert(url.clone()) {
            continue;
        }
        let answer = server.get(&url);
        assert_eq!(
            answer.status,
            200,
            "{url}: {}",
            answer.header("headwater-error")
        );
        assert!(!answer.body.is_empty(), "{url}");
        if answer.header("content-type").contains("mpegurl") {
            ahead.extend(urls_of(&url, &String::from_utf8(answer.body).unwrap()));
        } else {
            media += 1;
        }
    }
    // 2 pictures and 2 sounds of 48 s in 4 s, as CMAF and packed, and key frames.
    assert!(media > 4 * 12 * 2, "only {media} segments");
}

#[test]
fn the_library_lists_titles() {
    let server = Served::new(&[]);
    std::fs::create_dir_all(server.path("series/one")).unwrap();
    for name in ["e1.mp4", "e2.mp4"] {
        std::fs::copy(
            demo().join("video-360p.mp4"),
            server.path("series/one").join(name),
        )
        .unwrap();
    }
    std::fs::write(server.path("series/broken.mp4"), "no film").unwrap();
    std::fs::write(server.path("series/notes.txt"), "no film").unwrap();
    let list: serde_json::Value = serde_json::from_str(&server.text("/-/library.json")).unwrap();
    let titles = list["titles"].as_array().unwrap();
    let paths: Vec<_> = titles.iter().map(|t| t["path"].as_str().unwrap()).collect();
    let expected = [
        "film.mp4",
        "film",
        "series/broken.mp4",
        "series/one/e1.mp4",
        "series/one/e2.mp4",
    ];
    assert_eq!(paths, expected);
    let film = &titles[1];
    assert_eq!(film["kind"], "folder");
    assert_eq!(film["video"].as_array().unwrap().len(), 2);
    assert_eq!(film["audio"][1]["language"], "fra");
    assert_eq!(film["duration_ms"], 48_000);
    assert!(film["error"].is_null());
    assert!(
        titles[2]["error"]
            .as_str()
            .unwrap()
            .starts_with("series/broken.mp4: ")
    );
}

#[test]
fn the_description_says_where_segments_are() {
    let server = Served::new(&["--dash-segment", "2s"]);
    let film: serde_json::Value = serde_json::from_str(&server.text("/film/.json")).unwrap();
    assert_eq!(film["name"], "film");
    assert_ne!(film["set"], film["dash_set"]);
    for rendition in film["renditions"].as_array().unwrap() {
        let init = rendition["init"].as_str().unwrap();
        assert_eq!(server.get(&format!("/film/{init}")).status, 200);
        let segments = rendition["segments"].as_array().unwrap();
        for segment in [&segments[0], &segments[segments.len() - 1]] {
            let time = segment["t"].to_string();
            let url = rendition["media"].as_str().unwrap().replace("{t}", &time);
            let answer = server.get(&format!("/film/{url}"));
            assert_eq!(answer.status, 200);
            assert_eq!(segment["bytes"], answer.body.len());
        }
    }
}
