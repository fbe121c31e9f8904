//! Each rule finds what it is for, and nothing in a title without fault.

use super::*;
use media::codec::Media;
use media::index::{Index, Note, Sample, SamplesBuilder, Track, index_bytes};
use media::presentation::Rules;
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
        origin: 0,
        ..filled(demo("video-180p.mp4"), (0..seconds * 25).map(row))
    }
}

/// `seconds` of sound, 50 samples a second of 100 bytes.
fn audio(seconds: u32) -> Track {
    Track {
        timescale: 48_000,
        origin: 0,
        ..filled(
            demo("audio-eng.m4a"),
            (0..seconds * 50).map(|_| (960, 0, 100, true)),
        )
    }
}

/// The track with these samples instead: duration, composition offset, size, whether a key frame.
fn filled(track: Track, rows: impl Iterator<Item = (u32, i32, u32, bool)>) -> Track {
    let mut samples = SamplesBuilder::default();
    let mut offset = 0;
    for (duration, cts, size, sync) in rows {
        samples.push(Sample {
            dts: 0,
            duration,
            cts,
            size,
            sync,
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
        media_state: None,
        tracks: vec![track],
        notes: Vec::new(),
    }
}

fn found_in(files: Vec<Index>) -> Vec<Finding> {
    let files = files.into_iter().map(Arc::new).collect();
    all(&Presentation::new(files, &Rules { segment_ms: 6000 }).unwrap())
}

/// The findings of a title with one track a file.
fn found(tracks: Vec<Track>) -> Vec<Finding> {
    found_in(tracks.into_iter().map(index).collect())
}

/// Asserts that there is this finding, and no other.
fn only(found: &[Finding], level: Level, what: &str) {
    let [one] = found else {
        panic!("not one finding: {found:#?}");
    };
    assert_eq!(one.level, level, "{one:?}");
    assert!(one.what.contains(what), "{what:?} is not in {one:?}");
    assert!(!one.fix.is_empty() && !one.place.is_empty(), "{one:?}");
}

#[test]
fn a_good_title_has_none() {
    let ladder = vec![video(30, 50, 1000), video(30, 50, 2000), audio(30)];
    assert_eq!(found(ladder), []);
}

#[test]
fn what_the_index_noticed_is_told_with_its_place() {
    let mut file = index(video(30, 50, 1000));
    file.notes.push(Note {
        track: 7,
        at: Some(99),
        what: "odd".into(),
    });
    let found = found_in(vec![file]);
    only(&found, Level::Warning, "odd");
    assert_eq!(found[0].place, "file 1, track 7, tick 99");
}

#[test]
fn key_frames_that_rarely_meet() {
    // Every 2 s and every 1.6 s: both every 8 s, which makes long segments but one group.
    let found = found(vec![video(32, 40, 1000), video(32, 50, 2000)]);
    only(
        &found,
        Level::Warning,
        "only 4 of 16 key frames line up with those of video=400000; they part at 2.000 s",
    );
}

#[test]
fn key_frames_that_never_meet() {
    // Every 2 s and every 1.96 s: first together again after 98 s.
    let found = found(vec![video(60, 49, 1000), video(60, 50, 2000)]);
    only(
        &found,
        Level::Warning,
        "they part at 2.000 s, so players cannot",
    );
}

#[test]
fn more_key_frames_than_the_others_do_no_harm() {
    assert_eq!(found(vec![video(30, 25, 1000), video(30, 50, 2000)]), []);
}

#[test]
fn key_frames_so_rare_that_segments_are_long() {
    let found = found(vec![video(60, 250, 1000)]);
    let [warning, hint] = &*found else {
        panic!("{found:#?}");
    };
    assert!(
        warning
            .what
            .contains("a segment of 10.000 s begins at 0.000 s")
    );
    assert_eq!(warning.level, Level::Warning);
    assert!(hint.what.contains("a key frame every 10.00 s"), "{hint:?}");
    assert_eq!(hint.level, Level::Hint);
}

#[test]
fn a_rendition_that_ends_early() {
    let short = |seconds| found(vec![video(30, 50, 1000), audio(seconds)]);
    only(&short(28), Level::Warning, "it ends 2.000 s before");
    assert_eq!(short(30), []);
}

#[test]
fn a_rendition_that_starts_late() {
    let mut late = audio(29);
    late.origin = 48_000;
    let found = found(vec![video(30, 50, 1000), late]);
    only(&found, Level::Hint, "it starts 1.000 s after");
}

#[test]
fn key_frames_shown_beside_their_time() {
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
        origin: 0,
        ..filled(demo("video-180p.mp4"), (0..750).map(row))
    };
    only(
        &found(vec![beside]),
        Level::Hint,
        "of its segments show their first",
    );
}

#[test]
fn codes_that_some_players_refuse() {
    for (code, wanted) in [(b"avc3", "avc1"), (b"hev1", "hvc1"), (b"dvhe", "dvh1")] {
        let mut track = video(30, 50, 1000);
        track.codec.fourcc = *code;
        only(
            &found(vec![track]),
            Level::Warning,
            &format!("players want {wanted}"),
        );
    }
}

#[test]
fn sound_that_is_not_aac() {
    let mut sound = audio(30);
    if let Media::Audio(audio) = &mut sound.codec.media {
        audio.coding = AudioCoding::Ac3;
    }
    let both = || vec![video(30, 50, 1000), sound.clone()];
    only(&found(both()), Level::Hint, "there is no AAC sound");
    let mut aac = audio(30);
    // Else it would be taken for a copy.
    aac.language = "fra".into();
    let beside = both().into_iter().chain([aac]).collect();
    assert_eq!(found(beside), [], "AAC beside it is enough");
}

#[test]
fn a_peak_far_above_the_average() {
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
        origin: 0,
        ..filled(demo("video-180p.mp4"), (0..750).map(row))
    };
    only(&found(vec![track]), Level::Warning, "its peak is 3.");
}

#[test]
fn steps_of_a_ladder() {
    let step = |high| found(vec![video(30, 50, 1000), video(30, 50, high)]);
    assert_eq!(step(1500), []);
    only(&step(1200), Level::Hint, "a factor of 1.2");
    only(&step(4000), Level::Hint, "a factor of 3.99");
}

#[test]
fn sounds_of_which_one_has_no_language() {
    let mut unsaid = audio(30);
    unsaid.language = "und".into();
    only(
        &found(vec![audio(30), unsaid.clone()]),
        Level::Warning,
        "its language is not said",
    );
    assert_eq!(found(vec![unsaid]), [], "with one sound there is no choice");
}
