//! The indexed tables equal the muxed tables, for any layout and for any split of the input.

mod text_tracks;

use super::testing::{
    OffsetBase, ProgressiveLayout, SyntheticFragment, SyntheticMediaFile, SyntheticTrack,
    build_synthetic_progressive, mux_fragmented, unplaced_sample,
};
use super::{Index, Indexer, Sample, SampleTable, SampleTableBuilder, index_file_in_memory};
use crate::Result;
use proptest::collection::vec;
use proptest::prelude::*;

fn any_rows(most: usize) -> impl Strategy<Value = Vec<Sample>> {
    let duration = prop_oneof![4 => Just(512u32), 1 => 1u32..4000];
    let composition_offset = prop_oneof![3 => Just(0i32), 1 => -2000i32..2000];
    let size = prop_oneof![3 => 0u32..600, 1 => Just(77u32)];
    let one = (duration, composition_offset, size, any::<bool>());
    vec(one, 1..most).prop_map(|rows| {
        rows.into_iter()
            .map(|(duration, composition_offset, size, sync)| {
                unplaced_sample(duration, composition_offset, size, sync)
            })
            .collect()
    })
}

fn any_film() -> impl Strategy<Value = Vec<SyntheticTrack>> {
    let audio = (1u32..200, vec(1u32..400, 1..300), any::<bool>());
    (any_rows(60), audio, any_rows(20)).prop_map(|(video, (size, sizes, same), more)| {
        let size = |other: &u32| if same { size } else { *other };
        let audio = sizes
            .iter()
            .map(|other| unplaced_sample(1024, 0, size(other), true))
            .collect();
        vec![
            SyntheticTrack::video(7, video),
            SyntheticTrack::audio(2, audio),
            SyntheticTrack::video(9, more),
        ]
    })
}

fn any_layout() -> impl Strategy<Value = ProgressiveLayout> {
    let chunks = vec((0usize..3, 1u32..9), 0..60);
    (
        any::<[bool; 3]>(),
        chunks,
        prop_oneof![Just(0u64), 1u64..99],
    )
        .prop_map(
            |([moov_first, wide, halves], chunks, gap)| ProgressiveLayout {
                moov_first,
                is_64_bit: wide,
                has_stz2: halves,
                chunks,
                gap_bytes: gap,
                has_mvex: false,
            },
        )
}

fn any_fragments() -> impl Strategy<Value = Vec<SyntheticFragment>> {
    let base = prop_oneof![
        Just(OffsetBase::Absolute),
        Just(OffsetBase::Moof),
        Just(OffsetBase::Implicit)
    ];
    let trafs = vec((0usize..3, vec(0u32..9, 1..3)), 0..4);
    let one = (base, any::<[bool; 2]>(), any::<u8>(), trafs);
    let one = one.prop_map(|(base, [explicit, tfdt], stray, trafs)| SyntheticFragment {
        offset_base: base,
        has_explicit_fields: explicit,
        has_tfdt: tfdt,
        stray_boxes: stray,
        trafs,
    });
    vec(one, 0..12)
}

/// Appends a fragment with all remaining samples of each track.
fn append_rest(mut fragments: Vec<SyntheticFragment>) -> Vec<SyntheticFragment> {
    fragments.push(SyntheticFragment {
        offset_base: OffsetBase::Moof,
        has_explicit_fields: true,
        has_tfdt: true,
        stray_boxes: 0,
        trafs: (0..3).map(|track| (track, vec![1000])).collect(),
    });
    fragments
}

/// Feeds a file in pieces of random sizes, which may be smaller or larger than requested.
fn index_in_pieces(muxed: &SyntheticMediaFile, mut seed: u64) -> Result<Index> {
    let mut indexer = Indexer::new(muxed.len());
    while let Some(range) = indexer.needed_range() {
        assert!(range.start < range.end && range.end <= muxed.len());
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let len = 1 + (seed >> 33) % (range.end - range.start + 100);
        indexer.feed(&muxed.read_range(range.start..muxed.len().min(range.start + len)))?;
    }
    indexer.finish()
}

fn assert_tables(muxed: &SyntheticMediaFile, index: &Index, tracks: &[SyntheticTrack]) {
    assert_eq!(index.tracks.len(), tracks.len());
    for ((track, muxed), rows) in index.tracks.iter().zip(tracks).zip(&muxed.expected_samples) {
        assert_eq!(rows.len(), muxed.rows.len(), "the muxer lost samples");
        let found: Vec<Sample> = track.samples.iter_range(0..track.samples.len()).collect();
        assert_eq!(&found, rows);
        assert_eq!(track.samples, build_sample_by_sample(rows, !muxed.is_video));
        assert_eq!((track.id, track.timescale), (muxed.id, muxed.timescale));
        assert_eq!(track.codec.video().is_some(), muxed.is_video);
        assert_eq!(track.presentation_offset, muxed.first_dts as i64);
        assert_eq!((&*track.language, &track.name), ("eng", &None));
    }
}

