//! These tests check that each rule reports its problem, and that a flawless title has no findings.

use super::*;
use media::codec::TrackFormat;
use media::index::{Index, IndexNote, Sample, SampleTableBuilder, Track, index_file_in_memory};
use media::presentation::PackagingRules;
use media::text::{TextRendition, TextSet, parse_vtt};
use std::path::Path;
use std::sync::Arc;

/// Returns a track of the built-in film. The tests use the codec of this track.
fn read_demo_track(name: &str) -> Track {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media/demo");
    let bytes = std::fs::read(path.join(name)).unwrap();
    index_file_in_memory(&bytes).unwrap().tracks.remove(0)
}

/// Builds a video track of `seconds` seconds with 25 frames per second. Each frame has `size`
/// bytes, and every `gop`-th frame is a key frame.
fn video(seconds: u32, gop: u32, size: u32) -> Track {
    let row = |n: u32| (512, 0, size, n.is_multiple_of(gop));
    Track {
        timescale: 12_800,
        presentation_offset: 0,
        ..replace_samples(
            read_demo_track("video-180p.mp4"),
            (0..seconds * 25).map(row),
        )
    }
}

/// Builds an audio track of `seconds` seconds with 50 samples per second. Each sample has 100
/// bytes.
fn audio(seconds: u32) -> Track {
    Track {
        timescale: 48_000,
        presentation_offset: 0,
        ..replace_samples(
            read_demo_track("audio-eng.m4a"),
            (0..seconds * 50).map(|_| (960, 0, 100, true)),
        )
    }
}

/// Replaces the samples of a track. A row contains the duration, the composition offset and the
/// size of a sample, and whether the sample is a key frame.
fn replace_samples(track: Track, rows: impl Iterator<Item = (u32, i32, u32, bool)>) -> Track {
    let mut samples = SampleTableBuilder::default();
    let mut offset = 0;
    for (duration, cts, size, sync) in rows {
        samples.push(Sample {
            dts: 0,
            duration,
            composition_offset: cts,
            size,
            is_sync: sync,
            offset,
        });
        offset += u64::from(size);
    }
    Track {
        samples: samples.finish(),
        ..track
    }
}

fn index(track: Track) -> Index {
    Index {
        file_len: 1 << 30,
        fingerprint: u64::from(track.samples.len()),
        media_version: None,
        tracks: vec![track],
        text_tracks: Vec::new(),
        notes: Vec::new(),
        left_out: Vec::new(),
        caption_channels: None,
    }
}

fn check_files(files: Vec<Index>) -> Vec<Finding> {
    let files = files.into_iter().map(Arc::new).collect();
    find_problems(
        &Presentation::new(
            files,
            &PackagingRules {
                segment_duration_ms: 6000,
            },
        )
        .unwrap(),
        false,
    )
}

/// Checks a title with one track per file.
fn check_tracks(tracks: Vec<Track>) -> Vec<Finding> {
    check_files(tracks.into_iter().map(index).collect())
}

/// Asserts that `found` contains exactly one finding, with this level and with `what` in its text.
fn assert_only_finding(found: &[Finding], level: FindingLevel, what: &str) {
    let [one] = found else {
        panic!("not one finding: {found:#?}");
    };
    assert_eq!(one.level, level, "{one:?}");
    assert!(one.what.contains(what), "{what:?} is not in {one:?}");
    assert!(!one.fix.is_empty() && !one.place.is_empty(), "{one:?}");
}

#[test]
fn a_good_title_has_no_findings() {
    let ladder = vec![video(30, 50, 1000), video(30, 50, 2000), audio(30)];
    assert_eq!(check_tracks(ladder), []);
}

#[test]
fn index_notes_are_reported_with_their_position() {
    let mut file = index(video(30, 50, 1000));
    file.notes.push(IndexNote {
        track_id: 7,
        time_ticks: Some(99),
        message: "odd".into(),
    });
    let found = check_files(vec![file]);
    assert_only_finding(&found, FindingLevel::Warning, "odd");
    assert_eq!(found[0].place, "file 1, track 7, tick 99");
}

#[test]
fn a_note_about_a_trim_has_its_own_remedy() {
    let mut file = index(video(30, 50, 1000));
    file.notes.push(IndexNote {
        track_id: 1,
        time_ticks: None,
        message: "the edit list starts 0.520 s after a key frame, inside a GOP: …".into(),
    });
    let found = check_files(vec![file]);
    assert!(found[0].fix.contains("trim the film at a key frame"));
}

