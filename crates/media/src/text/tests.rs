use super::*;
use crate::fixtures::{self, build_index_of_tracks};
use crate::manifest::SegmentFormat;
use crate::manifest::dash::{TemplateAddressing, write_mpd};
use crate::manifest::hls::write_multivariant_playlist;
use crate::presentation::{PackagingRules, Presentation};
use crate::time::Time;
use std::sync::Arc;

fn parse(text: &str) -> (CueList, Vec<CueProblem>) {
    let mut problems = Vec::new();
    let list = parse_vtt(text, &mut problems);
    (list, problems)
}

fn film() -> Presentation {
    let track = fixtures::build_video_track(20, 50, 1000);
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    Presentation::new(vec![build_index_of_tracks(vec![track])], &rules).unwrap()
}

#[test]
fn webvtt_is_read_with_its_styles_ids_and_settings() {
    let (list, problems) = parse(
        "\u{feff}WEBVTT - title\r\n\r\nSTYLE\r\n::cue(b) { color: red }\r\n\r\nNOTE\r\nx --\r\n\r\nid 1\r\n01:02.500 --> 1:00:00.000  line:0   align:start\r\n<b>a</b>\r\nb\r\n\r\n00:00.000 --> 00:01.000\nfirst\n"
            .trim_start_matches('\u{feff}'),
    );
    assert_eq!(list.header, "STYLE\n::cue(b) { color: red }");
    let [first, second] = list.cues() else {
        panic!("{list:?}");
    };
    assert_eq!((first.start_ms, first.payload.as_str()), (0, "first"));
    assert_eq!((second.start_ms, second.end_ms), (62_500, 3_600_000));
    assert_eq!(
        (&*second.id, &*second.settings, &*second.payload),
        ("id 1", "line:0 align:start", "<b>a</b>\nb")
    );
    assert_eq!(problems, [CueProblem::Unsorted(0)]);
}

#[test]
fn what_is_written_is_read_back() {
    let text = "WEBVTT\n\nREGION\nid:r\n\na\n00:00:01.000 --> 00:00:02.000 line:0\n<i>x</i>\n\n00:00:03.000 --> 100:00:04.567\ny\nz\n\n";
    let (list, problems) = parse(text);
    assert_eq!((write_vtt(&list), problems), (text.to_owned(), Vec::new()));
}

#[test]
fn subrip_is_converted_to_webvtt() {
    let mut problems = Vec::new();
    let list = parse_srt(
        "1\n00:00:01,000 --> 00:00:02,5 X1:0 X2:1\n{\\an8}<i>a</i> & <b>b\n\n2 < 3 <font color=\"#FFFF00\">c</font>\n\n2\n00:00:03.000 --> 00:00:04.000\n10\n3\n00:00:05,000 --> 00:00:06,000\n<unknown> {\\pos(1,2)}x --> y\n",
        &mut problems,
    );
    let cues: Vec<_> = list
        .cues()
        .iter()
        .map(|cue| (cue.start_ms, cue.end_ms, &*cue.settings, &*cue.payload))
        .collect();
    assert_eq!(
        cues,
        [
            (
                1000,
                2500,
                "line:0",
                "<i>a</i> &amp; <b>b\n2 &lt; 3 <c.yellow>c</c>"
            ),
            (3000, 4000, "", "10"),
        ]
    );
    // A line of text with an arrow is reported, because it looks like a line with times.
    assert_eq!(
        problems,
        [CueProblem::Malformed(12), CueProblem::Empty(5000)]
    );
}

