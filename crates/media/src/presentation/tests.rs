//! Whole presentations, on tracks made by hand.

use super::*;
use crate::fixtures::{self, index};

const RULES: Rules = Rules { segment_ms: 6000 };

fn presentation(files: Vec<Arc<Index>>) -> Presentation {
    Presentation::new(files, &RULES).expect("a legal title")
}

#[test]
fn a_film_with_sound_is_cut_near_six_seconds() {
    let film = index(vec![
        fixtures::video(60, 50, 10_000),
        fixtures::audio(60, 300),
    ]);
    let title = presentation(vec![film]);
    let [video, audio] = &title.renditions[..] else {
        panic!("two renditions")
    };
    assert_eq!(video.name, "video=2281000");
    assert_eq!(audio.name, "audio=113000");
    assert_eq!((video.segments(), audio.segments()), (10, 10));
    // The video is shown from the film's zero on and decoded from 1024 ticks before, which is
    // earlier than the audio's priming.
    assert_eq!(title.zero, Time::new(1024, 12_800));
    assert_eq!((video.start, video.delay), (1024, 1024));
    assert_eq!((audio.start, audio.delay), (3840 - 1024, 0));
    assert_eq!(title.segment_start(video, 3), 1024 + 18 * 12_800);
    assert_eq!(title.segment_at(video, 1024 + 18 * 12_800), Some(3));
    assert_eq!(title.segment_at(video, 1025 + 18 * 12_800), None);
    assert_eq!(title.target_duration, 6);
}

#[test]
fn priming_that_both_timescales_cannot_say_is_rounded_up() {
    let rows: Vec<fixtures::Row> = (0..500).map(|n| (512, 0, 100, n % 50 == 0)).collect();
    let video = fixtures::track(fixtures::avc(640, 360), 12_800, 0, &rows);
    let title = presentation(vec![index(vec![video, fixtures::audio(20, 300)])]);
    // 1024 ticks of 1/48000 s: 69/3200 s is the least that both timescales can say.
    assert_eq!(title.zero, Time::new(69, 3200));
    assert_eq!(
        (title.renditions[0].start, title.renditions[1].start),
        (276, 1035 - 1024)
    );
}

#[test]
fn a_film_that_begins_late_has_its_zero_where_it_is_first_shown() {
    let mut video = fixtures::video(60, 50, 10_000);
    video.origin = 12_800 * 3600;
    let title = presentation(vec![index(vec![video])]);
    let video = &title.renditions[0];
    assert_eq!((title.segment_start(video, 0), video.delay), (1024, 1024));
    assert_eq!(title.zero, Time::new(1024, 12_800));
    assert_eq!(title.duration, Time::new(60, 1));
}

fn refusal(files: Vec<Arc<Index>>) -> String {
    Presentation::new(files, &RULES)
        .expect_err("no legal title")
        .to_string()
}

#[test]
fn sound_that_every_file_carries_is_listed_once() {
    let file = |size, sound: u32, language: &str| {
        let mut audio = fixtures::audio(20, sound);
        audio.language = language.into();
        index(vec![fixtures::video(20, 50, size), audio])
    };
    let names = |files| {
        let title = presentation(files);
        title
            .renditions
            .iter()
            .map(|r| r.name.clone())
            .collect::<Vec<String>>()
    };
    let same = vec![file(9_000, 300, "eng"), file(3_000, 301, "eng")];
    assert_eq!(
        names(same),
        ["video=2053000", "video=685000", "audio_eng=113000"]
    );
    let other = vec![file(9_000, 300, "eng"), file(3_000, 300, "fra")];
    assert_eq!(names(other)[2..], ["audio_eng=113000", "audio_fra=113000"]);
    // Twice in one file is meant so: commentary, for instance.
    let twice = vec![fixtures::audio(20, 300), fixtures::audio(20, 300)];
    assert_eq!(
        names(vec![index(twice)]),
        ["audio=113000", "audio_1=113000"]
    );
}

#[test]
fn files_of_other_films_are_refused() {
    let file = |seconds| index(vec![fixtures::video(seconds, 50, 9_000)]);
    presentation(vec![file(60), file(62)]);
    let refused = refusal(vec![file(60), file(64)]);
    assert!(
        refused.contains("file 1: 60.000 s, file 2: 64.000 s"),
        "{refused}"
    );
}

#[test]
fn video_without_key_frames_is_refused() {
    let rows = [(512, 0, 100, false); 50];
    let track = fixtures::track(fixtures::avc(640, 360), 12_800, 0, &rows);
    assert!(refusal(vec![index(vec![track])]).contains("no sync samples"));
}

#[test]
fn what_lasts_no_time_is_refused() {
    let track = fixtures::track(fixtures::aac(), 48_000, 0, &[(0, 0, 100, true)]);
    assert!(refusal(vec![index(vec![track])]).contains("lasts any time"));
}

#[test]
fn a_track_that_begins_a_year_late_is_refused() {
    let mut late = fixtures::audio(20, 300);
    late.origin = 48_000 * 3600 * 24 * 500;
    let film = index(vec![fixtures::video(20, 50, 9_000), late.clone()]);
    assert!(refusal(vec![film]).contains("10000 hours"));
    // Alone it is moved to zero: recordings of live streams count from 1970.
    let title = presentation(vec![index(vec![late])]);
    assert_eq!(title.segment_start(&title.renditions[0], 0), 0);
    assert_eq!(title.zero, Time::ZERO);
}

#[test]
fn renditions_that_do_not_align_get_grids_of_their_own() {
    let file = |gop, size| index(vec![fixtures::video(60, gop, size)]);
    // Key frames every 2 s and every 3 s meet every 6 s.
    let title = presentation(vec![file(50, 9_000), file(75, 3_000)]);
    assert!(
        title
            .renditions
            .iter()
            .all(|r| r.group == 0 && r.segments() == 10)
    );
    // Every 3 s and every 7 s meet every 21 s: too seldom, so each is cut as suits it.
    let title = presentation(vec![file(75, 9_000), file(175, 3_000), file(25, 1_000)]);
    let cut: Vec<(usize, usize)> = title
        .renditions
        .iter()
        .map(|r| (r.group, r.segments()))
        .collect();
    assert_eq!(cut, [(0, 10), (1, 9), (0, 10)]);
}

#[test]
fn samples_before_the_first_key_frame_are_left_out() {
    let mut rows = vec![(512, 0, 100, false); 3];
    rows.extend((0..100).map(|n| (512, 0, 100, n % 25 == 0)));
    let track = fixtures::track(fixtures::avc(640, 360), 12_800, 0, &rows);
    let title = presentation(vec![index(vec![track])]);
    let video = &title.renditions[0];
    assert_eq!((video.cuts[0], title.segment_start(video, 0)), (3, 0));
    assert_eq!(title.duration, Time::new(4, 1));
}

#[test]
fn the_set_is_named_by_content_and_rules() {
    let film = |size| vec![index(vec![fixtures::video(20, 50, size)])];
    let name = |files, segment_ms| {
        Presentation::new(files, &Rules { segment_ms })
            .expect("a legal title")
            .set_name()
    };
    assert_eq!(name(film(9_000), 6000), name(film(9_000), 6000));
    assert_ne!(name(film(9_000), 6000), name(film(9_001), 6000));
    assert_ne!(name(film(9_000), 6000)[4..], name(film(9_000), 4000)[4..]);
}