#[test]
fn key_frames_that_rarely_align_are_reported() {
    // Key frames every 2 s and every 1.6 s coincide every 8 s. The segments are therefore long, but
    // both renditions are in one switching group.
    let found = check_tracks(vec![video(32, 40, 1000), video(32, 50, 2000)]);
    assert_only_finding(
        &found,
        FindingLevel::Warning,
        "only 4 of 16 key frames are aligned with those of video=400000; the first difference is at 2.000 s",
    );
}

#[test]
fn key_frames_that_never_align_are_reported() {
    // Key frames every 2 s and every 1.96 s coincide only every 98 s. The film lasts 60 s, so only
    // the first key frames coincide.
    let found = check_tracks(vec![video(60, 49, 1000), video(60, 50, 2000)]);
    assert_only_finding(
        &found,
        FindingLevel::Warning,
        "the first difference is at 2.000 s, so players cannot",
    );
}

#[test]
fn more_key_frames_than_the_others_do_no_harm() {
    assert_eq!(
        check_tracks(vec![video(30, 25, 1000), video(30, 50, 2000)]),
        []
    );
}

#[test]
fn rare_key_frames_are_reported() {
    let found = check_tracks(vec![video(60, 250, 1000)]);
    let [warning, hint] = &*found else {
        panic!("{found:#?}");
    };
    assert!(
        warning
            .what
            .contains("the segment at 0.000 s lasts 10.000 s")
    );
    assert_eq!(warning.level, FindingLevel::Warning);
    assert!(hint.what.contains("a key frame every 10.00 s"), "{hint:?}");
    assert_eq!(hint.level, FindingLevel::Hint);
    // Two seconds at 25 frames per second are 50 frames.
    assert!(hint.fix.contains("-g 50"), "{hint:?}");
    assert!(warning.fix.contains("-g 50"), "{warning:?}");
}

#[test]
fn the_key_frame_interval_follows_the_frame_rate_of_the_film() {
    // The video has 60 frames per second, and a key frame every 10 s.
    let rows = (0..60 * 60).map(|n: u32| (1000, 0, 1000, n.is_multiple_of(600)));
    let track = Track {
        timescale: 60_000,
        presentation_offset: 0,
        ..replace_samples(read_demo_track("video-180p.mp4"), rows)
    };
    let found = check_tracks(vec![track]);
    assert!(found.len() == 2, "{found:#?}");
    assert!(
        found.iter().all(|one| one.fix.contains("-g 120")),
        "{found:#?}"
    );
}

#[test]
fn a_rendition_that_ends_early_is_reported() {
    let short = |seconds| check_tracks(vec![video(30, 50, 1000), audio(seconds)]);
    assert_only_finding(&short(28), FindingLevel::Warning, "ends 2.000 s before");
    assert_eq!(short(30), []);
}

#[test]
fn a_rendition_that_starts_late_is_reported() {
    let mut late = audio(29);
    late.presentation_offset = 48_000;
    let found = check_tracks(vec![video(30, 50, 1000), late]);
    assert_only_finding(&found, FindingLevel::Hint, "starts 1.000 s after");
}

#[test]
fn key_frames_with_another_delay_are_listed_when_they_are_shown() {
    // The first key frame is presented at its decoding time. The other key frames are presented one
    // frame after their decoding times.
    let row = |n: u32| {
        (
            512,
            if n < 50 { 0 } else { 512 },
            1000,
            n.is_multiple_of(50),
        )
    };
    let files = Track {
        timescale: 12_800,
        presentation_offset: 0,
        ..replace_samples(read_demo_track("video-180p.mp4"), (0..750).map(row))
    };
    assert_eq!(check_tracks(vec![files]), []);
}

#[test]
fn open_gops_are_reported() {
    let row = |n: u32| {
        let offset = match n % 50 {
            0 if n > 0 => 2,
            1 if n > 1 => 0,
            _ => 1,
        };
        (512, offset * 512, 1000, n.is_multiple_of(50))
    };
    let track = Track {
        timescale: 12_800,
        presentation_offset: -512,
        ..replace_samples(read_demo_track("video-180p.mp4"), (0..750).map(row))
    };
    assert_only_finding(
        &check_tracks(vec![track]),
        FindingLevel::Warning,
        "4 of 5 segments have pictures before their first key frame, as open GOPs do",
    );
}