#[test]
fn ttml_is_converted_with_its_styles_and_regions() {
    let mut problems = Vec::new();
    let list = parse_ttml(
        r##"<?xml version="1.0"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="24" ttp:frameRateMultiplier="1000 1001" ttp:tickRate="10000000">
 <head>
  <styling><style xml:id="s" tts:color="yellow"/><style xml:id="i" tts:fontStyle="italic"/></styling>
  <layout><region xml:id="top" tts:origin="10% 10%" tts:extent="80% 20%"/></layout>
 </head>
 <body begin="1s"><div begin="00:00:01.000">
  <p xml:id="a" begin="0.5s" end="2s" region="top" style="s" tts:textAlign="center">One &amp; <span style="i">two</span><br/>
   three &lt;b&gt;</p>
  <p begin="00:00:10:12" dur="5000000t">frames</p>
  <p begin="20s">endless</p>
  <p begin="30s" end="32s"><span begin="0s" end="1s">x</span><span begin="1s" end="2s">y</span></p>
 </div></body></tt>"##,
        60_000,
        &mut problems,
    );
    let cues: Vec<_> = list
        .cues()
        .iter()
        .map(|cue| (cue.start_ms, cue.end_ms, &*cue.settings, &*cue.payload))
        .collect();
    let one = "<c.yellow>One &amp; <i>two</i>\nthree &lt;b></c>";
    assert_eq!(
        cues,
        [
            (2500, 4000, "line:10% size:80% position:50%,center", one),
            (12_500, 13_000, "", "frames"),
            (22_000, 60_000, "", "endless"),
            (32_000, 33_000, "", "x"),
            (33_000, 34_000, "", "y"),
        ]
    );
    assert_eq!(
        problems,
        [
            CueProblem::Overlapping(32_000),
            CueProblem::Overlapping(33_000)
        ]
    );
    problems.clear();
    for broken in ["", "<x/>", "<tt>", "WEBVTT"] {
        parse_ttml(broken, 60_000, &mut problems);
    }
    assert_eq!(
        problems,
        [
            CueProblem::Malformed(1),
            CueProblem::Malformed(1),
            CueProblem::Malformed(1),
            CueProblem::Malformed(1)
        ]
    );
}

#[test]
fn samples_of_3gpp_text_are_converted() {
    let sample = |text: &str, styles: &[u8]| {
        let mut out = (text.len() as u16).to_be_bytes().to_vec();
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(styles);
        tx3g::parse_tx3g_sample(&out).map(|cue| cue.payload)
    };
    let styled = b"\0\0\0\x16styl\0\x01\0\x01\0\x03\0\x01\x03\x10\xff\xff\xff\xff";
    assert_eq!(
        sample("aßc<d\r\n\r\ne", styled).unwrap(),
        "a<b><i>ßc</i></b>&lt;d\ne"
    );
    assert_eq!(sample("", b""), None);
    assert_eq!(tx3g::parse_tx3g_sample(b"\0\xffa"), None);
    assert_eq!(
        tx3g::parse_tx3g_sample(b"\0\x04\xfe\xff\0x")
            .unwrap()
            .payload,
        "x"
    );
    let entry = |flags| [&[0; 16][..], &[flags, 0, 0, 0]].concat();
    assert!(tx3g::is_forced_track(&entry(0xc0)) && !tx3g::is_forced_track(&entry(0x40)));
}

#[test]
fn old_encodings_are_read() {
    let mut problems = Vec::new();
    assert_eq!(decode_text(b"\xef\xbb\xbfa\xc3\xa9", &mut problems), "aé");
    assert_eq!(decode_text(b"\xff\xfea\0\xe9\0", &mut problems), "aé");
    assert_eq!(decode_text(b"\xfe\xff\0a\0\xe9", &mut problems), "aé");
    assert_eq!(problems, []);
    assert_eq!(
        decode_text(b"a\xe9 \x93x\x94 \x80", &mut problems),
        "aé “x” €"
    );
    assert_eq!(problems, [CueProblem::NotUnicode]);
}

