//! Ranges: one, several, and of texts that are compressed.

use super::support::{Served, demo};
use super::{first_segment, video_playlist};

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
