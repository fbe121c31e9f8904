//! Tests of HLS playlists, which are parsed with another library.

use super::{audio_track, build_film, build_title, video_track};
use crate::fixtures::{self, arbitrary_title};
use crate::index::Track;
use crate::manifest::{SegmentFormat, hls};
use crate::presentation::{PackagingRules, Presentation};
use m3u8_rs::{MasterPlaylist, MediaPlaylist, VariantStream};
use proptest::prelude::*;

fn multivariant_of(title: &Presentation, format: SegmentFormat) -> MasterPlaylist {
    parse_multivariant_text(
        &hls::write_multivariant_playlist(title, format, false)
            .expect("the format supports the title"),
    )
}

fn parse_multivariant_text(text: &str) -> MasterPlaylist {
    let (rest, playlist) = m3u8_rs::parse_master_playlist(text.as_bytes()).expect("a playlist");
    assert!(rest.is_empty(), "{text}");
    assert!(playlist.unknown_tags.is_empty(), "{text}");
    playlist
}

fn parse_media_text(text: &str) -> MediaPlaylist {
    let (rest, playlist) = m3u8_rs::parse_media_playlist(text.as_bytes()).expect("a playlist");
    assert!(rest.is_empty(), "{text}");
    playlist
}

fn media_names(playlist: &MasterPlaylist) -> Vec<(&str, &str)> {
    let pair = playlist.alternatives.iter();
    pair.map(|media| (media.group_id.as_str(), media.name.as_str()))
        .collect()
}

fn play_variants(playlist: &MasterPlaylist) -> Vec<&VariantStream> {
    playlist
        .variants
        .iter()
        .filter(|variant| !variant.is_i_frame)
        .collect()
}

fn other_attribute<'a>(variant: &'a VariantStream, name: &str) -> Option<&'a str> {
    variant
        .other_attributes
        .as_ref()?
        .get(name)
        .map(m3u8_rs::QuotedOrUnquoted::as_str)
}

/// Returns the path of a URL within the film's segment set.
fn path_in_set(url: &str) -> &str {
    let (set, rest) = url.split_once('/').expect("a folder");
    assert!(set.starts_with("6000-") && set.len() == 21, "{url}");
    rest
}

#[test]
fn a_ladder_with_two_languages_is_listed() {
    let playlist = multivariant_of(&build_film(), SegmentFormat::Cmaf);
    assert_eq!(
        (playlist.version, playlist.independent_segments),
        (Some(7), true)
    );
    let group = "audio-mp4a.40.2-1";
    assert_eq!(
        media_names(&playlist),
        [(group, "English"), (group, "French")]
    );
    let english = &playlist.alternatives[0];
    assert_eq!(english.language.as_deref(), Some("en"));
    assert_eq!((english.default, english.autoselect), (true, true));
    assert_eq!(english.channels.as_deref(), Some("1"));
    assert_eq!(
        english.uri.as_deref().map(path_in_set),
        Some("audio_eng=113000/hls.m3u8")
    );
    let french = &playlist.alternatives[1];
    assert_eq!((french.default, french.autoselect), (false, true));

    // The variant nearest to 2 Mbit/s is listed first. The others follow by falling bitrate.
    let variants = play_variants(&playlist);
    let uris: Vec<&str> = variants
        .iter()
        .map(|variant| path_in_set(&variant.uri))
        .collect();
    assert_eq!(
        uris,
        [
            "video=2053000/hls.m3u8",
            "video=6841000/hls.m3u8",
            "video=685000/hls.m3u8"
        ]
    );
    for variant in variants {
        assert_eq!(variant.codecs.as_deref(), Some("avc1.64000C,mp4a.40.2"));
        assert_eq!(variant.frame_rate, Some(25.0));
        assert_eq!(variant.audio.as_deref(), Some(group));
        assert_eq!(
            variant.resolution,
            Some(m3u8_rs::Resolution {
                width: 1280,
                height: 720
            })
        );
        assert_eq!(other_attribute(variant, "VIDEO-RANGE"), Some("SDR"));
        assert!(
            variant
                .average_bandwidth
                .is_some_and(|average| average <= variant.bandwidth)
        );
    }
    let iframes = playlist
        .variants
        .iter()
        .filter(|variant| variant.is_i_frame);
    let uris: Vec<&str> = iframes.map(|variant| path_in_set(&variant.uri)).collect();
    assert_eq!(uris[0], "video=2053000/keyframes.m3u8");
    assert_eq!(uris.len(), 3);
}

