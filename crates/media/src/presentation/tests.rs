//! Tests of whole presentations that are built from hand-made tracks.

use super::*;
use crate::fixtures::{self, build_index_of_tracks};

const SIX_SECOND_RULES: PackagingRules = PackagingRules {
    segment_duration_ms: 6000,
};

fn build_title(files: Vec<Arc<Index>>) -> Presentation {
    Presentation::new(files, &SIX_SECOND_RULES).expect("a legal title")
}

#[test]
fn a_film_with_sound_is_cut_near_six_seconds() {
    let film = build_index_of_tracks(vec![
        fixtures::build_video_track(60, 50, 10_000),
        fixtures::build_audio_track(60, 300),
    ]);
    let title = build_title(vec![film]);
    let [video, audio] = &title.renditions[..] else {
        panic!("two renditions")
    };
    assert_eq!(video.name, "video=2281000");
    assert_eq!(audio.name, "audio=113000");
    assert_eq!((video.segment_count(), audio.segment_count()), (10, 10));
    // The first picture is presented at the film's time zero. It is decoded 1024 ticks (80 ms)
    // earlier, which is before the audio's priming (21 ms).
    assert_eq!(title.presentation_time_offset, Time::new(1024, 12_800));
    assert_eq!((video.start_ticks, video.decode_delay), (1024, 1024));
    assert_eq!((audio.start_ticks, audio.decode_delay), (3840 - 1024, 0));
    assert_eq!(title.segment_start(video, 3), 1024 + 18 * 12_800);
    assert_eq!(title.find_segment(video, 1024 + 18 * 12_800), Some(3));
    assert_eq!(title.find_segment(video, 1025 + 18 * 12_800), None);
    assert_eq!(title.target_duration_s, 6);
}

#[test]
fn priming_is_rounded_up_to_a_common_timescale() {
    let rows: Vec<fixtures::FixtureSample> = (0..500).map(|n| (512, 0, 100, n % 50 == 0)).collect();
    let video = fixtures::build_track(fixtures::build_avc_test_codec(640, 360), 12_800, 0, &rows);
    let title = build_title(vec![build_index_of_tracks(vec![
        video,
        fixtures::build_audio_track(20, 300),
    ])]);
    // The priming lasts 1024 ticks of 1/48000 s. This time is rounded up to 69/3200 s, the next
    // time that both timescales express exactly.
    assert_eq!(title.presentation_time_offset, Time::new(69, 3200));
    assert_eq!(
        (
            title.renditions[0].start_ticks,
            title.renditions[1].start_ticks
        ),
        (276, 1035 - 1024)
    );
}

#[test]
fn a_film_that_begins_late_has_its_zero_where_it_is_first_shown() {
    let mut video = fixtures::build_video_track(60, 50, 10_000);
    video.presentation_offset = 12_800 * 3600;
    let title = build_title(vec![build_index_of_tracks(vec![video])]);
    let video = &title.renditions[0];
    assert_eq!(
        (title.segment_start(video, 0), video.decode_delay),
        (1024, 1024)
    );
    assert_eq!(title.presentation_time_offset, Time::new(1024, 12_800));
    assert_eq!(title.duration, Time::new(60, 1));
}

