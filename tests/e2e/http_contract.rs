//! Tests the HTTP contract of `headwater serve`: methods, ranges, validators, encodings, caching,
//! CORS.

use crate::hls_playlists as hls;
use crate::support::{HeadwaterServer, fixture_path};

struct ServedFilm {
    server: HeadwaterServer,
    playlist: String,
    segment: String,
}

fn start_film() -> Option<ServedFilm> {
    let path = fixture_path("avc.mp4")?;
    let server = HeadwaterServer::serve_source(path.parent().unwrap());
    let playlists = hls::list_media_playlists(&server, "/avc.mp4/.m3u8");
    let playlist = playlists.into_iter().find(|p| p.contains("/video"))?;
    let segment = hls::fetch_media_playlist(&server, &playlist).segments[1]
        .1
        .clone();
    Some(ServedFilm {
        server,
        playlist,
        segment,
    })
}

#[test]
fn every_resource_declares_type_length_validator_and_cors() {
    let Some(film) = start_film() else { return };
    let rows = [
        ("/avc.mp4/.m3u8", "application/vnd.apple.mpegurl"),
        (&*film.playlist, "application/vnd.apple.mpegurl"),
        ("/avc.mp4/.mpd", "application/dash+xml"),
        (&*film.segment, "video/mp4"),
        ("/avc.mp4", "video/mp4"),
        ("/avc.mp4/.json", "application/json"),
    ];
    for (target, kind) in rows {
        let response = film.server.get(target);
        assert_eq!(
            response.status,
            200,
            "{target}: {}",
            response.error_reason()
        );
        let found = response.header("content-type").unwrap_or_default();
        assert!(found.starts_with(kind), "{target}: {found}");
        let length = response.body.len().to_string();
        assert_eq!(
            response.header("content-length"),
            Some(&*length),
            "{target}"
        );
        assert_eq!(response.header("access-control-allow-origin"), Some("*"));
        assert!(response.header("cache-control").is_some(), "{target}");
        let etag = response.header("etag").expect(target).to_owned();

        let head = film.server.request("HEAD", target, &[]);
        assert_eq!((head.status, head.body.len()), (200, 0), "HEAD {target}");
        assert_eq!(
            head.header("content-length"),
            Some(&*length),
            "HEAD {target}"
        );
        assert_eq!(head.header("etag"), Some(&*etag), "HEAD {target}");

        let again = film
            .server
            .request("GET", target, &[("If-None-Match", &etag)]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{target}");
        let other = film
            .server
            .request("GET", target, &[("If-None-Match", "\"x\"")]);
        assert_eq!(other.status, 200, "{target}");
    }
}

#[test]
fn ranges_are_slices_of_the_whole() {
    let Some(film) = start_film() else { return };
    for target in [&*film.segment, "/avc.mp4", &film.playlist, "/avc.mp4/.mpd"] {
        let whole = film.server.get_body(target);
        let len = whole.len();
        let rows = [
            ("bytes=0-0", 0..1),
            ("bytes=10-99", 10..100),
            ("bytes=100-", 100..len),
            ("bytes=-7", len - 7..len),
            ("bytes=5-999999999999", 5..len),
        ];
        for (range, slice) in rows {
            let response = film.server.request("GET", target, &[("Range", range)]);
            assert_eq!(
                response.status,
                206,
                "{target} {range}: {}",
                response.error_reason()
            );
            assert_eq!(response.body, whole[slice.clone()], "{target} {range}");
            let stated = format!("bytes {}-{}/{len}", slice.start, slice.end - 1);
            assert_eq!(response.header("content-range"), Some(&*stated));
        }
        for range in [format!("bytes={len}-"), "bytes=-0".to_owned()] {
            let response = film.server.request("GET", target, &[("Range", &range)]);
            assert_eq!(response.status, 416, "{target} {range}");
            let stated = format!("bytes */{len}");
            assert_eq!(response.header("content-range"), Some(&*stated));
        }
        // An invalid range is ignored, and If-Range with another version returns the whole body.
        for headers in [
            &[("Range", "bytes=9-2")][..],
            &[("Range", "lines=1-2")],
            &[("Range", "bytes=0-1"), ("If-Range", "\"other\"")],
        ] {
            let response = film.server.request("GET", target, headers);
            assert_eq!(
                (response.status, response.body.len()),
                (200, len),
                "{headers:?}"
            );
        }
    }
}

#[test]
fn a_thousand_ranges_do_not_multiply_the_body() {
    let Some(film) = start_film() else { return };
    let many: Vec<_> = (0..1000).map(|n| format!("{n}-{n}")).collect();
    let range = format!("bytes={}", many.join(","));
    let response = film
        .server
        .request("GET", &film.segment, &[("Range", &range)]);
    let whole = film.server.get_body(&film.segment);
    assert!(
        [200, 400, 416, 431].contains(&response.status),
        "{}",
        response.status
    );
    assert!(response.body.len() <= whole.len());
}

#[test]
fn manifests_are_compressed_on_request_and_vary() {
    let Some(film) = start_film() else { return };
    for target in ["/avc.mp4/.mpd", "/avc.mp4/.m3u8"] {
        let plain = film.server.get(target);
        let etag = plain.header("etag").unwrap().to_owned();
        for coding in ["gzip", "br", "zstd"] {
            let headers = [("Accept-Encoding", coding)];
            let response = film.server.request("GET", target, &headers);
            assert_eq!(
                response.header("content-encoding"),
                Some(coding),
                "{target}"
            );
            assert_ne!(response.header("etag"), Some(&*etag), "{target} {coding}");
            let vary = response.header("vary").unwrap_or_default().to_lowercase();
            assert!(vary.contains("accept-encoding"), "{target}: {vary}");
            assert!(response.body.len() < plain.body.len());
        }
    }
    let headers = [("Accept-Encoding", "gzip, br, zstd")];
    let segment = film.server.request("GET", &film.segment, &headers);
    assert_eq!(segment.header("content-encoding"), None);
}

#[test]
fn segments_are_immutable_and_name_the_next() {
    let Some(film) = start_film() else { return };
    let media = hls::fetch_media_playlist(&film.server, &film.playlist);
    let control = |target: &str| {
        let response = film.server.get(target);
        response.header("cache-control").unwrap().to_owned()
    };
    assert!(control(&film.segment).contains("immutable"));
    assert!(!control("/avc.mp4/.m3u8").contains("immutable"));
    for pair in media.segments.windows(2) {
        let response = film.server.get(&pair[0].1);
        let link = response.header("link").expect("no Link").to_owned();
        assert!(
            link.contains("rel=\"next\"") || link.contains("rel=next"),
            "{link}"
        );
        let uri = link.split(['<', '>']).nth(1).unwrap();
        assert_eq!(hls::resolve_uri(&pair[0].1, uri), pair[1].1);
    }
    let last = film.server.get(&media.segments.last().unwrap().1);
    assert_eq!(last.header("link"), None);
    // The response to a segment request does not depend on the query.
    let queried = film
        .server
        .get_body(&format!("{}?filter=x&format=ts", film.segment));
    assert_eq!(queried, film.server.get_body(&film.segment));
}

#[test]
fn unknown_resources_are_404_and_outdated_ones_410() {
    let Some(film) = start_film() else { return };
    let (folder, time) = film.segment.rsplit_once('/').unwrap();
    let time = time.strip_suffix(".m4s").unwrap();
    let set = film.segment.split('/').nth(2).unwrap();
    let (milliseconds, version) = set.split_once('-').unwrap();
    let other_version = film.segment.replace(version, "0123456789abcdef");
    let rows = [
        ("/nothing.mp4/.m3u8".to_owned(), 404),
        ("/nothing.mp4".to_owned(), 404),
        (format!("/avc.mp4/{set}/video=1/hls.m3u8"), 404),
        (format!("{folder}/0{time}.m4s"), 404),
        (format!("{folder}/+{time}.m4s"), 404),
        (format!("{folder}/-{time}.m4s"), 404),
        (format!("{folder}/{time}1.m4s"), 404),
        (format!("{folder}/99999999999999999999999.m4s"), 404),
        (format!("{folder}/{time}.mp3"), 404),
        (format!("{folder}/n/0.m4s"), 404),
        (format!("{folder}/n/1000.m4s"), 404),
        (other_version, 410),
        (film.segment.replace(milliseconds, "2001"), 410),
    ];
    for (target, status) in rows {
        let response = film.server.get(&target);
        assert_eq!(
            response.status,
            status,
            "{target}: {}",
            response.error_reason()
        );
        assert!(response.header("headwater-error").is_some(), "{target}");
    }
}

#[test]
fn other_methods_are_refused_and_preflights_accepted() {
    let Some(film) = start_film() else { return };
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let response = film.server.request(method, "/avc.mp4/.m3u8", &[]);
        assert_eq!(response.status, 405, "{method}");
        assert!(response.header("allow").unwrap_or_default().contains("GET"));
    }
    let preflight = film.server.request(
        "OPTIONS",
        &film.segment,
        &[
            ("Origin", "http://a.example"),
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "range"),
        ],
    );
    assert!([200, 204].contains(&preflight.status));
    assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
}