#[test]
fn bandwidth_matches_the_served_bytes() {
    let film = build_film();
    let playlist = multivariant_of(&film, SegmentFormat::Cmaf);
    let (_, video) = film
        .find_rendition("video=2053000")
        .expect("the rendition is listed");
    let (_, audio) = film
        .find_rendition("audio_eng=113000")
        .expect("the rendition is listed");
    let all = |r| -> u64 { (0..4).map(|n| film.plan_segment(r, n).len).sum() };
    // The video lasts 20 s. The 938 frames of the audio last a little longer, because they include
    // priming.
    let seconds = 938.0 * 1024.0 / 48_000.0;
    let average = (all(video) * 8) as f64 / 20.0 + (all(audio) * 8) as f64 / seconds;
    let stated = playlist.variants[0]
        .average_bandwidth
        .expect("the playlist declares it");
    assert!(
        stated.abs_diff(average as u64) <= 3,
        "{stated} for {average}"
    );
    // All segments except the last are 6 s long, and their sizes differ by only a few bytes.
    let largest = (0..3)
        .map(|n| film.plan_segment(video, n).len * 8 / 6)
        .max()
        .expect("three");
    assert!(video.bandwidth.peak.abs_diff(largest) <= 1);
}

#[test]
fn qualities_of_one_language_go_into_groups_of_their_own() {
    let files = vec![vec![
        video_track(9_000),
        audio_track("eng", 300),
        audio_track("eng", 900),
        audio_track("fra", 400),
    ]];
    let playlist = multivariant_of(&build_title(files), SegmentFormat::Cmaf);
    let (low, high) = ("audio-mp4a.40.2-1-2", "audio-mp4a.40.2-1");
    assert_eq!(
        media_names(&playlist),
        [
            (high, "English"),
            (high, "French"),
            (low, "English"),
            (low, "French")
        ]
    );
    let groups: Vec<_> = play_variants(&playlist)
        .iter()
        .map(|v| v.audio.clone())
        .collect();
    assert_eq!(groups, [Some(high.to_owned()), Some(low.to_owned())]);
    let uris: Vec<_> = playlist
        .alternatives
        .iter()
        .map(|media| media.uri.clone())
        .collect();
    assert_eq!(uris[1], uris[3]);
    assert_ne!(uris[0], uris[2]);
}

#[test]
fn alternatives_of_one_language_have_different_names() {
    let commentary = Track {
        name: Some("Director \"speaks\"\n".into()),
        ..audio_track("eng", 300)
    };
    let unnamed = audio_track("und", 300);
    let files = vec![vec![
        video_track(9_000),
        audio_track("eng", 300),
        commentary,
        audio_track("eng", 301),
        unnamed,
    ]];
    let playlist = multivariant_of(&build_title(files), SegmentFormat::Cmaf);
    let names: Vec<&str> = playlist
        .alternatives
        .iter()
        .map(|m| m.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["English", "Director 'speaks'", "English 2", "Audio"]
    );
    let selected: Vec<bool> = playlist.alternatives.iter().map(|m| m.autoselect).collect();
    assert_eq!(selected, [true, false, false, true]);
    assert_eq!(playlist.alternatives[3].language, None);
}

#[test]
fn codecs_are_complete_for_each_group() {
    let surround = Track {
        codec: fixtures::build_ac3_test_codec(),
        ..audio_track("eng", 1500)
    };
    let mut hdr = video_track(20_000);
    hdr.codec = fixtures::build_hevc_pq_test_codec();
    let playlist = multivariant_of(
        &build_title(vec![
            vec![video_track(9_000), audio_track("eng", 300), surround],
            vec![hdr],
        ]),
        SegmentFormat::Cmaf,
    );
    let variants = play_variants(&playlist);
    let codecs: Vec<&str> = variants
        .iter()
        .filter_map(|v| v.codecs.as_deref())
        .collect();
    assert_eq!(codecs.len(), 4);
    assert!(codecs[0].starts_with("avc1.") && codecs[0].ends_with(",mp4a.40.2"));
    assert!(codecs[1].starts_with("hvc1.") && codecs[1].ends_with(",mp4a.40.2"));
    assert!(codecs[3].starts_with("hvc1.") && codecs[3].ends_with(",ac-3"));
    assert_eq!(other_attribute(variants[0], "VIDEO-RANGE"), Some("SDR"));
    assert_eq!(other_attribute(variants[1], "VIDEO-RANGE"), Some("PQ"));
}

