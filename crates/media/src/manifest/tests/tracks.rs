//! Tests of the descriptions of tracks in HLS and DASH: captions, purposes, defaults, identifiers
//! and scores.

use super::{audio_track, build_film, build_title, video_track};
use crate::codec::TrackFormat;
use crate::index::{Track, TrackRole};
use crate::manifest::dash::{self, TemplateAddressing};
use crate::manifest::{SegmentFormat, hls};
use crate::presentation::Presentation;

fn multivariant_text(title: &Presentation) -> String {
    hls::write_multivariant_playlist(title, SegmentFormat::Cmaf, false).expect("a playlist")
}

fn mpd_text(title: &Presentation) -> String {
    dash::write_mpd(title, TemplateAddressing::Time)
}

/// Returns the lines of a playlist that start with `tag`.
fn lines_of<'a>(text: &'a str, tag: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(tag)).collect()
}

/// Returns the value of an attribute, without quotes.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let key = format!("{name}=");
    let at = line.match_indices(&key).map(|(at, _)| at);
    let at = at
        .filter(|at| matches!(line.as_bytes()[at - 1], b':' | b',' | b' '))
        .last()?;
    let value = &line[at + key.len()..];
    Some(match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split(',').next()?,
    })
}

fn audio_with_roles(language: &str, size: u32, roles: &[TrackRole]) -> Track {
    Track {
        roles: roles.to_vec(),
        ..audio_track(language, size)
    }
}

/// Builds a film with English audio, an English commentary and an English audio description.
/// `order` is the order of the audio files.
fn build_film_with_audio_roles(order: &[usize]) -> Presentation {
    let tracks = [
        audio_with_roles("eng", 300, &[]),
        audio_with_roles("eng", 301, &[TrackRole::Commentary]),
        audio_with_roles("eng", 302, &[TrackRole::AudioDescription]),
    ];
    let audio = order.iter().map(|n| vec![tracks[*n].clone()]);
    build_title(
        [vec![video_track(9_000)]]
            .into_iter()
            .chain(audio)
            .collect(),
    )
}

#[test]
fn captions_are_declared_absent_only_by_the_operator() {
    let mut title = build_film();
    assert!(!multivariant_text(&title).contains("CLOSED-CAPTIONS"));
    title.manifest_rules.has_no_captions = true;
    let text = multivariant_text(&title);
    for line in lines_of(&text, "#EXT-X-STREAM-INF") {
        assert_eq!(attribute(line, "CLOSED-CAPTIONS"), Some("NONE"));
    }
    for line in lines_of(&text, "#EXT-X-I-FRAME-STREAM-INF") {
        assert_eq!(attribute(line, "CLOSED-CAPTIONS"), None);
    }
}

#[test]
fn commentary_and_audio_description_are_declared_in_hls() {
    // The main audio is the default for every order of the files.
    for order in [[0, 1, 2], [1, 2, 0], [2, 1, 0]] {
        let text = multivariant_text(&build_film_with_audio_roles(&order));
        let media = lines_of(&text, "#EXT-X-MEDIA");
        let by_name = |name| {
            let line = media
                .iter()
                .find(|line| attribute(line, "NAME") == Some(name));
            *line.unwrap_or_else(|| panic!("{name}: {text}"))
        };
        let facts = |name| {
            let line = by_name(name);
            let names = ["DEFAULT", "AUTOSELECT", "CHARACTERISTICS"];
            names.map(|name| attribute(line, name))
        };
        assert_eq!(facts("English"), [Some("YES"), Some("YES"), None]);
        assert_eq!(
            facts("English (commentary)"),
            [Some("NO"), Some("NO"), None]
        );
        assert_eq!(
            facts("English (audio description)"),
            [
                Some("NO"),
                Some("YES"),
                Some("public.accessibility.describes-video")
            ]
        );
    }
}

