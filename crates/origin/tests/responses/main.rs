//! Tests the status, headers and body of each kind of response.
#![allow(clippy::unwrap_used)]

mod listing;
mod ranges;
#[path = "../support/mod.rs"]
mod support;

use std::os::unix::fs::symlink;
use support::TestServer;

/// Returns the URL of the first segment of a media playlist.
fn first_segment(server: &TestServer, playlist: &str) -> String {
    let text = server.text(playlist);
    let segment = text.lines().find(|line| !line.starts_with('#')).unwrap();
    let (folder, _) = playlist.rsplit_once('/').unwrap();
    format!("{folder}/{segment}")
}

fn video_playlist(server: &TestServer, title: &str, name: &str) -> String {
    let query = if name == "ts" { "?format=ts" } else { "" };
    let text = server.text(&format!("/{title}/.m3u8{query}"));
    let name = format!("/{name}.m3u8");
    let is = |line: &&str| line.contains("/video") && line.ends_with(&name);
    let line = text.lines().find(is).unwrap();
    format!("/{title}/{line}")
}

#[test]
#[allow(clippy::too_many_lines)]
fn each_url_has_its_status() {
    let server = TestServer::new(&[]);
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
        (&in_set("n/0.m4s"), 404, "client; not found"),
        (&in_set("n/999.m4s"), 404, "client; unknown segment"),
        (&in_set("n/01.m4s"), 404, "client; not found"),
        (&in_set("1.m4s"), 404, "client; unknown segment"),
        (&in_set("0.aac"), 404, "client; "),
        (
            &format!("/film.mp4/{set}/video=7/0.m4s"),
            404,
            "client; unknown rendition",
        ),
        (
            &segment.replace(set, "6000-0123456789abcdef"),
            410,
            "client; the film or its segmentation has changed",
        ),
        (
            &format!("/film.mp4/{set}/video=7/hls.m3u8"),
            404,
            "client; unknown rendition",
        ),
        (
            "/film.mp4/.m3u8?format=webm",
            400,
            "client; `format` must be cmaf or ts",
        ),
        ("/missing.mp4/.m3u8", 404, "client; there is no such file"),
        ("/missing.mp4", 404, "client; there is no such file"),
        ("/-/missing.js", 404, "client; unknown page asset"),
        ("/film", 404, "client; there is no such file"),
        ("/film/", 404, "client; not found"),
        ("/empty/.mpd", 404, "client; the folder contains no film"),
        ("/folder.mp4", 404, "client; there is no such file"),
        (
            "/folder.mp4/.m3u8",
            404,
            "client; the folder contains no film",
        ),
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
            "client; the path contains `.` or `..`",
        ),
        (
            "/film/%2e%2e/film.mp4",
            400,
            "client; the path contains `.` or `..`",
        ),
        (
            "/film%2f..%2ffilm.mp4",
            400,
            "client; the path contains a control character, a backslash or an encoded slash",
        ),
        (
            "/film.mp4%00.m3u8",
            400,
            "client; the path contains a control character",
        ),
        (
            "/a%5C..%5Cb",
            400,
            "client; the path contains a control character, a backslash or an encoded slash",
        ),
        ("/%ff", 400, "client; the path is not percent-encoded UTF-8"),
        (
            "//film.mp4",
            400,
            "client; the path has an empty name in it",
        ),
        (&format!("/{}", "x".repeat(16 << 10)), 414, "client; "),
    ] {
        let response = server.get(target);
        let short: String = target.chars().take(80).collect();
        assert_eq!(
            response.status,
            status,
            "{short}: {}",
            response.header("headwater-error")
        );
        let header = response.header("headwater-error");
        assert!(
            header.starts_with(error) && header.is_empty() == error.is_empty(),
            "{short}: {header}"
        );
        if status >= 400 {
            // Only these errors depend on nothing but the target.
            let is_cacheable = [404, 410, 414].contains(&status);
            let caching = if is_cacheable {
                "max-age=1"
            } else {
                "no-store"
            };
            assert_eq!(response.header("cache-control"), caching, "{short}");
        }
        // Web pages of other origins may read these responses. The exceptions are health checks,
        // metrics and responses with status 414.
        if status != 414 {
            let cors = response.header("access-control-allow-origin");
            let own = ["/healthz", "/readyz", "/metrics"].contains(&target);
            assert!(own || cors == "*", "{short}: {cors:?}");
        }
    }
}