#[test]
fn audio_only_titles_list_their_audio() {
    let playlist = multivariant_of(
        &build_title(vec![vec![audio_track("eng", 300)]]),
        SegmentFormat::Cmaf,
    );
    assert!(playlist.alternatives.is_empty());
    assert_eq!(playlist.variants.len(), 1);
    assert_eq!(
        path_in_set(&playlist.variants[0].uri),
        "audio_eng=113000/hls.m3u8"
    );
    assert_eq!(playlist.variants[0].codecs.as_deref(), Some("mp4a.40.2"));
    assert_eq!(playlist.variants[0].audio, None);

    let two = build_title(vec![vec![audio_track("eng", 300), audio_track("fra", 300)]]);
    let playlist = multivariant_of(&two, SegmentFormat::Cmaf);
    assert_eq!(playlist.alternatives.len(), 2);
    assert_eq!(playlist.variants.len(), 1);
    assert_eq!(
        playlist.variants[0].audio.as_deref(),
        Some("audio-mp4a.40.2-1")
    );
}

#[test]
fn transport_streams_list_only_supported_codecs() {
    let film = build_film();
    let playlist = multivariant_of(&film, SegmentFormat::Ts);
    assert_eq!(playlist.version, Some(4));
    assert!(
        playlist
            .variants
            .iter()
            .all(|v| !v.is_i_frame && v.uri.ends_with("/ts.m3u8"))
    );
    let (_, rendition) = film
        .find_rendition("audio_fra=75000")
        .expect("the rendition is listed");
    let text = hls::write_media_playlist(&film, rendition, SegmentFormat::Ts, None)
        .expect("AAC can be packed");
    assert!(text.contains("#EXT-X-VERSION:3\n") && !text.contains("EXT-X-MAP"));
    assert!(
        parse_media_text(&text)
            .segments
            .iter()
            .all(|segment| segment.uri.ends_with(".aac"))
    );

    let opus = Track {
        codec: fixtures::build_opus_test_codec(),
        ..audio_track("eng", 300)
    };
    let alone = build_title(vec![vec![opus.clone()]]);
    assert_eq!(
        hls::write_multivariant_playlist(&alone, SegmentFormat::Ts, false),
        None
    );
    assert_eq!(
        hls::write_media_playlist(&alone, &alone.renditions[0], SegmentFormat::Ts, None),
        None
    );
    // Video is listed without audio if the segment format does not support the audio codec.
    let silent = multivariant_of(
        &build_title(vec![vec![video_track(9_000), opus]]),
        SegmentFormat::Ts,
    );
    assert_eq!((silent.variants.len(), silent.alternatives.len()), (1, 0));
    let mut vp9 = video_track(9_000);
    if let crate::codec::TrackFormat::Video(video) = &mut vp9.codec.format {
        video.nal = None;
    }
    let blind = build_title(vec![vec![vp9, audio_track("eng", 300)]]);
    assert_eq!(
        hls::write_multivariant_playlist(&blind, SegmentFormat::Ts, false),
        None
    );
}

#[test]
fn encrypted_segments_follow_their_key_and_count_their_padding() {
    use m3u8_rs::KeyMethod;
    let film = build_film();
    let rendition = film.video_renditions().next().expect("a video");
    let url = Some("https://keys/\"a\"");
    for format in [SegmentFormat::Cmaf, SegmentFormat::Ts] {
        let text = hls::write_media_playlist(&film, rendition, format, url)
            .expect("the format supports the title");
        let (before, _) = text.split_once("#EXTINF").expect("a segment");
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"https://keys/";
        let (before, _) = before.split_once(key).expect("a key before it");
        // The `EXT-X-MAP` precedes the `EXT-X-KEY`, so the init segment is not encrypted (RFC 8216,
        // 4.3.2.4).
        assert_eq!(before.contains("#EXT-X-MAP"), format == SegmentFormat::Cmaf);
        assert_eq!(text.matches("#EXT-X-KEY").count(), 1);
        let playlist = parse_media_text(&text);
        assert_eq!(playlist.media_sequence, hls::FIRST_MEDIA_SEQUENCE);
        let key = playlist.segments[0].key.as_ref().expect("a key");
        assert_eq!((&key.method, &key.iv), (&KeyMethod::AES128, &None));

        let text = hls::write_multivariant_playlist(&film, format, true)
            .expect("the format supports the title");
        assert!(!text.contains("I-FRAME"));
        let (clear, encrypted) = (
            multivariant_of(&film, format),
            parse_multivariant_text(&text),
        );
        let both = play_variants(&clear)
            .into_iter()
            .zip(play_variants(&encrypted));
        for (clear, encrypted) in both {
            // The padding makes the video segment and the audio segment longer by up to one cipher
            // block each.
            let more = encrypted.bandwidth - clear.bandwidth;
            assert!(more > 0 && more < 4 * 16 * 8, "{more}");
        }
    }
}

