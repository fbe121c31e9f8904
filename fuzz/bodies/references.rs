//! No index MP4 can make its reader panic, or promise bytes that its media does not have; and what
//! is read can be written: as an index MP4 that reads back the same, and as a progressive film.

use media::index::{Index, Indexer, References, Sample};
use media::mp4::{self, Progressive};
use std::sync::Arc;

/// The last eight bytes are the media's length, some bits of it.
pub fn run(data: &[u8]) {
    let Some((file, len)) = data.split_last_chunk::<8>() else {
        return;
    };
    let len = u64::from_le_bytes(*len) & 0xff_ffff;
    let Some(references) = references(file) else {
        return;
    };
    for n in 0..references.places().len() {
        if let Ok(index) = references.index(n, len) {
            assert_eq!(index.file_len, len);
            check(&index);
        }
    }
}

fn references(file: &[u8]) -> Option<References> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.need() {
        indexer
            .feed(&file[range.start as usize..range.end as usize])
            .ok()?;
    }
    indexer.take_references()
}

fn samples(track: &media::index::Track) -> Vec<Sample> {
    track.samples.range(0..track.samples.len()).collect()
}

fn check(index: &Index) {
    assert!(!index.tracks.is_empty());
    for track in &index.tracks {
        let within = |s: &Sample| s.offset + u64::from(s.size) <= index.file_len;
        assert!(samples(track).iter().all(within));
    }
    if let Ok(written) = mp4::index_file(index, "film.mp4") {
        let again = references(&written).expect("it names its media");
        let again = again.index(0, index.file_len).expect("it was read before");
        assert_eq!(again.fingerprint, index.fingerprint);
        assert_eq!(again.tracks.len(), index.tracks.len());
        for (a, b) in index.tracks.iter().zip(&again.tracks) {
            assert_eq!((a.id, a.timescale, a.origin), (b.id, b.timescale, b.origin));
            assert_eq!(
                (a.shown_until, &a.name, &a.language),
                (b.shown_until, &b.name, &b.language)
            );
            assert_eq!(a.codec.sample_entry, b.codec.sample_entry);
            assert_eq!(samples(a), samples(b));
        }
    }
    if let Ok(made) = Progressive::new(&[Arc::new(index.clone())]) {
        let sizes = made.ranges.iter().map(|(_, range)| range.end - range.start);
        assert_eq!(made.len, made.head.len() as u64 + sizes.sum::<u64>());
        assert!(
            made.ranges
                .iter()
                .all(|(_, range)| range.end <= index.file_len)
        );
    }
}
