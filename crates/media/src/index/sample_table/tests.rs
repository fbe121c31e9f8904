//! Packed samples are read back unchanged, whichever sample is read first.

use super::super::SampleTableBuilder;
use super::*;
use proptest::prelude::*;

prop_compose! {
    /// Builds a valid track with arbitrary durations, sizes, gaps between chunks and sync flags.
    fn any_samples()(
        rows in proptest::collection::vec(
            (prop_oneof![Just(512u32), 0u32..4000], -2000i32..2000, 0u32..90_000, any::<bool>(),
             prop_oneof![3 => Just(0u64), 1 => 1u64..9_000_000_000]),
            0..400)
    ) -> Vec<Sample> {
        let (mut dts, mut offset) = (0, 48);
        rows.into_iter().map(|(duration, composition_offset, size, sync, gap)| {
            offset += gap;
            let sample = Sample { dts, duration, composition_offset, size, is_sync: sync, offset };
            dts += u64::from(duration);
            offset += u64::from(size);
            sample
        }).collect()
    }
}

fn pack_samples(samples: &[Sample]) -> SampleTable {
    let mut builder = SampleTableBuilder::default();
    samples.iter().for_each(|sample| builder.push(*sample));
    builder.finish()
}

proptest! {
    #[test]
    fn every_sample_is_returned_from_any_start(rows in any_samples(), from in 0u32..400) {
        let packed = pack_samples(&rows);
        prop_assert_eq!(packed.len() as usize, rows.len());
        let from = from.min(packed.len());
        let back: Vec<Sample> = packed.iter_range(from..packed.len()).collect();
        prop_assert_eq!(&back[..], &rows[from as usize..]);
        for (n, row) in rows.iter().enumerate() {
            prop_assert_eq!(packed.get(n as u32), *row);
            prop_assert_eq!(packed.dts(n as u32), row.dts);
            let at = packed.sample_at_dts(row.dts) as usize;
            prop_assert!(at >= n && rows[at].dts == row.dts);
        }
    }

    #[test]
    fn shared_values_of_a_range_are_found(rows in any_samples(), from in 0u32..400, len in 0u32..20) {
        let packed = pack_samples(&rows);
        let range = from..from + len;
        let slice = rows.iter().skip(from as usize).take(len as usize);
        let shared = |field: fn(&Sample) -> i64| {
            let mut values = slice.clone().map(field);
            let first = values.next()?;
            values.all(|value| value == first).then_some(first)
        };
        prop_assert_eq!(packed.byte_count(range.clone()), slice.clone().map(|s| u64::from(s.size)).sum::<u64>());
        let (syncs, first_is) = packed.count_sync_samples(range.clone());
        prop_assert_eq!(syncs as usize, slice.clone().filter(|s| s.is_sync).count());
        prop_assert_eq!(first_is, slice.clone().next().is_some_and(|s| s.is_sync));
        prop_assert_eq!(packed.shared_size(range.clone()).map(i64::from), shared(|s| s.size.into()));
        prop_assert_eq!(packed.shared_composition_offset(range.clone()).map(i64::from), shared(|s| s.composition_offset.into()));
        let duration = packed.shared_duration(range).map(i64::from);
        // A table of runs only checks whether the first and the last sample are in the same run.
        // This is sufficient, because adjacent runs have different durations.
        prop_assert_eq!(duration, shared(|s| s.duration.into()));
    }

    #[test]
    fn sync_samples_are_found_on_both_sides(rows in any_samples(), n in 0u32..400) {
        let packed = pack_samples(&rows);
        let n = n.min(packed.len());
        let sync = |n: &u32| rows.get(*n as usize).is_some_and(|row| row.is_sync);
        prop_assert_eq!(packed.first_sync_from(n), (n..packed.len()).find(sync));
        prop_assert_eq!(packed.last_sync_until(n), (0..=n).rev().find(sync));
    }
}

#[test]
fn a_film_takes_about_eight_bytes_per_sample() {
    let mut builder = SampleTableBuilder::default();
    for n in 0..100_000u64 {
        let size = 4000 + (n * 7919 % 90_000) as u32;
        let composition_offset = [2, 5, 2, 0, 1][n as usize % 5] * 512;
        let offset = n * 100_000;
        builder.push(Sample {
            dts: 0,
            duration: 512,
            composition_offset,
            size,
            is_sync: n % 48 == 0,
            offset,
        });
    }
    let bytes = builder.finish().heap_bytes();
    assert!(
        bytes <= 850_000,
        "{bytes} bytes for 100,000 samples, each a chunk of its own"
    );
}
