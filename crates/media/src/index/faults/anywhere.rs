//! Files that are cut, or changed, at any byte.

use super::super::{Index, Sample, index_bytes};
use super::{fragments, plain};
use proptest::prelude::*;

pub(super) fn rows(index: &Index) -> Vec<Vec<Sample>> {
    let tracks = index.tracks.iter();
    tracks
        .map(|track| track.samples.range(0..track.samples.len()).collect())
        .collect()
}

/// Cut anywhere, a file is either refused, or what is left of it is right.
#[test]
fn cut_at_every_byte() {
    for file in [plain(true), plain(false), fragments()] {
        let whole = rows(&index_bytes(&file).unwrap());
        for len in 0..file.len() {
            let Ok(index) = index_bytes(&file[..len]) else {
                continue;
            };
            for (cut, whole) in rows(&index).iter().zip(&whole) {
                assert!(whole.starts_with(cut), "cut at byte {len}");
                let end = cut.iter().map(|row| row.offset + u64::from(row.size)).max();
                assert!(end.unwrap() <= len as u64, "cut at byte {len}");
            }
        }
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(
        moov_first in any::<bool>(), fragmented in any::<bool>(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..12)
    ) {
        let mut file = if fragmented { fragments() } else { plain(moov_first) };
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        if let Ok(index) = index_bytes(&file) {
            for row in rows(&index).iter().flatten() {
                prop_assert!(row.offset + u64::from(row.size) <= file.len() as u64);
            }
        }
    }
}