#[test]
fn commentary_and_audio_description_are_declared_in_dash() {
    let text = mpd_text(&build_film_with_audio_roles(&[1, 2, 0]));
    let sets: Vec<&str> = text.split("<AdaptationSet ").skip(2).collect();
    let role = |value| format!("<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"{value}\"/>");
    // Shaka Player starts with the first audio set, so the main audio is listed first.
    let [main, commentary, described] = &sets[..] else {
        panic!("{text}")
    };
    assert!(commentary.contains(&role("commentary")), "{commentary}");
    assert!(!commentary.contains("Accessibility"), "{commentary}");
    let aid =
        "<Accessibility schemeIdUri=\"urn:tva:metadata:cs:AudioPurposeCS:2007\" value=\"1\"/>";
    assert!(described.contains(aid), "{described}");
    assert!(described.contains(&role("alternate")), "{described}");
    assert!(described.contains(&role("description")), "{described}");
    assert!(main.contains(&role("main")), "{main}");
    let preferred: Vec<bool> = sets
        .iter()
        .map(|set| set.contains("selectionPriority"))
        .collect();
    assert_eq!(preferred, [true, false, false]);
}

/// Players select audio by language and characteristics, so only one rendition of each combination
/// has AUTOSELECT=YES (RFC 8216, 4.3.4.1.1).
#[test]
fn only_the_default_of_a_language_is_selected_automatically() {
    let disabled = Track {
        is_enabled: false,
        name: Some("Stage".to_owned()),
        ..audio_track("eng", 300)
    };
    let tracks = vec![video_track(9_000), disabled, audio_track("eng", 301)];
    let title = build_title(vec![tracks]);
    let text = multivariant_text(&title);
    let facts: Vec<_> = lines_of(&text, "#EXT-X-MEDIA")
        .iter()
        .map(|line| ["NAME", "DEFAULT", "AUTOSELECT"].map(|name| attribute(line, name)))
        .collect();
    let yes = [Some("English"), Some("YES"), Some("YES")];
    assert_eq!(facts, [yes, [Some("Stage"), Some("NO"), Some("NO")]]);
    let mpd = mpd_text(&title);
    assert_eq!(
        mpd.matches("value=\"main\"").count(),
        2,
        "video and English"
    );
}

/// If a group contained only a commentary, a player that chose this group could not play the film's
/// audio.
#[test]
fn a_commentary_in_another_coding_is_in_the_group_of_the_film() {
    let mut commentary = audio_with_roles("fra", 200, &[TrackRole::Commentary]);
    commentary.codec = crate::fixtures::build_opus_test_codec();
    let files = vec![commentary.clone(), audio_track("eng", 300)];
    let mut title = build_title(vec![vec![video_track(9_000)], files]);
    for choice in [None, Some("fr")] {
        title.manifest_rules.default_audio = choice.map(str::to_owned);
        let text = multivariant_text(&title);
        let media = lines_of(&text, "#EXT-X-MEDIA");
        let facts = |name| -> Vec<_> { media.iter().map(|line| attribute(line, name)).collect() };
        let group = Some("audio-mp4a.40.2-1");
        assert_eq!(facts("GROUP-ID"), [group, group]);
        assert_eq!(facts("DEFAULT"), [Some("YES"), Some("NO")]);
        assert_eq!(facts("AUTOSELECT"), [Some("YES"), Some("NO")]);
        let variants = lines_of(&text, "#EXT-X-STREAM-INF");
        assert_eq!(variants.len(), 1);
        let codecs = attribute(variants[0], "CODECS");
        assert_eq!(codecs, Some("avc1.64000C,mp4a.40.2,opus"));
    }
    // If the title has no other audio, the commentary plays by default.
    let text = multivariant_text(&build_title(vec![vec![video_track(9_000), commentary]]));
    let media = lines_of(&text, "#EXT-X-MEDIA");
    assert_eq!(attribute(media[0], "DEFAULT"), Some("YES"));
}

#[test]
fn audio_with_another_purpose_is_no_copy() {
    // The files differ only in the purpose of the audio.
    let file = |roles: &[TrackRole]| vec![audio_with_roles("eng", 300, roles)];
    let title = build_title(vec![
        vec![video_track(9_000)],
        file(&[]),
        file(&[TrackRole::Commentary]),
        file(&[]),
    ]);
    assert_eq!(title.audio_renditions().count(), 2);
}

