//! Tests of the selection of served tracks, and of the cuts in audio.

use super::*;
use crate::error::ErrorKind;
use crate::fixtures::{self, FixtureSample, build_index_of_tracks};
use crate::index::Track;

fn build_title_from_tracks(tracks: Vec<Track>) -> Presentation {
    let rules = PackagingRules {
        segment_duration_ms: 2000,
    };
    Presentation::new(vec![build_index_of_tracks(tracks)], &rules).expect("a legal title")
}

/// Builds audio at 48 kHz with a sync sample every `interval` frames.
fn audio_with_sync_samples(seconds: u32, interval: u32) -> Track {
    let rows: Vec<FixtureSample> = (0..seconds * 48_000 / 1024)
        .map(|n| (1024, 0, 200, n % interval == 0))
        .collect();
    fixtures::build_track(fixtures::build_aac_test_codec(), 48_000, 0, &rows)
}

#[test]
fn audio_is_cut_at_its_sync_samples() {
    // The sync samples are 1.493 s apart, so they do not coincide with multiples of the 2-second
    // target.
    for with_video in [true, false] {
        let audio = audio_with_sync_samples(60, 70);
        let video = with_video.then(|| fixtures::build_video_track(60, 50, 1000));
        let title = build_title_from_tracks(video.into_iter().chain([audio]).collect());
        let rendition = title.audio_renditions().next().expect("audio");
        let samples = &title.track(rendition).samples;
        let starts = &rendition.segment_cuts[..rendition.segment_count()];
        assert!(starts.iter().all(|cut| samples.is_sync(*cut)), "{starts:?}");
        assert!(rendition.segment_count() > 20, "{starts:?}");
    }
}

#[test]
fn audio_before_its_first_sync_sample_is_not_served() {
    let mut rows: Vec<FixtureSample> = vec![(1024, 0, 200, false); 5];
    rows.extend((0..400).map(|n| (1024, 0, 200, n % 40 == 0)));
    let audio = fixtures::build_track(fixtures::build_aac_test_codec(), 48_000, 0, &rows);
    let title = build_title_from_tracks(vec![audio]);
    assert_eq!(title.renditions[0].segment_cuts[0], 5);
}

#[test]
fn audio_without_sync_samples_is_left_out_by_name() {
    let rows: Vec<FixtureSample> = vec![(1024, 0, 200, false); 500];
    let audio = || fixtures::build_track(fixtures::build_aac_test_codec(), 48_000, 0, &rows);
    let title = build_title_from_tracks(vec![fixtures::build_video_track(10, 50, 1000), audio()]);
    assert_eq!(title.renditions.len(), 1);
    let (file, left_out) = &title.left_out[0];
    assert_eq!((*file, &*left_out.name), (0, "track 1 (mp4a.40.2)"));
    assert!(left_out.reason.contains("no sync samples"), "{left_out:?}");
    let rules = PackagingRules {
        segment_duration_ms: 2000,
    };
    let error = Presentation::new(vec![build_index_of_tracks(vec![audio()])], &rules).unwrap_err();
    assert!(
        error
            .message
            .contains("track 1 (mp4a.40.2): it has no sync samples")
    );
}

/// Builds a second video track of `count` pictures, which together last `seconds`.
fn build_stills_track(seconds: u32, count: u32) -> Track {
    let rows: Vec<FixtureSample> = (0..count)
        .map(|n| (seconds * 12_800 / count, 0, 90_000, n == 0))
        .collect();
    fixtures::build_track(fixtures::build_avc_test_codec(4032, 3024), 12_800, 0, &rows)
}