#[test]
fn a_late_track_has_its_lead_in_the_first_segment() {
    let mut late = audio_track("eng", 300);
    late.presentation_offset = 48_000 * 2;
    let film = build_title(vec![vec![video_track(9_000), late]]);
    let rendition = film.audio_renditions().next().expect("the audio");
    let playlist = parse_media_text(
        &hls::write_media_playlist(&film, rendition, SegmentFormat::Cmaf, None)
            .expect("CMAF supports every codec"),
    );
    // The film's segment boundaries are at 6, 12 and 18 s. The audio starts at 2 s, but the listed
    // duration of its first segment includes these 2 s.
    assert!((playlist.segments[0].duration - 6.0).abs() < 0.022);
    assert!((playlist.segments[1].duration - 6.0).abs() < 0.022);
    let zero = film.presentation_time_offset.round_to(48_000) as u64;
    assert_eq!(film.segment_start(rendition, 0), zero + 96_000);
}

#[test]
fn frame_rates_have_three_decimals() {
    for (timescale, durations, expected) in [
        (30_000, vec![1001; 300], "FRAME-RATE=29.970,"),
        (24_000, vec![1001; 300], "FRAME-RATE=23.976,"),
        (1000, [33, 33, 34].repeat(100), "FRAME-RATE=30.000,"),
        (12_800, vec![512; 300], "FRAME-RATE=25.000,"),
        (1000, vec![80; 300], "FRAME-RATE=12.500,"),
    ] {
        let row = |(n, duration): (usize, &u32)| (*duration, 0, 2000, n % 30 == 0);
        let rows: Vec<_> = durations.iter().enumerate().map(row).collect();
        let track = fixtures::build_track(
            fixtures::build_avc_test_codec(640, 360),
            timescale,
            0,
            &rows,
        );
        let text = hls::write_multivariant_playlist(
            &build_title(vec![vec![track]]),
            SegmentFormat::Cmaf,
            false,
        )
        .expect("CMAF");
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

/// Builds a video with open GOPs: every key frame except the first has leading pictures.
fn open_gop_track() -> Track {
    let row = |n: u32| {
        let offset = match n % 50 {
            0 if n > 0 => 4,
            1 | 2 if n > 2 => 1,
            _ => 2,
        };
        (512, offset * 512, 2000, n.is_multiple_of(50))
    };
    let rows: Vec<_> = (0..500).map(row).collect();
    fixtures::build_track(
        fixtures::build_avc_test_codec(640, 360),
        12_800,
        -1024,
        &rows,
    )
}

#[test]
fn open_gops_are_not_listed_as_independent_segments() {
    let film = build_title(vec![vec![open_gop_track(), audio_track("eng", 300)]]);
    assert!(!multivariant_of(&film, SegmentFormat::Cmaf).independent_segments);
    let is_independent = |rendition| {
        let text = hls::write_media_playlist(&film, rendition, SegmentFormat::Cmaf, None);
        parse_media_text(&text.expect("CMAF supports every codec")).independent_segments
    };
    let found: Vec<bool> = film.renditions.iter().map(is_independent).collect();
    assert_eq!(found, [false, true], "video, audio");
    let keys = hls::write_iframe_playlist(&film, &film.renditions[0]).expect("video");
    assert!(parse_media_text(&keys).independent_segments);
}

#[test]
fn key_frames_of_open_gops_tile_the_film() {
    let film = build_title(vec![vec![open_gop_track()]]);
    let video = &film.renditions[0];
    let keys = hls::write_iframe_playlist(&film, video).expect("video");
    let total: i64 = extinf_nanos(&keys).iter().sum();
    assert_eq!(total, 20_000_000_000);
    // Two leading pictures of 40 ms each precede the second key frame, so this key frame is
    // presented at 2.08 s.
    assert_eq!(extinf_nanos(&keys)[0], 2_080_000_000);
}

#[test]
fn the_target_duration_covers_the_first_key_frame_of_late_open_gops() {
    let mut late = open_gop_track();
    late.presentation_offset += i64::from(late.timescale) * 44 / 100;
    let whole = build_title(vec![vec![late, audio_track("eng", 900)]]);
    let rules = PackagingRules {
        segment_duration_ms: 2000,
    };
    let film = Presentation::new(whole.files, &rules).expect("a legal title");
    let keys = hls::write_iframe_playlist(&film, &film.renditions[0]).expect("video");
    // The audio starts 0.461 s before the video, and the listed duration of the first key frame
    // includes this time. The second key frame follows 2.08 s after the first key frame. The listed
    // duration of 2.541 s is rounded to 3 s.
    assert_eq!(extinf_nanos(&keys)[0], 2_541_328_000);
    assert_eq!(film.target_duration_s, 3);
}

#[test]
fn a_trim_inside_a_gop_is_listed_with_a_precise_start() {
    let mut trimmed = video_track(9_000);
    trimmed.presentation_offset -= 6_401;
    let title = build_title(vec![vec![trimmed, audio_track("eng", 300)]]);
    let text = hls::write_multivariant_playlist(&title, SegmentFormat::Cmaf, false).expect("CMAF");
    assert!(
        text.contains("\n#EXT-X-START:TIME-OFFSET=0.500079,PRECISE=YES\n"),
        "{text}"
    );
    let whole = hls::write_multivariant_playlist(&build_film(), SegmentFormat::Cmaf, false);
    assert!(!whole.expect("CMAF").contains("EXT-X-START"));
}

/// Returns the printed EXTINF durations in nanoseconds.
fn extinf_nanos(text: &str) -> Vec<i64> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("#EXTINF:")?.strip_suffix(','));
    let parse = |line: &str| {
        let (whole, fraction) = line.split_once('.').expect("a decimal point");
        assert!(fraction.len() >= 6);
        format!("{whole}{fraction:0<9}").parse().expect("digits")
    };
    lines.map(parse).collect()
}

