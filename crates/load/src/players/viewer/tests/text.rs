//! Tests of subtitles. Viewers fetch subtitles in parallel with video and audio, but playback never
//! waits for subtitles.

use super::super::super::text_choice::TextPreference;
use super::*;

/// Returns a manifest with subtitles in English and in German. The subtitles are as long as the
/// film.
fn manifest_with_text(seconds: u32) -> String {
    let template = "<SegmentTemplate timescale='1' duration='2' initialization='$RepresentationID$/i' media='$RepresentationID$/$Number$'/>";
    let set = |language: &str| {
        format!(
            "<AdaptationSet contentType='text' lang='{language}' mimeType='application/mp4'>{template}<Representation id='t-{language}' bandwidth='900'/></AdaptationSet>"
        )
    };
    let sets = format!("{}{}</Period>", set("en"), set("de"));
    test_manifest(seconds).replace("</Period>", &sets)
}

/// Plays a film of one minute. Returns the origin and the number of played milliseconds.
fn play_with_text(text: TextPreference, failing: bool) -> (SimulatedOrigin, u64) {
    let mut origin = SimulatedOrigin::new(manifest_with_text(60), &constant_rate(10e6));
    origin.text = text;
    origin.failing = failing.then_some(("t-", u32::MAX));
    let mut viewer = test_viewer(test_plan(), FixedLevel::Lowest);
    origin.play_viewer(&mut viewer);
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    (origin, viewer.summary().played_ms)
}

#[test]
fn a_viewer_fetches_all_text_of_the_chosen_language() {
    let (origin, played_ms) = play_with_text(TextPreference::parse_text_preference("DE"), false);
    assert_eq!((origin.count(FetchPurpose::Text), played_ms), (30, 60_000));
    let paths: Vec<&str> = origin
        .requests
        .iter()
        .map(|(_, _, path)| path.as_str())
        .filter(|path| path.contains("t-"))
        .collect();
    assert_eq!(paths[..3], ["/t-de/i", "/t-de/1", "/t-de/2"]);
    assert!(paths.iter().all(|path| path.starts_with("/t-de/")));
}

#[test]
fn text_is_fetched_only_if_it_is_chosen_and_exists() {
    for (choice, count) in [("off", 0), ("first", 30), ("fr", 0)] {
        let (origin, _) = play_with_text(TextPreference::parse_text_preference(choice), false);
        assert_eq!(origin.count(FetchPurpose::Text), count, "{choice}");
    }
}

#[test]
fn the_film_plays_on_without_text() {
    let (origin, played_ms) = play_with_text(TextPreference::First, true);
    assert_eq!((origin.count(FetchPurpose::Text), played_ms), (0, 60_000));
    let attempts = origin
        .requests
        .iter()
        .filter(|(_, _, path)| path.contains("t-"));
    assert_eq!(attempts.count(), 4, "the first request and three retries");
}
