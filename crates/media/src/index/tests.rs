//! What the indexer gives back is what was muxed, whatever the layout and the chunking.

use super::testing::{Base, Fragment, Layout, MuxTrack, Muxed, fragmented, progressive, row};
use super::{Index, Indexer, Sample, Samples, SamplesBuilder, index_bytes};
use crate::Result;
use proptest::collection::vec;
use proptest::prelude::*;

fn rows(most: usize) -> impl Strategy<Value = Vec<Sample>> {
    let duration = prop_oneof![4 => Just(512u32), 1 => 1u32..4000];
    let cts = prop_oneof![3 => Just(0i32), 1 => -2000i32..2000];
    let size = prop_oneof![3 => 0u32..600, 1 => Just(77u32)];
    let one = (duration, cts, size, any::<bool>());
    vec(one, 1..most).prop_map(|rows| {
        rows.into_iter()
            .map(|(duration, cts, size, sync)| row(duration, cts, size, sync))
            .collect()
    })
}

fn film() -> impl Strategy<Value = Vec<MuxTrack>> {
    let audio = (1u32..200, vec(1u32..400, 1..300), any::<bool>());
    (rows(60), audio, rows(20)).prop_map(|(video, (size, sizes, same), more)| {
        let size = |other: &u32| if same { size } else { *other };
        let audio = sizes
            .iter()
            .map(|other| row(1024, 0, size(other), true))
            .collect();
        vec![
            MuxTrack::video(7, video),
            MuxTrack::audio(2, audio),
            MuxTrack::video(9, more),
        ]
    })
}

fn layout() -> impl Strategy<Value = Layout> {
    let chunks = vec((0usize..3, 1u32..9), 0..60);
    (
        any::<[bool; 3]>(),
        chunks,
        prop_oneof![Just(0u64), 1u64..99],
    )
        .prop_map(|([moov_first, wide, halves], chunks, gap)| Layout {
            moov_first,
            wide,
            halves,
            chunks,
            gap,
            mvex: false,
        })
}

fn fragments() -> impl Strategy<Value = Vec<Fragment>> {
    let base = prop_oneof![Just(Base::Absolute), Just(Base::Moof), Just(Base::Implicit)];
    let trafs = vec((0usize..3, vec(0u32..9, 1..3)), 0..4);
    let one = (base, any::<[bool; 2]>(), any::<u8>(), trafs);
    let one = one.prop_map(|(base, [explicit, tfdt], stray, trafs)| Fragment {
        base,
        explicit,
        tfdt,
        stray,
        trafs,
    });
    vec(one, 0..12)
}

/// Appends a fragment with all that is left of each track.
fn with_rest(mut fragments: Vec<Fragment>) -> Vec<Fragment> {
    fragments.push(Fragment {
        base: Base::Moof,
        explicit: true,
        tfdt: true,
        stray: 0,
        trafs: (0..3).map(|track| (track, vec![1000])).collect(),
    });
    fragments
}

/// Feeds a file in pieces of random sizes, smaller and larger than asked.
fn index_pieces(muxed: &Muxed, mut seed: u64) -> Result<Index> {
    let mut indexer = Indexer::new(muxed.len());
    while let Some(range) = indexer.need() {
        assert!(range.start < range.end && range.end <= muxed.len());
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let len = 1 + (seed >> 33) % (range.end - range.start + 100);
        indexer.feed(&muxed.read(range.start..muxed.len().min(range.start + len)))?;
    }
    indexer.finish()
}

fn check(muxed: &Muxed, index: &Index, tracks: &[MuxTrack]) {
    assert_eq!(index.tracks.len(), tracks.len());
    for ((track, muxed), rows) in index.tracks.iter().zip(tracks).zip(&muxed.expected) {
        assert_eq!(rows.len(), muxed.rows.len(), "the muxer lost samples");
        let found: Vec<Sample> = track.samples.range(0..track.samples.len()).collect();
        assert_eq!(&found, rows);
        assert_eq!(track.samples, one_by_one(rows, !muxed.video));
        assert_eq!((track.id, track.timescale), (muxed.id, muxed.timescale));
        assert_eq!(track.codec.video().is_some(), muxed.video);
        assert_eq!(track.origin, muxed.base as i64);
        assert_eq!((&*track.language, &track.name), ("eng", &None));
    }
}