#[test]
fn a_second_track_of_stills_is_no_rendition() {
    // The second track has two pictures as in a motion photo, one picture for the whole film, or
    // one picture that lasts one frame.
    let one_frame = fixtures::build_track(
        fixtures::build_avc_test_codec(4032, 3024),
        12_800,
        0,
        &[(512, 0, 90_000, true)],
    );
    for second in [
        build_stills_track(3, 2),
        build_stills_track(3, 1),
        one_frame,
    ] {
        let film = fixtures::build_video_track(3, 25, 9000);
        let title = build_title_from_tracks(vec![second, film]);
        let [video] = &title.renditions[..] else {
            panic!("{:?}", title.renditions)
        };
        assert_eq!(video.track_index, 1);
        let (_, left_out) = &title.left_out[0];
        assert!(left_out.reason.contains("in 3.0 s"), "{left_out:?}");
        assert!(left_out.name.starts_with("track 1 (video, avc1."));
    }
}

#[test]
fn slow_video_is_served_if_it_is_the_film_or_a_rung() {
    // The only video track consists of slides, with one picture per second.
    assert_eq!(
        build_title_from_tracks(vec![build_stills_track(60, 60)])
            .renditions
            .len(),
        1
    );
    // The second rendition of the ladder has a fifth of the first rendition's frame rate.
    let rows: Vec<FixtureSample> = (0..50).map(|n| (2560, 0, 900, n % 10 == 0)).collect();
    let slow = fixtures::build_track(fixtures::build_avc_test_codec(320, 180), 12_800, 0, &rows);
    let title = build_title_from_tracks(vec![fixtures::build_video_track(10, 50, 9000), slow]);
    assert_eq!((title.renditions.len(), title.left_out.len()), (2, 0));
}

#[test]
fn a_track_whose_edit_is_shorter_than_a_millisecond_is_served() {
    // The edit lasts 0.5 ms, and the only sample is presented 3000 ticks after it is decoded.
    let short = |codec| {
        let mut track = fixtures::build_track(codec, 90_000, -3000, &[(3000, 3000, 9, true)]);
        track.presentation_end = Some(45);
        track
    };
    for codec in [
        fixtures::build_avc_test_codec(640, 360),
        fixtures::build_aac_test_codec(),
    ] {
        let title = build_title_from_tracks(vec![short(codec)]);
        let rendition = &title.renditions[0];
        assert_eq!(rendition.segment_cuts, [0, 1]);
        assert_eq!(title.segment_duration_ticks(rendition, 0), 1);
    }
}

fn expect_too_large(files: Vec<Arc<Index>>, segment_duration_ms: u32, message: &str) {
    let rules = PackagingRules {
        segment_duration_ms,
    };
    let error = Presentation::new(files, &rules).expect_err("no legal title");
    assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
    assert!(error.message.contains(message), "{error}");
}

fn build_audio_file(samples: usize) -> Arc<Index> {
    let rows = vec![(1024, 0, 1, true); samples];
    let audio = fixtures::build_track(fixtures::build_aac_test_codec(), 48_000, 0, &rows);
    build_index_of_tracks(vec![audio])
}

#[test]
fn titles_with_more_than_256_tracks_are_refused() {
    let track = || fixtures::build_video_track(1, 5, 100);
    let title = |count: usize| vec![build_index_of_tracks(vec![track(); count])];
    let rules = PackagingRules {
        segment_duration_ms: 2000,
    };
    let whole = Presentation::new(title(256), &rules).expect("a legal title");
    assert_eq!(whole.renditions.len(), 256);
    expect_too_large(title(257), 2000, "more than 256 tracks");
    // Copies of one audio track are listed once, so they do not count.
    let copies = vec![build_audio_file(100); 300];
    let whole = Presentation::new(copies, &rules).expect("a legal title");
    assert_eq!(whole.renditions.len(), 1);
}

#[test]
fn titles_with_more_than_100_million_samples_are_refused() {
    let files = vec![build_audio_file(1_000_000); 101];
    expect_too_large(files, 2000, "101000000 samples; at most 100000000");
}

#[test]
fn renditions_with_more_than_200_000_segments_are_refused() {
    let files = vec![build_audio_file(200_100)];
    expect_too_large(
        files,
        1,
        "at most 200000 are served: choose longer segments",
    );
}
