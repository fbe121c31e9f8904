//! Fragments whose decode times have gaps, overlaps and jumps.

use super::*;
use crate::index::testing::unplaced_sample;

/// Builds a track with three samples of 100 ticks each. The decode time of the first sample is
/// 5000.
fn build_draft() -> TrackDraft {
    let tkhd = Tkhd {
        track_id: 3,
        is_enabled: true,
        matrix: crate::bmff::tkhd::IDENTITY_MATRIX,
    };
    let mut draft = TrackDraft::new(tkhd, 1000, Vec::new());
    draft.file_len = 1000;
    draft.begin_fragment(5000).unwrap();
    (0..3).for_each(|n| push_ten_byte_sample(&mut draft, n * 10));
    draft
}

fn push_ten_byte_sample(draft: &mut TrackDraft, offset: u64) {
    let sample = unplaced_sample(100, 0, 10, true);
    draft.push_sample(Sample { offset, ..sample }).unwrap();
}

/// Adds one fragment for each of these decode times; each fragment has one sample. Returns the
/// durations and the notes.
fn durations_and_notes_after(times: &[u64]) -> (Vec<u32>, Vec<String>) {
    let mut draft = build_draft();
    for (n, time) in times.iter().enumerate() {
        draft.begin_fragment(*time).unwrap();
        push_ten_byte_sample(&mut draft, 30 + 10 * n as u64);
    }
    let mut notes = Vec::new();
    draft.append_notes(&mut notes);
    let samples = draft.samples.finish();
    let durations = (0..samples.len()).map(|n| samples.duration(n)).collect();
    (
        durations,
        notes.into_iter().map(|note| note.message).collect(),
    )
}

#[test]
fn gaps_and_overlaps_change_the_previous_duration() {
    assert_eq!(durations_and_notes_after(&[5300]), (vec![100; 4], vec![]));
    let (durations, notes) = durations_and_notes_after(&[5307, 5407, 5500]);
    assert_eq!(durations, [100, 100, 107, 100, 93, 100]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].contains("1 gaps") && notes[0].contains("at most 7 ticks"),
        "{notes:?}"
    );
    assert!(notes[1].contains("1 overlaps"), "{notes:?}");
}

#[test]
fn a_jump_back_is_ignored() {
    let (durations, notes) = durations_and_notes_after(&[0, 100, 210]);
    assert_eq!(durations, [100, 100, 100, 100, 110, 100]);
    assert!(
        notes.iter().any(|note| note.contains("1 jumps")),
        "{notes:?}"
    );
}

#[test]
fn decode_times_beyond_the_limit_are_refused() {
    let error = build_draft().begin_fragment(u64::MAX).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
}