/// The tables as the plainest way builds them.
fn one_by_one(rows: &[Sample], all_sync: bool) -> Samples {
    let mut builder = SamplesBuilder::default();
    rows.iter().for_each(|row| builder.push(*row));
    if all_sync {
        builder.set_all_sync();
    }
    builder.finish()
}

proptest! {
    #[test]
    fn progressive_files_give_back_their_tables(
        tracks in film(), layout in layout(), seed in any::<u64>()
    ) {
        let muxed = progressive(&tracks, &layout);
        let index = index_pieces(&muxed, seed).unwrap();
        check(&muxed, &index, &tracks);
        prop_assert_eq!(index.fingerprint, index_bytes(&muxed.file()).unwrap().fingerprint);
    }

    #[test]
    fn fragmented_files_give_back_their_tables(
        mut tracks in film(), fragments in fragments(), base in 0u64..1 << 40, seed in any::<u64>()
    ) {
        let fragments = with_rest(fragments);
        if fragments[0].tfdt && fragments[0].trafs.len() == 3 {
            tracks[0].base = base * u64::from(fragments[0].trafs[0].0 == 0);
        }
        let muxed = fragmented(&tracks, 0, &fragments);
        check(&muxed, &index_pieces(&muxed, seed).unwrap(), &tracks);
    }

    #[test]
    fn samples_in_the_moov_come_before_those_in_fragments(
        tracks in film(), fragments in fragments(), in_moov in 1u32..30, seed in any::<u64>()
    ) {
        let muxed = fragmented(&tracks, in_moov, &with_rest(fragments));
        check(&muxed, &index_pieces(&muxed, seed).unwrap(), &tracks);
    }
}

/// The ranges that are read of a file.
fn reads(muxed: &Muxed) -> Vec<std::ops::Range<u64>> {
    let mut indexer = Indexer::new(muxed.len());
    let mut reads = Vec::new();
    while let Some(range) = indexer.need() {
        reads.push(range.clone());
        indexer.feed(&muxed.read(range)).unwrap();
    }
    indexer.finish().unwrap();
    reads
}

#[test]
fn a_moov_costs_a_read_or_two_and_the_media_none() {
    let film = |samples: u32, moov_first| {
        let rows = (0..samples).map(|n| row(512, 0, 5000 + n % 9, n % 48 == 0));
        let layout = Layout {
            moov_first,
            wide: true,
            ..Layout::default()
        };
        progressive(&[MuxTrack::video(1, rows.collect())], &layout)
    };
    let once = reads(&film(2000, true));
    assert_eq!((once.len(), &once[0]), (1, &(0..65_536)));
    let small = film(2000, false);
    let moov = small.before.len() as u64 + small.media;
    assert_eq!(reads(&small), [0..65_536, moov..small.len()]);
    let large = film(100_000, true);
    let moov = large.before.len() as u64 - 16;
    assert_eq!(reads(&large), [0..65_536, 65_536..moov]);
}

#[test]
fn a_fragment_costs_one_read_and_small_ones_less() {
    let film = |size| {
        let rows = (0..2000).map(|n| row(512, 0, size + n as u32 % 9, n % 50 == 0));
        let one = Fragment {
            base: Base::Moof,
            explicit: true,
            tfdt: true,
            stray: 1 | 2 | 4,
            trafs: vec![(0, vec![50])],
        };
        fragmented(&[MuxTrack::video(1, rows.collect())], 0, &vec![one; 40])
    };
    let large = film(6000);
    let found = reads(&large);
    assert!(found.len() <= 41, "{} reads", found.len());
    let bytes: u64 = found.iter().map(|range| range.end - range.start).sum();
    assert!(bytes < 65_536 + 40 * 4200, "{bytes} bytes");
    let small = film(600);
    assert!(reads(&small).len() <= 4, "{:?}", reads(&small));
}