#[test]
fn a_late_film_without_edit_lists_has_an_offset_so_that_shaka_player_shows_text_on_time() {
    let late = |mut track: Track, per_second: i64| {
        track.presentation_offset = per_second * 3600;
        track
    };
    let film = |video: Track| {
        let rows: Vec<fixtures::FixtureSample> = (0..2800).map(|_| (1024, 0, 300, true)).collect();
        let audio = fixtures::build_track(fixtures::build_aac_test_codec(), 48_000, 0, &rows);
        build_title(vec![build_index_of_tracks(vec![
            late(video, 12_800),
            late(audio, 48_000),
        ])])
    };
    // The audio starts at the decode time of the first picture, which is 1024 ticks before the
    // picture's presentation time.
    let title = film(fixtures::build_video_track(60, 50, 10_000));
    let [video, audio] = &title.renditions[..] else {
        panic!("two renditions")
    };
    assert_eq!(title.presentation_time_offset, Time::new(1024, 12_800));
    assert_eq!(
        (title.segment_start(video, 0), video.decode_delay),
        (2048, 1024)
    );
    assert_eq!(title.segment_start(audio, 0), 3840);
    assert_eq!(title.film_start(), Time::new(3600, 1));
    // Without reordering, decode and presentation times are equal.
    let rows: Vec<fixtures::FixtureSample> =
        (0..1500).map(|n| (512, 0, 100, n % 50 == 0)).collect();
    let plain = fixtures::build_track(fixtures::build_avc_test_codec(640, 360), 12_800, 0, &rows);
    assert_eq!(film(plain).presentation_time_offset, Time::ZERO);
}

fn expect_refusal(files: Vec<Arc<Index>>) -> String {
    Presentation::new(files, &SIX_SECOND_RULES)
        .expect_err("no legal title")
        .to_string()
}