/// Builds a table by adding one sample after the other.
fn build_sample_by_sample(rows: &[Sample], all_sync: bool) -> SampleTable {
    let mut builder = SampleTableBuilder::default();
    rows.iter().for_each(|row| builder.push(*row));
    if all_sync {
        builder.set_all_sync();
    }
    builder.finish()
}

proptest! {
    #[test]
    fn progressive_files_are_indexed_to_their_tables(
        tracks in any_film(), layout in any_layout(), seed in any::<u64>()
    ) {
        let muxed = build_synthetic_progressive(&tracks, &layout);
        let index = index_in_pieces(&muxed, seed).unwrap();
        assert_tables(&muxed, &index, &tracks);
        prop_assert_eq!(index.fingerprint, index_file_in_memory(&muxed.to_bytes()).unwrap().fingerprint);
    }

    #[test]
    fn fragmented_files_are_indexed_to_their_tables(
        mut tracks in any_film(), fragments in any_fragments(), base in 0u64..1 << 40, seed in any::<u64>()
    ) {
        let fragments = append_rest(fragments);
        if fragments[0].has_tfdt && fragments[0].trafs.len() == 3 {
            tracks[0].first_dts = base * u64::from(fragments[0].trafs[0].0 == 0);
        }
        let muxed = mux_fragmented(&tracks, 0, &fragments);
        assert_tables(&muxed, &index_in_pieces(&muxed, seed).unwrap(), &tracks);
    }

    #[test]
    fn samples_in_the_moov_come_before_those_in_fragments(
        tracks in any_film(), fragments in any_fragments(), in_moov in 1u32..30, seed in any::<u64>()
    ) {
        let muxed = mux_fragmented(&tracks, in_moov, &append_rest(fragments));
        assert_tables(&muxed, &index_in_pieces(&muxed, seed).unwrap(), &tracks);
    }
}

/// Returns the byte ranges that the indexer reads from a file.
fn collect_reads(muxed: &SyntheticMediaFile) -> Vec<std::ops::Range<u64>> {
    let mut indexer = Indexer::new(muxed.len());
    let mut reads = Vec::new();
    while let Some(range) = indexer.needed_range() {
        reads.push(range.clone());
        indexer.feed(&muxed.read_range(range)).unwrap();
    }
    indexer.finish().unwrap();
    reads
}

#[test]
fn a_moov_takes_one_or_two_reads_and_the_media_none() {
    let film = |samples: u32, moov_first| {
        let rows = (0..samples).map(|n| unplaced_sample(512, 0, 5000 + n % 9, n % 48 == 0));
        let layout = ProgressiveLayout {
            moov_first,
            is_64_bit: true,
            ..ProgressiveLayout::default()
        };
        build_synthetic_progressive(&[SyntheticTrack::video(1, rows.collect())], &layout)
    };
    let once = collect_reads(&film(2000, true));
    assert_eq!((once.len(), &once[0]), (1, &(0..65_536)));
    let small = film(2000, false);
    let moov = small.bytes_before_media.len() as u64 + small.media_len;
    assert_eq!(collect_reads(&small), [0..65_536, moov..small.len()]);
    let large = film(100_000, true);
    let moov = large.bytes_before_media.len() as u64 - 16;
    assert_eq!(collect_reads(&large), [0..65_536, 65_536..moov]);
}

#[test]
fn a_fragment_takes_one_read_and_small_ones_share_reads() {
    let film = |size| {
        let rows = (0..2000).map(|n| unplaced_sample(512, 0, size + n as u32 % 9, n % 50 == 0));
        let one = SyntheticFragment {
            offset_base: OffsetBase::Moof,
            has_explicit_fields: true,
            has_tfdt: true,
            stray_boxes: 1 | 2 | 4,
            trafs: vec![(0, vec![50])],
        };
        mux_fragmented(
            &[SyntheticTrack::video(1, rows.collect())],
            0,
            &vec![one; 40],
        )
    };
    let large = film(6000);
    let found = collect_reads(&large);
    assert!(found.len() <= 41, "{} reads", found.len());
    let bytes: u64 = found.iter().map(|range| range.end - range.start).sum();
    assert!(bytes < 65_536 + 40 * 4200, "{bytes} bytes");
    let small = film(600);
    assert!(
        collect_reads(&small).len() <= 4,
        "{:?}",
        collect_reads(&small)
    );
}
