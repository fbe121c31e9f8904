//! Tests of the limits that keep small text files from taking much memory or time.

use super::*;
use crate::codec::{TextFormat, TrackFormat};
use crate::fixtures::{self, build_index_of_tracks};
use crate::presentation::{PackagingRules, Presentation};
use crate::time::Time;

/// Maximum number of problems that are reported.
const PROBLEMS_MAX: usize = 1000;

fn film() -> Presentation {
    let track = fixtures::build_video_track(20, 50, 1000);
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    Presentation::new(vec![build_index_of_tracks(vec![track])], &rules).unwrap()
}

fn cue(start_ms: i64, end_ms: i64, payload: &str) -> Cue {
    Cue {
        start_ms,
        end_ms,
        payload: payload.to_owned(),
        ..Cue::default()
    }
}

#[test]
fn a_segment_of_webvtt_in_cmaf_has_at_most_eight_mebibytes_of_text() {
    let limit = 8 << 20;
    // Each of the 81 samples would contain the 60 long cues, so the segment would have 48 MB.
    let long = "x".repeat(10_000);
    let mut cues = vec![cue(0, 6000, &long); 60];
    cues.extend((0..40).map(|n| cue(n * 100 + 10, n * 100 + 60, "short")));
    let list = CueList::from_cues(String::new(), cues, &mut Vec::new());
    assert_eq!(list.cues().len(), 100);
    let film = film();
    let grid = film.text_segment_times().unwrap();
    let segment = write_wvtt_segment(&grid, &list, 0);
    assert!(segment.len() < limit + 10_000, "{}", segment.len());
    assert!(segment.len() > limit / 2, "{}", segment.len());
    assert_eq!(cmaf::wvtt_segment_len(&grid, &list, 0), segment.len());
    let is_empty = |segment: &[u8]| segment.ends_with(b"\0\0\0\x08vtte");
    assert!(is_empty(&segment));
    // A segment under the limit contains all its text.
    let few = CueList::from_cues(String::new(), vec![cue(0, 7000, &long)], &mut Vec::new());
    assert!(!is_empty(&write_wvtt_segment(&grid, &few, 0)));
}

#[test]
fn cues_beyond_64_at_the_same_time_are_dropped_and_reported() {
    let mut problems = Vec::new();
    let mut cues = vec![cue(0, 2000, "a"); 70];
    cues.push(cue(1999, 4000, "b"));
    cues.push(cue(2000, 4000, "c"));
    let list = CueList::from_cues(String::new(), cues, &mut problems);
    let payloads: String = list.cues().iter().map(|cue| &*cue.payload).collect();
    assert_eq!(payloads, format!("{}c", "a".repeat(64)));
    assert_eq!(problems[0], CueProblem::TooMany);
    problems.clear();
    CueList::from_cues(String::new(), vec![cue(0, 2000, "a"); 64], &mut problems);
    assert!(!problems.contains(&CueProblem::TooMany), "{problems:?}");
}

#[test]
fn dropped_cues_are_reported_once_even_if_there_are_many_other_problems() {
    // All cues are shown at the same time, and each cue starts before the previous cue.
    let cues = (0..200_001).map(|n| cue(-n, 2000, "a")).collect();
    let mut problems = Vec::new();
    CueList::from_cues(String::new(), cues, &mut problems);
    let reported = problems.iter().filter(|one| **one == CueProblem::TooMany);
    assert_eq!((reported.count(), problems.len()), (1, PROBLEMS_MAX));
}

proptest::proptest! {
    #[test]
    fn the_cues_within_a_range_equal_those_of_a_full_search(
        shown in proptest::collection::vec((0i64..9000, 1i64..90, 0i64..100), 0..400), start in -10i64..9500, ms in 1i64..900
    ) {
        // One cue in a hundred is long.
        let end = |(start_ms, ms, rare): &(i64, i64, i64)| start_ms + ms * if *rare == 0 { 100 } else { 1 };
        let cues = shown.iter().map(|one| cue(one.0, end(one), "x"));
        let list = CueList::from_cues(String::new(), cues.collect(), &mut Vec::new());
        let range = start..start + ms;
        let found: Vec<&Cue> = list.cues_within(range.clone()).collect();
        let is_within = |cue: &&Cue| cue.start_ms < range.end && cue.end_ms > range.start;
        proptest::prop_assert_eq!(found, list.cues().iter().filter(is_within).collect::<Vec<_>>());
    }
}