#[test]
fn copies_of_one_audio_track_are_listed_once() {
    let file = |size, sound: u32, language: &str| {
        let mut audio = fixtures::build_audio_track(20, sound);
        audio.language = language.into();
        build_index_of_tracks(vec![fixtures::build_video_track(20, 50, size), audio])
    };
    let names = |files| {
        let title = build_title(files);
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
    // Equal audio tracks in one file are not treated as copies, because one of them may be a
    // commentary.
    let twice = vec![
        fixtures::build_audio_track(20, 300),
        fixtures::build_audio_track(20, 300),
    ];
    assert_eq!(
        names(vec![build_index_of_tracks(twice)]),
        ["audio=113000", "audio_1=113000"]
    );
}

#[test]
fn files_of_other_films_are_refused() {
    let file =
        |seconds| build_index_of_tracks(vec![fixtures::build_video_track(seconds, 50, 9_000)]);
    build_title(vec![file(60), file(62)]);
    let refused = expect_refusal(vec![file(60), file(64)]);
    assert!(
        refused.contains("file 1: 60.000 s, file 2: 64.000 s"),
        "{refused}"
    );
}

#[test]
fn video_without_key_frames_is_refused() {
    let rows = [(512, 0, 100, false); 50];
    let track = fixtures::build_track(fixtures::build_avc_test_codec(640, 360), 12_800, 0, &rows);
    assert!(expect_refusal(vec![build_index_of_tracks(vec![track])]).contains("no sync samples"));
}

#[test]
fn a_title_without_duration_is_refused() {
    let track = fixtures::build_track(
        fixtures::build_aac_test_codec(),
        48_000,
        0,
        &[(0, 0, 100, true)],
    );
    assert!(expect_refusal(vec![build_index_of_tracks(vec![track])]).contains("has a duration"));
}

#[test]
fn a_track_that_begins_a_year_late_is_refused() {
    let mut late = fixtures::build_audio_track(20, 300);
    late.presentation_offset = 48_000 * 3600 * 24 * 500;
    let film = build_index_of_tracks(vec![
        fixtures::build_video_track(20, 50, 9_000),
        late.clone(),
    ]);
    assert!(expect_refusal(vec![film]).contains("10000 hours"));
    // If all tracks of a title start late, they are moved to zero. In live recordings, for example,
    // times may count from 1970.
    let title = build_title(vec![build_index_of_tracks(vec![late])]);
    assert_eq!(title.segment_start(&title.renditions[0], 0), 0);
    assert_eq!(title.presentation_time_offset, Time::ZERO);
}

#[test]
fn renditions_that_do_not_align_get_grids_of_their_own() {
    let file = |gop, size| build_index_of_tracks(vec![fixtures::build_video_track(60, gop, size)]);
    // Key frames every 2 s and every 3 s coincide every 6 s.
    let title = build_title(vec![file(50, 9_000), file(75, 3_000)]);
    assert!(
        title
            .renditions
            .iter()
            .all(|r| r.switching_group == 0 && r.segment_count() == 10)
    );
    // Key frames every 3 s and every 7 s coincide every 21 s. This is too rare, so these two
    // renditions have separate cuts.
    let title = build_title(vec![file(75, 9_000), file(175, 3_000), file(25, 1_000)]);
    let cut: Vec<(usize, usize)> = title
        .renditions
        .iter()
        .map(|r| (r.switching_group, r.segment_count()))
        .collect();
    assert_eq!(cut, [(0, 10), (1, 9), (0, 10)]);
}

#[test]
fn samples_before_the_first_key_frame_are_left_out() {
    let mut rows = vec![(512, 0, 100, false); 3];
    rows.extend((0..100).map(|n| (512, 0, 100, n % 25 == 0)));
    let track = fixtures::build_track(fixtures::build_avc_test_codec(640, 360), 12_800, 0, &rows);
    let title = build_title(vec![build_index_of_tracks(vec![track])]);
    let video = &title.renditions[0];
    assert_eq!(
        (video.segment_cuts[0], title.segment_start(video, 0)),
        (3, 0)
    );
    assert_eq!(title.duration, Time::new(4, 1));
}

#[test]
fn the_segment_set_name_depends_on_content_and_rules() {
    let film = |size| {
        vec![build_index_of_tracks(vec![fixtures::build_video_track(
            20, 50, size,
        )])]
    };
    let name = |files, segment_ms| {
        Presentation::new(
            files,
            &PackagingRules {
                segment_duration_ms: segment_ms,
            },
        )
        .expect("a legal title")
        .segment_folder_name()
    };
    assert_eq!(name(film(9_000), 6000), name(film(9_000), 6000));
    assert_ne!(name(film(9_000), 6000), name(film(9_001), 6000));
    assert_ne!(name(film(9_000), 6000)[4..], name(film(9_000), 4000)[4..]);
}

/// Returns the earliest presentation time and the end of a rendition, both relative to the film's
/// time zero.
fn presented_span(title: &Presentation, rendition: &Rendition) -> (Time, Time) {
    let timescale = title.track(rendition).timescale;
    let zero = title.presentation_time_offset.round_to(timescale);
    let at = |n| Time::new(title.segment_start(rendition, n) as i64 - zero, timescale);
    (at(0), at(rendition.segment_count()))
}

/// Builds a video with a key frame every `gop` frames. Each key frame has `leading` pictures that
/// are decoded after it and presented before it. The first key frame has such pictures only if
/// `first_leads` is true. The composition offsets delay the presentation by `leading` frames.
fn build_open_gops(frames: u32, gop: u32, leading: u32, first_leads: bool) -> Track {
    let ticks = 512;
    let rows: Vec<fixtures::FixtureSample> = (0..frames)
        .map(|n| {
            let leads = first_leads || n >= gop;
            let offset = match n % gop {
                0 if leads => 2 * leading,
                place if leads && place <= leading => leading - 1,
                _ => leading,
            };
            (ticks, (offset * ticks) as i32, 100, n % gop == 0)
        })
        .collect();
    fixtures::build_track(fixtures::build_avc_test_codec(640, 360), 12_288, 0, &rows)
}

#[test]
fn a_first_gop_with_leading_pictures_starts_with_the_earliest_one() {
    // VVC encoders present the first key frame 23 frames after the film's start. The sample tables
    // are hand-made, because no installed program writes VVC. A test in `tests/e2e` serves a film
    // with such a first GOP.
    let mut track = build_open_gops(120, 48, 23, true);
    track.presentation_offset = -(23 * 512);
    let title = build_title(vec![build_index_of_tracks(vec![track])]);
    let video = &title.renditions[0];
    assert_eq!(presented_span(&title, video), (Time::ZERO, Time::new(5, 1)));
    assert_eq!(title.duration, Time::new(5, 1));
    assert!(video.has_leading_pictures);
}

#[test]
fn an_open_gop_trimmed_by_an_edit_list_keeps_its_duration() {
    let mut track = build_open_gops(288, 48, 5, true);
    // The edit starts with the earliest leading picture.
    track.presentation_offset = -(5 * 512);
    track.presentation_end = Some(288 * 512);
    let title = build_title(vec![build_index_of_tracks(vec![track])]);
    assert_eq!(title.duration, Time::new(12, 1));
    let video = &title.renditions[0];
    assert_eq!(
        presented_span(&title, video),
        (Time::ZERO, Time::new(12, 1))
    );
}

#[test]
fn segments_of_open_gops_start_with_their_leading_pictures() {
    let title = build_title(vec![build_index_of_tracks(vec![build_open_gops(
        288, 48, 5, false,
    )])]);
    let video = &title.renditions[0];
    let zero = title.rendition_start_time(video).round_to(12_288) as u64;
    // The leading pictures are presented directly after the previous segment, so their segment
    // starts at frame 144. The key frame follows at frame 149.
    assert_eq!(title.segment_start(video, 1), zero + 144 * 512);
    assert_eq!(title.presentation_time(video, 144), zero + 149 * 512);
    assert!(video.has_leading_pictures);
    let closed = build_title(vec![build_index_of_tracks(vec![
        fixtures::build_video_track(20, 50, 100),
    ])]);
    assert!(!closed.renditions[0].has_leading_pictures);
}

#[test]
fn segments_of_a_varying_frame_rate_are_named_by_presentation_times() {
    // The decode times are regular, but all pictures of the second segment are presented 300 ticks
    // late.
    let row = |n: u32| {
        let late = if n >= 150 { 300 } else { 0 };
        (512, 1024 + late, 100, n.is_multiple_of(50))
    };
    let rows: Vec<_> = (0..300).map(row).collect();
    let track = fixtures::build_track(
        fixtures::build_avc_test_codec(640, 360),
        12_800,
        -1024,
        &rows,
    );
    let title = build_title(vec![build_index_of_tracks(vec![track])]);
    let video = &title.renditions[0];
    assert_eq!(title.segment_duration_ticks(video, 0), 150 * 512 + 300);
    assert_eq!(title.segment_duration_ticks(video, 1), 150 * 512);
    assert_eq!(title.duration, Time::new(300 * 512 + 300, 12_800));
}

#[test]
fn a_trim_inside_a_gop_reports_the_hidden_lead() {
    let mut track = fixtures::build_video_track(20, 50, 100);
    assert_eq!(
        {
            let title = build_title(vec![build_index_of_tracks(vec![track.clone()])]);
            title.hidden_lead(&title.renditions[0])
        },
        Time::ZERO
    );
    track.presentation_offset -= 6400;
    let title = build_title(vec![build_index_of_tracks(vec![track])]);
    assert_eq!(title.hidden_lead(&title.renditions[0]), Time::new(1, 2));
    assert_eq!(title.duration, Time::new(39, 2));
}

#[test]
fn a_sample_that_is_presented_years_late_adds_no_segments() {
    let rows: Vec<fixtures::FixtureSample> = (0..20)
        .map(|n| (1, if n == 19 { i32::MAX } else { 0 }, 100, true))
        .collect();
    let track = fixtures::build_track(fixtures::build_aac_test_codec(), 1, 0, &rows);
    let rules = PackagingRules {
        segment_duration_ms: 1,
    };
    let title =
        Presentation::new(vec![build_index_of_tracks(vec![track])], &rules).expect("a legal title");
    assert_eq!(title.renditions[0].segment_count(), 20);
}
