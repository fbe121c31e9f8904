//! Tests of TTML in which only a part of the text, or no text, has times.

use super::*;
use crate::codec::{TextFormat, TrackFormat};
use crate::fixtures;
use crate::time::Time;

fn parse_body(body: &str) -> (Vec<(i64, i64, String)>, Vec<CueProblem>) {
    let mut problems = Vec::new();
    let list = parse_ttml(
        &format!("<tt><body>{body}</body></tt>"),
        60_000,
        &mut problems,
    );
    (times_and_texts(&list), problems)
}

fn times_and_texts(list: &CueList) -> Vec<(i64, i64, String)> {
    let cues = list.cues().iter();
    cues.map(|cue| (cue.start_ms, cue.end_ms, cue.payload.clone()))
        .collect()
}

fn cue(start_ms: i64, end_ms: i64, payload: &str) -> (i64, i64, String) {
    (start_ms, end_ms, payload.to_owned())
}

#[test]
fn text_of_a_sample_without_times_is_shown_for_the_sample() {
    let mut codec = fixtures::build_aac_test_codec();
    codec.format = TrackFormat::Text(TextFormat::Stpp);
    let rows = [(2000, 0, 50, true); 3];
    let track = fixtures::build_track(codec, 1000, 0, &rows);
    let sample = |p: &str| format!("<tt><body><div>{p}</div></body></tt>").into_bytes();
    let samples = [
        sample("<p>a</p>"),
        sample("<p>b</p><p begin='2.5s'>c</p>"),
        sample("<p>b</p>"),
    ];
    let mut problems = Vec::new();
    let samples = samples.iter().map(Vec::as_slice);
    let list = parse_text_samples(&track, Time::ZERO, samples, &mut problems);
    let expected = [
        cue(0, 2000, "a"),
        cue(2000, 6000, "b"),
        cue(2500, 4000, "c"),
    ];
    assert_eq!(times_and_texts(&list), expected);
    assert_eq!(problems, [CueProblem::Overlapping(2500)]);
}

#[test]
fn text_of_a_file_without_an_end_is_shown_until_the_end_of_the_film() {
    let (cues, problems) =
        parse_body("<div><p>a</p></div><div begin='9s'><p begin='1s'>b</p></div>");
    assert_eq!(cues, [cue(0, 60_000, "a"), cue(10_000, 60_000, "b")]);
    assert_eq!(problems, [CueProblem::Overlapping(10_000)]);
    let (cues, problems) = parse_body("<p begin='70s'>after the film</p>");
    assert_eq!(
        (cues, problems),
        (vec![], vec![CueProblem::NotShown(70_000)])
    );
}

#[test]
fn text_beside_timed_spans_is_shown_for_its_paragraph() {
    let p = "<p begin='10s' end='20s'>a <span begin='2s' end='4s'>b</span> <span tts:fontStyle='italic'>c<span begin='3s'> d</span></span></p>";
    let (cues, problems) = parse_body(p);
    let expected = [
        cue(10_000, 12_000, "a <i>c</i>"),
        cue(12_000, 13_000, "a b <i>c</i>"),
        cue(13_000, 14_000, "a b <i>c d</i>"),
        cue(14_000, 20_000, "a <i>c d</i>"),
    ];
    assert_eq!((&cues[..], problems), (&expected[..], vec![]));
}

#[test]
fn a_paragraph_of_many_timed_spans_keeps_all_its_text() {
    let spans = |count: usize| "<span begin='0s' end='1s'>x</span>".repeat(count);
    let (cues, _) = parse_body(&format!("<p end='9s'>a{}</p>", spans(100)));
    assert_eq!(cues, [cue(0, 9000, &format!("a{}", "x".repeat(100)))]);
    let span = |n| format!("<span begin='{n}s' end='{}s'>x</span>", n + 1);
    let (cues, _) = parse_body(&format!(
        "<p>{}</p>",
        (0..100).map(span).collect::<String>()
    ));
    let shown = (0..100).map(|n| cue(n * 1000, n * 1000 + 1000, "x"));
    assert_eq!(cues, shown.collect::<Vec<_>>());
    // The total size of all cues is limited, so only the first of the three paragraphs is split.
    let p = format!(
        "<p end='9s'>{}<span begin='1s' end='2s'>b</span></p>",
        "a".repeat(1 << 20)
    );
    let (cues, _) = parse_body(&p.repeat(3));
    assert_eq!(cues.len(), 5);
}