#[test]
fn health_metrics_and_page_are_served() {
    let Some(film) = start_film() else { return };
    assert_eq!(film.server.get("/healthz").status, 200);
    assert_eq!(film.server.get("/readyz").status, 200);
    film.server.get_body(&film.segment);
    let metrics = film.server.get_text("/metrics");
    for name in [
        "headwater_http_requests_total{",
        "headwater_http_response_bytes_total{",
        "headwater_storage_requests_total{",
        "headwater_index_builds_total",
    ] {
        assert!(metrics.contains(name), "{name} is not in\n{metrics}");
    }
    assert!(film.server.get_text("/").contains("<html"));
    let library = film.server.get_text("/-/library.json");
    assert!(library.contains("avc.mp4"), "{library:.300}");
}

#[test]
fn a_cold_segment_costs_one_read_and_no_metadata() {
    let Some(film) = start_film() else { return };
    // The samples of this film are contiguous, so each segment is one byte range.
    let playlists = hls::list_media_playlists(&film.server, "/video_only.mp4/.m3u8");
    let media = hls::fetch_media_playlist(&film.server, &playlists[0]);
    let reads = |reason: &str| -> f64 {
        let metrics = film.server.get_text("/metrics");
        let lines = metrics.lines().filter(|line| {
            line.starts_with("headwater_storage_requests_total{") && line.contains(reason)
        });
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    };
    let before = reads("");
    let indexing = reads("index");
    assert!(indexing > 0.0);
    for (_, segment) in &media.segments {
        film.server.get_body(segment);
    }
    assert_eq!(reads("") - before, media.segments.len() as f64);
    assert_eq!(reads("index"), indexing, "an indexed title was read again");
}

#[test]
fn sigterm_drains_and_exits_with_0() {
    let Some(mut film) = start_film() else { return };
    film.server.get("/healthz");
    assert_eq!(film.server.terminate(), Some(0));
}