#[test]
fn the_default_audio_follows_the_flags_or_the_setting() {
    let disabled = Track {
        is_enabled: false,
        ..audio_track("deu", 300)
    };
    let tracks = vec![
        video_track(9_000),
        disabled,
        audio_track("fra", 301),
        audio_track("por-BR", 302),
    ];
    let mut title = build_title(vec![tracks]);
    for (choice, default) in [
        (None, "fr"),
        (Some("de"), "de"),
        (Some("ger"), "de"),
        (Some("pt"), "pt-BR"),
        (Some("ja"), "fr"),
    ] {
        title.manifest_rules.default_audio = choice.map(str::to_owned);
        let text = multivariant_text(&title);
        let chosen: Vec<Option<&str>> = lines_of(&text, "#EXT-X-MEDIA")
            .into_iter()
            .filter(|line| attribute(line, "DEFAULT") == Some("YES"))
            .map(|line| attribute(line, "LANGUAGE"))
            .collect();
        assert_eq!(chosen, [Some(default)], "{choice:?}");
        let mpd = mpd_text(&title);
        let set = mpd
            .lines()
            .find(|line| line.contains("selectionPriority"))
            .expect("a default");
        assert_eq!(attribute(set, "lang"), Some(default));
    }
}

#[test]
fn variants_and_renditions_have_stable_ids() {
    let text = multivariant_text(&build_film());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, uri) = match line.split_once(':').map_or(line, |(tag, _)| tag) {
            "#EXT-X-MEDIA" => ("STABLE-RENDITION-ID", attribute(line, "URI")),
            "#EXT-X-STREAM-INF" => ("STABLE-VARIANT-ID", lines.next()),
            "#EXT-X-I-FRAME-STREAM-INF" => ("STABLE-VARIANT-ID", attribute(line, "URI")),
            _ => continue,
        };
        let id = attribute(line, name).unwrap_or_else(|| panic!("{line}"));
        // This part of the URL stays the same when the version of the film changes.
        let stable = uri.and_then(|uri| uri.split('/').nth(1)).expect("a URL");
        assert_eq!(id.strip_suffix(".keyframes").unwrap_or(id), stable);
        let legal = |c: char| c.is_ascii_alphanumeric() || "+/=.-_".contains(c);
        assert!(id.chars().all(legal), "{id}");
    }
}

/// Returns the bandwidth and the score of each variant, sorted by bandwidth.
fn scores_of(title: &Presentation) -> Vec<(u64, f64)> {
    let text = multivariant_text(title);
    let mut scores: Vec<(u64, f64)> = lines_of(&text, "#EXT-X-STREAM-INF")
        .into_iter()
        .map(|line| {
            let number = |name| attribute(line, name).expect("an attribute");
            let score = number("SCORE").parse().expect("a number");
            (number("BANDWIDTH").parse().expect("a number"), score)
        })
        .collect();
    scores.sort_by_key(|(bandwidth, _)| *bandwidth);
    scores
}

#[test]
fn scores_rise_with_the_bitrate_and_the_codec() {
    let scores = scores_of(&build_film());
    assert_eq!(scores.len(), 3);
    assert!(scores[0].1 > 0.0);
    assert!(scores.windows(2).all(|pair| pair[0].1 < pair[1].1));
    // HEVC at a slightly lower bitrate than AVC has a higher score.
    let mut hevc = video_track(8_000);
    hevc.codec = crate::fixtures::build_hevc_pq_test_codec();
    let scores = scores_of(&build_title(vec![vec![video_track(9_000), hevc]]));
    assert!(scores[0].1 > scores[1].1, "{scores:?}");
}

#[test]
fn stereo_video_requires_a_video_layout() {
    let mut stereo = video_track(30_000);
    if let TrackFormat::Video(video) = &mut stereo.codec.format {
        video.is_stereo = true;
    }
    let text = multivariant_text(&build_title(vec![vec![stereo, video_track(9_000)]]));
    assert!(text.starts_with("#EXTM3U\n#EXT-X-VERSION:12\n"), "{text}");
    for tag in ["#EXT-X-STREAM-INF", "#EXT-X-I-FRAME-STREAM-INF"] {
        let layouts: Vec<Option<&str>> = lines_of(&text, tag)
            .iter()
            .map(|line| attribute(line, "REQ-VIDEO-LAYOUT"))
            .collect();
        assert_eq!(layouts, [None, Some("CH-STEREO")]);
    }
    let plain = multivariant_text(&build_film());
    assert!(plain.starts_with("#EXTM3U\n#EXT-X-VERSION:7\n"));
}