#[test]
fn the_problems_of_every_format_are_limited() {
    let lines = "WEBVTT\n\n".to_owned() + &"x --> y\n\n".repeat(2 * PROBLEMS_MAX);
    for parse in [parse_vtt, parse_srt] {
        let mut problems = Vec::new();
        parse(&lines, &mut problems);
        assert_eq!(problems.len(), PROBLEMS_MAX);
    }
    let mut codec = fixtures::build_aac_test_codec();
    codec.format = TrackFormat::Text(TextFormat::Stpp);
    let rows = vec![(1000, 0, 50, true); PROBLEMS_MAX];
    let track = fixtures::build_track(codec, 1000, 0, &rows);
    // Each sample has two problems: it is not Unicode, and it is not TTML.
    let samples = (0..PROBLEMS_MAX).map(|_| &b"\xff"[..]);
    let mut problems = Vec::new();
    parse_text_samples(&track, Time::ZERO, samples, &mut problems);
    assert_eq!(problems.len(), PROBLEMS_MAX);
}

/// Converts a paragraph, and returns the settings and the text of its cue. The document has a
/// region `r` and a style `s`, with these attributes.
fn convert_styled(region: &str, style: &str, p: &str) -> (String, String) {
    let document = format!(
        "<tt><head><styling><style id='s' {style}/></styling><layout><region id='r' {region}/></layout></head><body><p end='1s' {p}>x</p></body></tt>"
    );
    let list = parse_ttml(&document, 60_000, &mut Vec::new());
    let cue = &list.cues()[0];
    (cue.settings.clone(), cue.payload.clone())
}

#[test]
fn only_the_first_styles_of_a_ttml_region_are_read() {
    let style = "origin='10% 10%' extent='100% 20%'";
    let settings = |before: usize| {
        let region = format!("style='{} s'", "x ".repeat(before));
        convert_styled(&region, style, "region='r'").0
    };
    assert_eq!(settings(7), "line:10%");
    assert_eq!(settings(8), "");
}

#[test]
fn ttml_styles_in_very_long_attributes_are_ignored() {
    let bold = "fontWeight='bold'";
    let padded = |spaces: usize| format!("style='x{}s'", " ".repeat(spaces));
    assert_eq!(convert_styled("", bold, &padded(100)).1, "<b>x</b>");
    assert_eq!(convert_styled("", bold, &padded(1000)).1, "x");
}

#[test]
fn a_ttml_document_with_an_attribute_of_many_bytes_is_refused() {
    let mut problems = Vec::new();
    let text = format!(
        "<tt><body><p end='1s' region='{}'>x</p></body></tt>",
        "r".repeat(9000)
    );
    let list = parse_ttml(&text, 60_000, &mut problems);
    assert_eq!(
        (list.cues().len(), problems),
        (0, vec![CueProblem::Malformed(1)])
    );
}

#[test]
fn cues_of_a_track_and_of_a_file_agree_if_the_film_starts_with_leading_pictures() {
    // The key frame is decoded first, and two leading pictures are presented before it.
    let rows: Vec<fixtures::FixtureSample> = (0..500)
        .map(|n| match n % 50 {
            0 => (512, 3 * 512, 900, true),
            1 | 2 => (512, 0, 100, false),
            _ => (512, 512, 100, false),
        })
        .collect();
    let avc = fixtures::build_avc_test_codec(640, 360);
    let video = fixtures::build_track(avc, 12_800, -512, &rows);
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    let film = Presentation::new(vec![build_index_of_tracks(vec![video])], &rules).unwrap();
    assert!(film.renditions[0].has_leading_pictures);
    let mut codec = fixtures::build_aac_test_codec();
    codec.format = TrackFormat::Text(TextFormat::Tx3g);
    let track = fixtures::build_track(codec, 1000, 0, &[(1000, 0, 2, true), (1000, 0, 3, true)]);
    let samples = [&b"\0\0"[..], b"\0\x01x"].into_iter();
    let embedded = parse_text_samples(&track, film.film_start(), samples, &mut Vec::new());
    let sidecar = parse_vtt("WEBVTT\n\n00:01.000 --> 00:02.000\nx\n", &mut Vec::new());
    assert_eq!(embedded.cues(), sidecar.cues());
}