#[test]
fn parameters_that_select_a_part_of_a_film_are_refused_with_the_reason() {
    let server = TestServer::new(&[]);
    std::fs::write(
        server.path("film.en.vtt"),
        "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n",
    )
    .unwrap();
    std::fs::write(server.path("poster.jpg"), "x").unwrap();
    std::fs::copy(server.path("film.mp4"), server.path("bare")).unwrap();
    let video = video_playlist(&server, "film.mp4", "hls");
    let text = server.text("/film.mp4/.m3u8");
    let text = text.split('"').find(|part| part.contains("/text=en/"));
    let text = format!("/film.mp4/{}", text.unwrap());
    let segment = first_segment(&server, &video);
    for (name, value) in [
        ("filter", "type==%22video%22"),
        ("vbegin", "10"),
        ("vend", "20"),
        ("t", "00:10-00:20"),
        ("max_bitrate", "500000"),
        ("min_bitrate", "500000"),
        ("tracks", "1"),
        ("sort_tracks", "bitrate"),
        ("start_index", "1"),
        ("base_path", "x"),
        ("aws.manifestfilter", "video_bitrate:0-1000000"),
        ("wowzaplaystart", "30000"),
        ("wowzaplayduration", "40000"),
        ("max_resolution", "720p"),
        ("min_resolution", "720p"),
        ("asset_start_time", "10"),
        ("asset_end_time", "60"),
    ] {
        for path in [
            "/film.mp4/.m3u8",
            "/film.mp4/.mpd",
            &video,
            &text,
            "/film.mp4",
            "/bare",
        ] {
            let response = server.get(&format!("{path}?{name}={value}"));
            assert_eq!(response.status, 400, "{path}?{name}");
            let body = String::from_utf8(response.body).unwrap();
            let reason = format!(
                "400 Bad Request: the parameter `{name}` is not supported; without it, the response is the whole title\n"
            );
            assert_eq!(body, reason, "{path}");
        }
        // These parameters select parts of a title. For segments and for files that are not films,
        // the server ignores the parameters.
        for path in [&segment, "/poster.jpg", "/film.en.vtt"] {
            let response = server.get(&format!("{path}?{name}={value}"));
            assert_eq!(response.status, 200, "{path}?{name}");
        }
    }
    assert_eq!(server.get("/film.mp4?utm_source=filter").status, 200);
}

#[test]
fn each_method_has_its_status() {
    let server = TestServer::new(&[]);
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
        let response = server.request(method, "/film.mp4/.mpd", "");
        assert_eq!(response.status, status, "{method}");
        if status == 405 || status == 204 {
            assert_eq!(response.header("allow"), "GET, HEAD, OPTIONS", "{method}");
        }
    }
    let post = server.request("POST", "/film.mp4/.mpd", "Content-Length: 5\r\n");
    assert_eq!(post.status, 405);
}

#[test]
fn headers_depend_on_the_resource_kind() {
    let server = TestServer::new(&[]);
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
        let head = server.request("HEAD", target, "");
        assert!(head.body.is_empty());
        for response in [&get, &head] {
            assert_eq!(response.status, 200, "{target}");
            assert_eq!(response.header("content-type"), content_type, "{target}");
            assert_eq!(response.header("cache-control"), cache, "{target}");
            assert_eq!(response.header("accept-ranges"), "bytes", "{target}");
            assert_eq!(
                response.header("content-length"),
                get.body.len().to_string(),
                "{target}"
            );
            assert!(
                response.header("etag").starts_with('"'),
                "{target}: a strong tag"
            );
            assert!(
                response.header("last-modified").ends_with(" GMT"),
                "{target}"
            );
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
    let server = TestServer::new(&[]);
    let segment = first_segment(&server, &video_playlist(&server, "film", "hls"));
    for target in ["/film/.m3u8", "/film.mp4", &segment, "/"] {
        let get = server.get(target);
        let (etag, date) = (get.header("etag"), get.header("last-modified"));
        let ask = |headers: String| server.request("GET", target, &headers);
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
fn caches_must_not_store_errors_that_depend_on_conditions_or_ranges() {
    let server = TestServer::new(&[]);
    let segment = first_segment(&server, &video_playlist(&server, "film", "hls"));
    for target in ["/film/.m3u8", "/film.mp4", &segment] {
        for (headers, status) in [
            ("If-Match: \"other\"\r\n", 412),
            ("Range: bytes=999999999-\r\n", 416),
        ] {
            let response = server.request("GET", target, headers);
            assert_eq!(response.status, status, "{target}");
            assert_eq!(response.header("cache-control"), "no-store", "{target}");
        }
    }
}

#[test]
fn texts_are_compressed_as_requested() {
    let server = TestServer::new(&[]);
    let plain = server.get("/film/.mpd");
    assert_eq!(plain.header("vary"), "Accept-Encoding");
    let mut tags = vec![plain.header("etag").to_owned()];
    for coding in ["gzip", "br", "zstd"] {
        let ask = || {
            server.request(
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
