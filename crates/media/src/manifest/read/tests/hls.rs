use super::super::hls::{MediaPlaylist, ParsedPlaylist, parse_playlist};
use super::super::{ParsedManifest, RenditionKind, SEGMENTS_MAX, SegmentListSource, Url};
use crate::error;
use crate::time::Time;

fn playlist_url() -> Url {
    Url::parse("http://o.test/film/hls/v.m3u8?token=a").unwrap()
}

fn parse_media(text: &str) -> MediaPlaylist {
    match parse_playlist(&playlist_url(), text.as_bytes()).unwrap() {
        ParsedPlaylist::Media(media) => media,
        other => panic!("{other:?}"),
    }
}

fn parse_multivariant(text: &str) -> ParsedManifest {
    match parse_playlist(&playlist_url(), text.as_bytes()).unwrap() {
        ParsedPlaylist::Multivariant(title) => title,
        other => panic!("{other:?}"),
    }
}

fn expect_error(text: &str) -> error::Error {
    parse_playlist(&playlist_url(), text.as_bytes()).unwrap_err()
}

#[test]
fn segments_have_exact_times_and_absolute_urls() {
    let media = parse_media(
        "\u{feff}#EXTM3U\r\n#EXT-X-VERSION:7\r\n#EXT-X-TARGETDURATION:10\r\n\r\n#EXT-X-MAP:URI=\"init.mp4\"\r\n\
         #EXTINF:9.009,Title, with comma\r\n../s/1.m4s\r\n# a comment\r\n#EXTINF:9.009\r\n/abs/2.m4s?x=1\r\n\
         #EXT-X-DISCONTINUITY\r\n#EXT-X-MAP:URI=\"init2.mp4\",BYTERANGE=\"700@10\"\r\n#EXTINF: 3.003 ,\r\n  3.m4s  \r\n#EXT-X-ENDLIST\r\n",
    );
    let segments = &media.segments;
    assert!(!media.is_live && !media.is_encrypted && segments.len() == 3);
    let ms = |time: Time| time.round_to(1000);
    let times: Vec<i64> = (0..4).map(|n| ms(segments.start_time(n))).collect();
    assert_eq!(times, [0, 9009, 18_018, 21_021]);
    let urls: Vec<String> = (0..3)
        .map(|n| segments.segment_resource(n).unwrap().unwrap().url.into())
        .collect();
    assert_eq!(
        urls,
        [
            "http://o.test/film/s/1.m4s",
            "http://o.test/abs/2.m4s?x=1",
            "http://o.test/film/hls/3.m4s"
        ]
    );
    assert_eq!(segments.segment_resource(3).unwrap(), None);
    assert_eq!(
        (
            segments.init_index(0),
            segments.init_index(1),
            segments.init_index(2)
        ),
        (Some(0), Some(0), Some(1))
    );
    let init = segments.init_resource(1).unwrap().unwrap();
    assert_eq!(
        (init.url.path(), init.range),
        ("/film/hls/init2.mp4", Some(10..710))
    );
    for (time, n) in [
        (-1, 0),
        (0, 0),
        (9008, 0),
        (9009, 1),
        (21_020, 2),
        (99_999, 2),
    ] {
        assert_eq!(segments.segment_at(Time::from_ms(time)), n, "{time}");
    }
}

#[test]
fn byte_ranges_continue_after_the_previous_one() {
    let media = parse_media(
        "#EXTM3U\n#EXT-X-MAP:URI=\"f.mp4\",BYTERANGE=\"100\"\n#EXTINF:2\n#EXT-X-BYTERANGE:50@100\nf.mp4\n\
         #EXTINF:2\n#EXT-X-BYTERANGE:60\nf.mp4\n#EXTINF:2\n#EXT-X-BYTERANGE:5@7\ng.mp4\n",
    );
    let ranges: Vec<_> = (0..3)
        .map(|n| {
            media
                .segments
                .segment_resource(n)
                .unwrap()
                .unwrap()
                .range
                .unwrap()
        })
        .collect();
    assert_eq!(ranges, [100..150, 150..210, 7..12]);
    assert!(media.is_live);
    let start = "#EXTM3U\n#EXTINF:2\n#EXT-X-BYTERANGE:";
    for bad in ["x", "5", "0@1", "18446744073709551615@1", "5@"] {
        assert_eq!(
            expect_error(&format!("{start}{bad}\nf.mp4\n")).kind,
            error::ErrorKind::Malformed,
            "{bad}"
        );
    }
}

