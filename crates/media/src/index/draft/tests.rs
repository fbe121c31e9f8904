//! Times of fragments that do not meet.

use super::*;
use crate::index::testing::row;

/// A track with three samples of 100 ticks, the first at 5000.
fn draft() -> Draft {
    let tkhd = Tkhd {
        id: 3,
        enabled: true,
        matrix: crate::bmff::tkhd::UPRIGHT,
    };
    let mut draft = Draft::new(tkhd, 1000, Vec::new());
    draft.file_len = 1000;
    draft.begin_fragment(5000).unwrap();
    (0..3).for_each(|n| push(&mut draft, n * 10));
    draft
}

fn push(draft: &mut Draft, offset: u64) {
    let sample = row(100, 0, 10, true);
    draft.push(Sample { offset, ..sample }).unwrap();
}

/// Brings fragments of a sample each at these decode times, and gives the durations then,
/// and what was noted.
fn after(times: &[u64]) -> (Vec<u32>, Vec<String>) {
    let mut draft = draft();
    for (n, time) in times.iter().enumerate() {
        draft.begin_fragment(*time).unwrap();
        push(&mut draft, 30 + 10 * n as u64);
    }
    let mut notes = Vec::new();
    draft.tell(&mut notes);
    let samples = draft.samples.finish();
    let durations = (0..samples.len()).map(|n| samples.duration(n)).collect();
    (durations, notes.into_iter().map(|note| note.what).collect())
}

#[test]
fn gaps_and_overlaps_change_the_sample_before() {
    assert_eq!(after(&[5300]), (vec![100; 4], vec![]));
    let (durations, notes) = after(&[5307, 5407, 5500]);
    assert_eq!(durations, [100, 100, 107, 100, 93, 100]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].contains("1 gaps") && notes[0].contains("at most 7 ticks"),
        "{notes:?}"
    );
    assert!(notes[1].contains("1 overlaps"), "{notes:?}");
}

#[test]
fn a_jump_back_goes_on_where_it_was() {
    let (durations, notes) = after(&[0, 100, 210]);
    assert_eq!(durations, [100, 100, 100, 100, 110, 100]);
    assert!(
        notes.iter().any(|note| note.contains("1 jumps")),
        "{notes:?}"
    );
}

#[test]
fn times_beyond_all_films_are_refused() {
    let error = draft().begin_fragment(u64::MAX).unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
}