proptest! {
    #[test]
    fn playlists_match_the_served_segments(files in arbitrary_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        multivariant_of(&title, SegmentFormat::Cmaf);
        for rendition in &title.renditions {
            let text = hls::write_media_playlist(&title, rendition, SegmentFormat::Cmaf, None).expect("CMAF supports every codec");
            let playlist = parse_media_text(&text);
            prop_assert!(playlist.end_list);
            prop_assert_eq!(playlist.segments.len(), rendition.segment_count());
            prop_assert_eq!(&playlist.segments[0].map.as_ref().expect("a map").uri, "init.mp4");
            for (n, segment) in playlist.segments.iter().enumerate() {
                let name = segment.uri.strip_suffix(".m4s");
                let time = name.expect("CMAF").parse().expect("a time");
                prop_assert_eq!(title.find_segment(rendition, time), Some(n));
            }
            // The printed durations are rounded, but the error of their sum stays below one tick of
            // the track.
            let timescale = i64::from(title.track(rendition).timescale);
            let mut sum = 0;
            let mut exact = title.late_start_ticks(rendition) as i64;
            for (n, nanos) in extinf_nanos(&text).into_iter().enumerate() {
                sum += nanos;
                exact += title.segment_duration_ticks(rendition, n) as i64;
                let error = i128::from(sum) * i128::from(timescale) - i128::from(exact) * 1_000_000_000;
                prop_assert!(error.abs() < 1_000_000_000, "{error} at {n}");
                prop_assert!((nanos + 500_000_000) / 1_000_000_000 <= i64::from(title.target_duration_s));
            }
        }
    }

    #[test]
    fn iframe_playlists_match_the_served_key_frames(files in arbitrary_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        for rendition in &title.renditions {
            let Some(text) = hls::write_iframe_playlist(&title, rendition) else {
                prop_assert!(title.track(rendition).codec.audio().is_some());
                continue;
            };
            let playlist = parse_media_text(&text);
            prop_assert!(playlist.i_frames_only && playlist.end_list);
            prop_assert_eq!(playlist.target_duration, u64::from(title.target_duration_s));
            for segment in &playlist.segments {
                let name = segment.uri.strip_prefix("key/").and_then(|name| name.strip_suffix(".m4s"));
                let time = name.expect("its folder").parse().expect("a time");
                prop_assert!(title.find_key_frame_by_time(rendition, time).is_some());
            }
            let longest = extinf_nanos(&text).into_iter().max().unwrap_or(0);
            prop_assert!((longest + 500_000_000) / 1_000_000_000 <= i64::from(title.target_duration_s));
        }
    }
}
