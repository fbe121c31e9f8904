//! Files that are cut or changed at any byte.

use super::super::{Index, Sample, index_file_in_memory};
use super::{build_fragmented, build_progressive};
use proptest::prelude::*;

pub(super) fn collect_samples(index: &Index) -> Vec<Vec<Sample>> {
    let tracks = index.tracks.iter();
    tracks
        .map(|track| track.samples.iter_range(0..track.samples.len()).collect())
        .collect()
}

/// Cuts a file at every byte. The indexer must refuse the cut file or index the remaining samples
/// correctly.
#[test]
fn a_file_cut_anywhere_is_refused_or_indexed_correctly() {
    for file in [
        build_progressive(true),
        build_progressive(false),
        build_fragmented(),
    ] {
        let whole = collect_samples(&index_file_in_memory(&file).unwrap());
        for len in 0..file.len() {
            let Ok(index) = index_file_in_memory(&file[..len]) else {
                continue;
            };
            for (cut, whole) in collect_samples(&index).iter().zip(&whole) {
                assert!(whole.starts_with(cut), "cut at byte {len}");
                let end = cut.iter().map(|row| row.offset + u64::from(row.size)).max();
                assert!(end.unwrap() <= len as u64, "cut at byte {len}");
            }
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_never_cause_a_panic(
        moov_first in any::<bool>(), fragmented in any::<bool>(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..12)
    ) {
        let mut file = if fragmented { build_fragmented() } else { build_progressive(moov_first) };
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        if let Ok(index) = index_file_in_memory(&file) {
            for row in collect_samples(&index).iter().flatten() {
                prop_assert!(row.offset + u64::from(row.size) <= file.len() as u64);
            }
        }
    }
}