#[test]
fn a_trim_inside_a_gop_is_reported_with_its_cause() {
    let mut trimmed = video(30, 50, 1000);
    trimmed.presentation_offset = -6400;
    // The audio starts where the edit list starts, so the audio is not reported as late.
    assert_only_finding(
        &check_tracks(vec![trimmed, audio(30)]),
        FindingLevel::Warning,
        "the edit list starts 0.500 s after a key frame, inside a GOP",
    );
}

#[test]
fn codecs_that_some_players_refuse_are_reported() {
    for (code, wanted) in [(b"avc3", "avc1"), (b"hev1", "hvc1"), (b"dvhe", "dvh1")] {
        let mut track = video(30, 50, 1000);
        track.codec.fourcc = *code;
        assert_only_finding(
            &check_tracks(vec![track]),
            FindingLevel::Warning,
            &format!("players require {wanted}"),
        );
    }
}

#[test]
fn missing_aac_audio_is_reported() {
    let mut ac3 = audio(30);
    if let TrackFormat::Audio(audio) = &mut ac3.codec.format {
        audio.coding = AudioCoding::Ac3;
    }
    let both = || vec![video(30, 50, 1000), ac3.clone()];
    assert_only_finding(
        &check_tracks(both()),
        FindingLevel::Hint,
        "there is no AAC audio",
    );
    let mut aac = audio(30);
    // If both audio tracks had the same language, the AAC track would count as a copy of the AC-3
    // track.
    aac.language = "fra".into();
    let files = both().into_iter().chain([aac]).collect();
    assert_eq!(check_tracks(files), [], "AAC next to it is enough");
}

#[test]
fn a_peak_far_above_the_average_is_reported() {
    let row = |n: u32| {
        (
            512,
            0,
            if n < 150 { 6000 } else { 500 },
            n.is_multiple_of(50),
        )
    };
    let track = Track {
        timescale: 12_800,
        presentation_offset: 0,
        ..replace_samples(read_demo_track("video-180p.mp4"), (0..750).map(row))
    };
    assert_only_finding(
        &check_tracks(vec![track]),
        FindingLevel::Warning,
        "its peak is 3.",
    );
}

#[test]
fn uneven_bitrate_ladders_are_reported() {
    let step = |high| check_tracks(vec![video(30, 50, 1000), video(30, 50, high)]);
    assert_eq!(step(1500), []);
    assert_only_finding(&step(1200), FindingLevel::Hint, "a factor of 1.2");
    assert_only_finding(&step(4000), FindingLevel::Hint, "a factor of 3.99");
}

#[test]
fn audio_without_language_is_reported() {
    let mut untagged = audio(30);
    untagged.language = "und".into();
    assert_only_finding(
        &check_tracks(vec![audio(30), untagged.clone()]),
        FindingLevel::Warning,
        "it declares no language",
    );
    assert_eq!(
        check_tracks(vec![untagged]),
        [],
        "a single audio track needs no language"
    );
}

#[test]
fn defects_of_text_are_reported_with_their_first_place() {
    let vtt = "WEBVTT\n\n00:02.000 --> 00:01.000\nback\n\n00:03.000 --> 00:09.000\na\n\n00:04.000 --> 00:05.000\nb\n\n00:31.000 --> 00:32.000\nlate\n\n00:33.000 --> 00:34.000\nlater\n";
    let mut problems = Vec::new();
    let cues = parse_vtt(vtt, &mut problems);
    let text = TextRendition {
        language: "und".into(),
        cues,
        source: "film.vtt".into(),
        problems,
        ..TextRendition::default()
    };
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    let film = Presentation::new(vec![Arc::new(index(video(30, 50, 1000)))], &rules).unwrap();
    let found = find_problems(&film.with_text(Arc::new(TextSet::new(vec![text]))), false);
    let messages: Vec<&str> = found.iter().map(|finding| &*finding.what).collect();
    assert_eq!(
        messages,
        [
            "cues end before they start and are left out: 1, the first at 2.000 s",
            "cues start before the previous one has ended: 1, the first at 4.000 s",
            "cues start after the end of the film: 2, the first at 31.000 s",
            "the text declares no language, so players cannot choose it",
        ]
    );
}
