//! No index MP4 can make its reader panic, or promise bytes that its media does not have; and what
//! is read can be written: as an index MP4 that reads back the same, and as a progressive film.

use media::Result;
use media::index::{Index, Indexer, References, Sample};
use media::mp4::{self, Progressive};
use std::sync::Arc;

/// The last eight bytes are the media's length, some bits of it.
pub fn run(data: &[u8]) {
    let Some((file, len)) = data.split_last_chunk::<8>() else {
        return;
    };
    let len = u64::from_le_bytes(*len) & 0xff_ffff;
    let parts = references(file, 1 + len as usize % 97);
    let (mut whole, mut parts) = match (references(file, usize::MAX), parts) {
        (Ok(Some(whole)), Ok(Some(parts))) => (whole, parts),
        (Ok(None), Ok(None)) => return,
        (Err(whole), Err(parts)) => return assert_eq!(whole, parts),
        (whole, parts) => panic!("whole: {whole:?}, in parts: {parts:?}"),
    };
    assert_eq!(whole.places(), parts.places());
    assert_eq!(whole.media_len(), parts.media_len());
    for n in 0..whole.places().len() {
        let (index, again) = (whole.index(n, len), parts.index(n, len));
        assert_eq!(format!("{index:?}"), format!("{again:?}"));
        if let Ok(index) = index {
            assert_eq!(index.file_len, len);
            check(&index);
        }
    }
}

/// What an index MP4 says that is read so many bytes at a time; none in a film of its own.
fn references(file: &[u8], piece: usize) -> Result<Option<References>> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.need() {
        let (start, end) = (range.start as usize, range.end as usize);
        let bytes = &file[start..end.min(start.saturating_add(piece))];
        indexer.feed(bytes)?;
    }
    Ok(indexer.take_references())
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
        let again = references(&written, usize::MAX).expect("it can be read");
        let mut again = again.expect("it names its media");
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