#[test]
fn defective_cues_are_dropped_and_reported() {
    let (list, problems) = parse(
        "WEBVTT\n\n00:02.000 --> 00:01.000\nback\n\n00:03.000 --> 00:04.000\n\n00:05.000 --> 00:09.000\na\n\n00:06.000 --> 00:07.000\nb\n\n00:08.000 --> 00:10.000\nc\n\n0:99.000 --> 1\nx\n",
    );
    assert_eq!(list.cues().len(), 3);
    assert_eq!(
        problems,
        [
            CueProblem::Malformed(17),
            CueProblem::NotShown(2000),
            CueProblem::Empty(3000),
            CueProblem::Overlapping(6000),
            CueProblem::Overlapping(8000),
        ]
    );
    let within = |range| {
        list.cues_within(range)
            .map(|cue| &*cue.payload)
            .collect::<String>()
    };
    assert_eq!(within(0..5000), "");
    assert_eq!(within(5000..5001), "a");
    assert_eq!(within(7000..8000), "a");
    assert_eq!(within(8500..20_000), "ac");
    assert_eq!(within(9000..20_000), "c");
    assert_eq!(within(i64::MIN..i64::MAX), "abc");
}

/// The film starts 80 ms after time zero of the media. Without `X-TIMESTAMP-MAP`, or with a map to
/// another clock, players showed the cues 80 ms early.
#[test]
fn the_map_names_the_start_of_the_film_on_the_clock_of_the_container() {
    let (list, _) = parse("WEBVTT\n\n00:00.500 --> 00:02.500\na\n");
    let zero = Time::from_ms(80);
    let map = |format, zero| {
        let text = write_vtt_segment(&list, 0..1000, zero, format);
        text.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        map(SegmentFormat::Cmaf, zero),
        "X-TIMESTAMP-MAP=MPEGTS:7200,LOCAL:00:00:00.000"
    );
    assert_eq!(
        map(SegmentFormat::Ts, zero),
        "X-TIMESTAMP-MAP=MPEGTS:907200,LOCAL:00:00:00.000"
    );
    let day = Time::new((1 << 33) + 90_000, 90_000);
    assert_eq!(
        map(SegmentFormat::Cmaf, day),
        "X-TIMESTAMP-MAP=MPEGTS:90000,LOCAL:00:00:00.000"
    );
}

#[test]
fn a_cue_is_whole_in_every_webvtt_segment_that_it_overlaps() {
    let (list, _) = parse("WEBVTT\n\n00:05.000 --> 00:13.000\nlong\n");
    let film = film();
    let grid = film.text_segment_times().unwrap();
    let segments: Vec<bool> = (0..grid.segment_count())
        .map(|n| {
            let shown = grid.shown_ms(n);
            let text =
                write_vtt_segment(&list, shown, grid.served_film_start(), SegmentFormat::Cmaf);
            text.contains("00:00:05.000 --> 00:00:13.000\nlong")
        })
        .collect();
    assert_eq!(segments, [true, true, true, false]);
}

#[test]
fn samples_of_webvtt_in_cmaf_cover_each_segment() {
    let (list, _) =
        parse("WEBVTT\n\n00:05.000 --> 00:13.000\nlong\n\n00:06.500 --> 00:07.000\nshort\n");
    let film = film();
    let grid = film.text_segment_times().unwrap();
    for n in 0..grid.segment_count() {
        let segment = write_wvtt_segment(&grid, &list, n);
        let at = segment.windows(4).position(|name| name == b"trun").unwrap();
        let word = |n: usize| {
            let bytes = segment[at + 8 + n * 4..][..4].try_into().unwrap();
            u64::from(u32::from_be_bytes(bytes))
        };
        let samples = word(0);
        let ticks: u64 = (0..samples).map(|n| word(2 + 2 * n as usize)).sum();
        let bytes: u64 = (0..samples).map(|n| word(3 + 2 * n as usize)).sum();
        assert_eq!(ticks, grid.segment_start(n + 1) - grid.segment_start(n));
        let mdat = segment.windows(4).position(|name| name == b"mdat").unwrap();
        assert_eq!(bytes as usize, segment.len() - mdat - 4);
        assert_eq!(samples, [2, 3, 2, 1][n], "segment {n}");
    }
}

