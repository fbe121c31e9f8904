//! Each rule finds what it is for, and nothing in a title without fault.

use super::*;
use media::codec::MediaFormat;
use media::index::{Index, IndexNote, Sample, SampleTableBuilder, Track, index_bytes};
use media::presentation::PackagingRules;
use std::path::Path;
use std::sync::Arc;

/// A track of the built-in film, to take the codec from.
fn demo(name: &str) -> Track {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media/demo");
    let bytes = std::fs::read(path.join(name)).unwrap();
    index_bytes(&bytes).unwrap().tracks.remove(0)
}

/// `seconds` of pictures, 25 a second of `size` bytes, with a key frame each `gop` of them.
fn video(seconds: u32, gop: u32, size: u32) -> Track {
    let row = |n: u32| (512, 0, size, n.is_multiple_of(gop));
    Track {
        timescale: 12_800,
        presentation_offset: 0,
        ..filled(demo("video-180p.mp4"), (0..seconds * 25).map(row))
    }
}

/// `seconds` of sound, 50 samples a second of 100 bytes.
fn audio(seconds: u32) -> Track {
    Track {
        timescale: 48_000,
        presentation_offset: 0,
        ..filled(
            demo("audio-eng.m4a"),
            (0..seconds * 50).map(|_| (960, 0, 100, true)),
        )
    }
}

/// The track with these samples instead: duration, composition offset, size, whether a key frame.
fn filled(track: Track, rows: impl Iterator<Item = (u32, i32, u32, bool)>) -> Track {
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
        notes: Vec::new(),
    }
}

fn found_in(files: Vec<Index>) -> Vec<Finding> {
    let files = files.into_iter().map(Arc::new).collect();
    find_problems(
        &Presentation::new(
            files,
            &PackagingRules {
                segment_duration_ms: 6000,
            },
        )
        .unwrap(),
    )
}

/// The findings of a title with one track a file.
fn found(tracks: Vec<Track>) -> Vec<Finding> {
    found_in(tracks.into_iter().map(index).collect())
}

/// Asserts that there is this finding, and no other.
fn only(found: &[Finding], level: FindingLevel, what: &str) {
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
    assert_eq!(found(ladder), []);
}

#[test]
fn index_notes_are_reported_with_their_position() {
    let mut file = index(video(30, 50, 1000));
    file.notes.push(IndexNote {
        track_id: 7,
        time_ticks: Some(99),
        message: "odd".into(),
    });
    let found = found_in(vec![file]);
    only(&found, FindingLevel::Warning, "odd");
    assert_eq!(found[0].place, "file 1, track 7, tick 99");
}

#[test]
fn key_frames_that_rarely_align_are_reported() {
    // Every 2 s and every 1.6 s: both every 8 s, which makes long segments but one group.
    let found = found(vec![video(32, 40, 1000), video(32, 50, 2000)]);
    only(
        &found,
        FindingLevel::Warning,
        "only 4 of 16 key frames are aligned with those of video=400000; the first difference is at 2.000 s",
    );
}

#[test]
fn key_frames_that_never_align_are_reported() {
    // Every 2 s and every 1.96 s: first together again after 98 s.
    let found = found(vec![video(60, 49, 1000), video(60, 50, 2000)]);
    only(
        &found,
        FindingLevel::Warning,
        "the first difference is at 2.000 s, so players cannot",
    );
}

#[test]
fn more_key_frames_than_the_others_do_no_harm() {
    assert_eq!(found(vec![video(30, 25, 1000), video(30, 50, 2000)]), []);
}

#[test]
fn rare_key_frames_are_reported() {
    let found = found(vec![video(60, 250, 1000)]);
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
}

#[test]
fn a_rendition_that_ends_early_is_reported() {
    let short = |seconds| found(vec![video(30, 50, 1000), audio(seconds)]);
    only(&short(28), FindingLevel::Warning, "ends 2.000 s before");
    assert_eq!(short(30), []);
}

#[test]
fn a_rendition_that_starts_late_is_reported() {
    let mut late = audio(29);
    late.presentation_offset = 48_000;
    let found = found(vec![video(30, 50, 1000), late]);
    only(&found, FindingLevel::Hint, "starts 1.000 s after");
}

#[test]
fn key_frames_shown_off_their_time_are_reported() {
    // The first key frame is shown at once, later ones a frame after they are decoded.
    let row = |n: u32| {
        (
            512,
            if n < 50 { 0 } else { 512 },
            1000,
            n.is_multiple_of(50),
        )
    };
    let beside = Track {
        timescale: 12_800,
        presentation_offset: 0,
        ..filled(demo("video-180p.mp4"), (0..750).map(row))
    };
    only(
        &found(vec![beside]),
        FindingLevel::Hint,
        "segments show their first frame",
    );
}

#[test]
fn codecs_that_some_players_refuse_are_reported() {
    for (code, wanted) in [(b"avc3", "avc1"), (b"hev1", "hvc1"), (b"dvhe", "dvh1")] {
        let mut track = video(30, 50, 1000);
        track.codec.fourcc = *code;
        only(
            &found(vec![track]),
            FindingLevel::Warning,
            &format!("players require {wanted}"),
        );
    }
}

#[test]
fn missing_aac_audio_is_reported() {
    let mut sound = audio(30);
    if let MediaFormat::Audio(audio) = &mut sound.codec.format {
        audio.coding = AudioCoding::Ac3;
    }
    let both = || vec![video(30, 50, 1000), sound.clone()];
    only(&found(both()), FindingLevel::Hint, "there is no AAC audio");
    let mut aac = audio(30);
    // Else it would be taken for a copy.
    aac.language = "fra".into();
    let beside = both().into_iter().chain([aac]).collect();
    assert_eq!(found(beside), [], "AAC beside it is enough");
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
        ..filled(demo("video-180p.mp4"), (0..750).map(row))
    };
    only(&found(vec![track]), FindingLevel::Warning, "its peak is 3.");
}

#[test]
fn uneven_bitrate_ladders_are_reported() {
    let step = |high| found(vec![video(30, 50, 1000), video(30, 50, high)]);
    assert_eq!(step(1500), []);
    only(&step(1200), FindingLevel::Hint, "a factor of 1.2");
    only(&step(4000), FindingLevel::Hint, "a factor of 3.99");
}

#[test]
fn audio_without_language_is_reported() {
    let mut unsaid = audio(30);
    unsaid.language = "und".into();
    only(
        &found(vec![audio(30), unsaid.clone()]),
        FindingLevel::Warning,
        "it declares no language",
    );
    assert_eq!(found(vec![unsaid]), [], "with one sound there is no choice");
}