#[test]
fn variants_with_audio_groups_are_video_only() {
    let title = parse_multivariant(
        "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"English\",LANGUAGE=\"en\",DEFAULT=YES,URI=\"a/en.m3u8\"\n\
         #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"muxed\",NAME=\"x\"\n\
         #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"x\",URI=\"s.m3u8\"\n\
         #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"c\",NAME=\"x\",INSTREAM-ID=\"CC1\"\n\
         #EXT-X-STREAM-INF:BANDWIDTH=2000000,AUDIO=\"a\",CODECS=\"avc1.4d401f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=24.000\nv/720.m3u8\n\
         #EXT-X-STREAM-INF:BANDWIDTH=900000,AUDIO=\"muxed\"\n\nv/360.m3u8\n\
         #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.5\"\na/low.m3u8\n\
         #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"i.m3u8\"\n",
    );
    let kinds: Vec<RenditionKind> = title
        .renditions
        .iter()
        .map(|rendition| rendition.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            RenditionKind::Audio,
            RenditionKind::Text,
            RenditionKind::Video,
            RenditionKind::Muxed,
            RenditionKind::Audio
        ]
    );
    let video = &title.renditions[2];
    assert_eq!(
        (video.bandwidth, video.resolution, video.frame_rate),
        (2_000_000, Some((1280, 720)), Some(24.0))
    );
    assert_eq!(video.group.as_deref(), Some("a"));
    let playlist = Url::parse("http://o.test/film/hls/v/720.m3u8").unwrap();
    assert_eq!(
        video.segment_sources,
        [SegmentListSource::Playlist(playlist)]
    );
    assert_eq!(title.renditions[0].language.as_deref(), Some("en"));
    assert_eq!(title.notes, ["I-frame playlists are ignored"]);
}

#[test]
fn variables_are_substituted_once() {
    let media = parse_media(
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"p\",VALUE=\"{$q}\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n#EXTINF:2\n{$p}/{$token}.ts\n",
    );
    let part = media.segments.segment_resource(0).unwrap().unwrap();
    assert_eq!(part.url.path(), "/film/hls/%7B$q%7D/a.ts");
    let undefined =
        expect_error("#EXTM3U\n#EXT-X-DEFINE:NAME=\"p\",VALUE=\"\"\n#EXTINF:2\n{$r}.ts\n");
    assert_eq!(undefined.to_string(), "undefined variable (in line 4)");
}

#[test]
fn invalid_playlists_are_refused_with_reason_and_line() {
    for (text, kind, message) in [
        ("", error::ErrorKind::Malformed, "#EXTM3U"),
        ("<html>", error::ErrorKind::Malformed, "#EXTM3U"),
        ("#EXTM3U\n", error::ErrorKind::Empty, "without segments"),
        ("#EXTM3U\nx.ts\n", error::ErrorKind::Malformed, "line 2"),
        (
            "#EXTM3U\n#EXTINF:x\nx.ts\n",
            error::ErrorKind::Malformed,
            "line 2",
        ),
        (
            "#EXTM3U\n#EXTINF:-1\nx.ts\n",
            error::ErrorKind::Malformed,
            "line 2",
        ),
        (
            "#EXTM3U\n#EXT-X-MAP:\n",
            error::ErrorKind::Malformed,
            "without URI",
        ),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n",
            error::ErrorKind::Empty,
            "no variant",
        ),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfile:///etc/passwd\n",
            error::ErrorKind::Unsupported,
            "line 3",
        ),
    ] {
        let error = expect_error(text);
        assert_eq!(error.kind, kind, "{text}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(
        parse_playlist(&playlist_url(), &[0xff, 0xfe, 0x00])
            .unwrap_err()
            .kind,
        error::ErrorKind::Malformed
    );
}

#[test]
fn playlists_over_the_limits_are_refused() {
    let mut text = "#EXTM3U\n".to_string();
    text.push_str(&"#EXTINF:2\na\n".repeat(SEGMENTS_MAX + 1));
    let error = expect_error(&text);
    assert_eq!(error.kind, error::ErrorKind::TooLarge);
    assert!(
        error.to_string().contains(&SEGMENTS_MAX.to_string()),
        "{error}"
    );
    let line = format!("#EXTM3U\n#{}\n", "x".repeat(70_000));
    assert_eq!(expect_error(&line).kind, error::ErrorKind::TooLarge);
}

#[test]
fn the_lines_of_a_playlist_with_their_variables_are_limited_together() {
    let value = "x".repeat(60_000);
    let playlist = |segments: usize| {
        let lines = "#EXTINF:2\n{$v}\n".repeat(segments);
        format!("#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"{value}\"\n{lines}")
    };
    assert_eq!(parse_media(&playlist(500)).segments.len(), 500);
    let error = expect_error(&playlist(600));
    assert_eq!(error.kind, error::ErrorKind::TooLarge);
    assert!(error.message.contains("with its variables"), "{error}");
}

#[test]
fn a_line_with_its_variables_is_limited() {
    let value = "x".repeat(60_000);
    let playlist = |rest: usize| {
        let rest = "y".repeat(rest);
        format!("#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"{value}\"\n#EXTINF:2\n{{$v}}{rest}\n")
    };
    let limit = 64 << 10;
    assert_eq!(parse_media(&playlist(limit - 60_000)).segments.len(), 1);
    let error = expect_error(&playlist(limit - 60_000 + 1));
    assert_eq!(error.kind, error::ErrorKind::TooLarge);
    assert!(error.message.contains("with its variables"), "{error}");
}

#[test]
fn iframe_lists_keys_and_gaps_are_reported() {
    let media = parse_media(
        "#EXTM3U\n#EXT-X-I-FRAMES-ONLY\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:2\n#EXT-X-GAP\na\n#EXTINF:2\nb\n",
    );
    assert!(media.is_iframes_only && media.is_encrypted);
    assert!(media.segments.is_gap(0) && !media.segments.is_gap(1));
}