#[test]
fn renditions_of_one_language_have_different_names() {
    let text = |language: &str, kind| TextRendition {
        language: language.into(),
        kind,
        ..TextRendition::default()
    };
    let renditions = vec![
        text("eng", TextKind::Subtitles),
        text("en", TextKind::Forced),
        text("und", TextKind::Subtitles),
    ];
    let set = TextSet::new(renditions.clone());
    let names: Vec<&str> = set.renditions().map(|(name, _)| name).collect();
    assert_eq!(names, ["text=en", "text=en-2", "text=und"]);
    assert_eq!(set.content_hash(), TextSet::new(renditions).content_hash());
    let other = TextSet::new(vec![text("eng", TextKind::Captions)]);
    assert_ne!(set.content_hash(), other.content_hash());
}

#[test]
fn plain_subtitles_are_the_first_text_of_their_language() {
    let text = |language: &str, kind| TextRendition {
        language: language.into(),
        kind,
        ..TextRendition::default()
    };
    let set = TextSet::new(vec![
        text("fr", TextKind::EasyToRead),
        text("en", TextKind::Captions),
        text("fr", TextKind::Forced),
        text("eng", TextKind::Subtitles),
    ]);
    let kinds = set.renditions().map(|(name, text)| (name, text.kind));
    let expected = [
        ("text=fr", TextKind::Forced),
        ("text=fr-2", TextKind::EasyToRead),
        ("text=en", TextKind::Subtitles),
        ("text=en-2", TextKind::Captions),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}

#[test]
fn only_the_first_default_text_is_the_default_in_both_manifests() {
    let text = |language: &str, is_default| TextRendition {
        language: language.into(),
        is_default,
        ..TextRendition::default()
    };
    let text = vec![text("de", false), text("en", true), text("fr", true)];
    let film = film().with_text(Arc::new(TextSet::new(text)));
    let hls = write_multivariant_playlist(&film, SegmentFormat::Cmaf, false).unwrap();
    let tags = hls.lines().filter(|line| line.contains("TYPE=SUBTITLES"));
    let defaults: Vec<bool> = tags.map(|tag| tag.contains(",DEFAULT=YES")).collect();
    assert_eq!(defaults, [false, true, false]);
    let mpd = write_mpd(&film, TemplateAddressing::Time);
    let sets = mpd.split("<AdaptationSet ").skip(1);
    let sets = sets.filter(|set| set.contains("contentType=\"text\""));
    let marks = ["selectionPriority=\"2\"", "value=\"main\""];
    let sets: Vec<_> = sets.map(|set| marks.map(|m| set.contains(m))).collect();
    assert_eq!(sets, [[false; 2], [true; 2], [false; 2]]);
}

#[test]
fn text_changes_its_own_version_only() {
    let film = film();
    let text = TextSet::new(vec![TextRendition::default()]);
    let with_text = film.clone().with_text(Arc::new(text));
    assert_eq!(film.segment_folder_name(), with_text.segment_folder_name());
    assert_ne!(film.text_version(), with_text.text_version());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_video(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        find_caption_channels(&fixtures::build_avc_test_codec(640, 360), &bytes);
    }

    #[test]
    fn the_length_of_a_segment_is_known_without_writing_it(
        shown in proptest::collection::vec((0i64..25_000, 1i64..15_000, 0usize..8), 0..90)
    ) {
        let has = |bits: usize, bit: usize, text: &str| text.repeat(bits >> bit & 1);
        let cues = shown.iter().map(|(start_ms, ms, bits)| Cue {
            start_ms: *start_ms,
            end_ms: start_ms + ms,
            id: has(*bits, 0, "id"),
            settings: has(*bits, 1, "line:0"),
            payload: format!("text{}", has(*bits, 2, "\nof two lines")),
        });
        let list = CueList::from_cues(String::new(), cues.collect(), &mut Vec::new());
        let film = film();
        let grid = film.text_segment_times().unwrap();
        for n in 0..grid.segment_count() {
            let written = write_wvtt_segment(&grid, &list, n).len();
            proptest::prop_assert_eq!(cmaf::wvtt_segment_len(&grid, &list, n), written);
        }
    }

    #[test]
    fn any_bytes_are_samples(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        tx3g::parse_tx3g_sample(&bytes);
        wvtt::parse_wvtt_sample(&bytes);
        wvtt::read_wvtt_entry_header(&bytes);
    }

    #[test]
    fn any_file_is_parsed_and_its_segments_are_read_back(text in "(WEBVTT\n\n|[0-9]{1,2}:[0-9]{2}[.,][0-9]{1,3}| --> |\n|[a-z<>&{}]|line:0 |STYLE\n){0,40}") {
        for parse in [parse_vtt, parse_srt] {
            let list = parse(&text, &mut Vec::new());
            let (again, _) = self::parse(&write_vtt(&list));
            proptest::prop_assert_eq!(&again.cues(), &list.cues());
        }
    }
}

/// The first picture is 80 ms after the start of the film. When the first text segment started with
/// the first picture, Shaka Player showed the cues of all later segments 80 ms late.
#[test]
fn the_first_segment_starts_with_the_film_if_the_picture_is_late() {
    let late = crate::index::Track {
        presentation_offset: 1024,
        ..fixtures::build_video_track(20, 50, 1000)
    };
    let tracks = vec![late, fixtures::build_audio_track(20, 300)];
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    let film = Presentation::new(vec![build_index_of_tracks(tracks)], &rules).unwrap();
    let grid = film.text_segment_times().unwrap();
    let zero = grid.served_film_start().round_to(grid.timescale()) as u64;
    let picture = film.segment_start(&film.renditions[0], 0);
    assert!(zero < picture, "{zero} {picture}");
    assert_eq!(grid.segment_start(0), zero);
    assert_eq!(
        (grid.find_segment(zero), grid.find_segment(picture)),
        (Some(0), None)
    );
    for n in 0..grid.segment_count() {
        assert_eq!(grid.find_segment(grid.segment_start(n)), Some(n));
    }
}

#[test]
fn captions_inside_of_video_are_found() {
    let codec = fixtures::build_avc_test_codec(640, 360);
    let sample = |triplets: &[[u8; 3]]| {
        let mut data = b"\xb5\0\x31GA94\x03".to_vec();
        data.extend([0x40 | triplets.len() as u8, 0xff]);
        data.extend(triplets.concat());
        data.push(0xff);
        let mut unit = vec![6, 1, 1, 0x80, 4, data.len() as u8];
        unit.extend(data);
        unit.push(0x80);
        let mut out = vec![0, 0, 0, 2, 9, 0x10];
        out.extend((unit.len() as u32).to_be_bytes());
        out.extend(unit);
        out.extend([0, 0, 0, 2, 0x65, 0x88]);
        out
    };
    let find = |triplets: &[[u8; 3]]| find_caption_channels(&codec, &sample(triplets));
    use CaptionChannel::{Cea608, Cea708};
    assert_eq!(find(&[[0xfc, 0x80, 0x80], [0xfd, 0x80, 0x80]]), [Cea608(1)]);
    assert_eq!(find(&[[0xf8, 0x94, 0x20]]), []);
    let several = [
        [0xfd, 0x94, 0x20],
        [0xfc, 0x1c, 0x20],
        [0xff, 0x02, 0x21],
        [0xfe, 1, 2],
    ];
    assert_eq!(find(&several), [Cea608(2), Cea608(3), Cea708(1)]);
    assert_eq!(find_caption_channels(&codec, &[0, 0, 0, 9, 6]), []);
    let text = TextSet::new(Vec::new()).with_caption_channels(find(&several));
    let film = film().with_text(Arc::new(text));
    let hls = crate::manifest::hls::write_multivariant_playlist(&film, SegmentFormat::Cmaf, false);
    let hls = hls.unwrap();
    assert_eq!(
        hls.matches("TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\"").count(),
        3,
        "{hls}"
    );
    assert!(hls.contains("INSTREAM-ID=\"SERVICE1\"") && hls.contains(",CLOSED-CAPTIONS=\"cc\"\n"));
    assert!(!hls.contains("NONE"), "{hls}");
    let mpd = crate::manifest::dash::write_mpd(&film, Default::default());
    assert!(mpd.contains("cea-608:2015\" value=\"CC2;CC3\"/>"), "{mpd}");
    assert!(
        mpd.contains("cea-708:2015\" value=\"1=lang:und\"/>"),
        "{mpd}"
    );
}

#[test]
fn a_tag_that_does_not_end_soon_is_text() {
    let long = "x".repeat(300);
    let srt = format!("1\n00:00:01,000 --> 00:00:02,000\n<font {long}>a\n");
    let list = parse_srt(&srt, &mut Vec::new());
    assert_eq!(list.cues()[0].payload, format!("&lt;font {long}>a"));
}

/// Each of the 8 styles refers to all 8 styles. With only the limit on the depth of references,
/// more than 8^8 styles would be applied to each paragraph.
#[test]
fn styles_that_refer_to_each_other_are_bounded() {
    let names: Vec<String> = (0..8).map(|n| format!("s{n}")).collect();
    let names = names.join(" ");
    let styles: String = (0..8)
        .map(|n| format!("<style xml:id='s{n}' style='{names}'/>"))
        .collect();
    let paragraphs = format!("<p begin='1s' end='2s' style='{names}'>a</p>").repeat(60);
    let document = format!(
        "<tt><head><styling>{styles}</styling></head><body><div>{paragraphs}</div></body></tt>"
    );
    let list = parse_ttml(&document, 60_000, &mut Vec::new());
    assert_eq!(list.cues().len(), 60);
}

#[test]
fn times_of_ttml_are_bounded() {
    let list = parse_ttml(
        "<tt><body begin='9999h'><div begin='9999h'><p begin='1s' end='2s'>a</p></div><p begin='0s' dur='9999h'>b</p></body></tt>",
        60_000,
        &mut Vec::new(),
    );
    let cues: Vec<_> = list.cues().iter().map(|cue| &*cue.payload).collect();
    assert_eq!(cues, ["b"]);
    let again = parse_vtt(&write_vtt(&list), &mut Vec::new());
    assert_eq!(again.cues(), list.cues());
}

#[test]
fn the_purpose_of_a_track_is_that_of_its_roles() {
    use crate::index::TrackRole;
    let kind_of = |roles: &[TrackRole]| {
        let mut track = crate::fixtures::build_audio_track(1, 100);
        track.roles = roles.to_vec();
        super::text_track_kind(&track)
    };
    for (roles, kind) in [
        (&[][..], TextKind::Subtitles),
        (&[TrackRole::Subtitle], TextKind::Subtitles),
        (
            &[TrackRole::Subtitle, TrackRole::Caption],
            TextKind::Captions,
        ),
        (&[TrackRole::EasyReader], TextKind::EasyToRead),
        (
            &[TrackRole::Caption, TrackRole::ForcedSubtitle],
            TextKind::Forced,
        ),
    ] {
        assert_eq!(kind_of(roles), kind, "{roles:?}");
    }
}

#[test]
fn only_a_chosen_track_is_the_default_text() {
    let defaults = |enabled: &[bool]| -> Vec<usize> {
        let track = |is_enabled: &bool| crate::index::Track {
            is_enabled: *is_enabled,
            ..crate::fixtures::build_audio_track(1, 100)
        };
        let tracks: Vec<_> = enabled.iter().map(track).collect();
        let all = 0..tracks.len();
        all.filter(|n| super::is_default_text(&tracks, *n))
            .collect()
    };
    assert_eq!(defaults(&[true]), []);
    assert_eq!(defaults(&[true, false]), []);
    assert_eq!(defaults(&[true, true]), []);
    assert_eq!(defaults(&[false, true, true]), [1]);
    assert_eq!(defaults(&[false, false]), []);
}
