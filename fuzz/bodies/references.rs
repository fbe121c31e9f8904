//! Checks that no index MP4 makes its parser panic, or references bytes beyond the end of its
//! media. If a parsed index is written as an index MP4 and parsed again, both indexes must be
//! equal. A progressive MP4 of the index must have the declared length.

use media::Result;
use media::index::{ExternalReferences, Index, Indexer, Sample};
use media::mp4::{self, ProgressiveMp4};
use std::sync::Arc;

/// The last eight bytes of `data`, masked to 24 bits, are the length of the media. The other bytes
/// are the index MP4.
pub fn run(data: &[u8]) {
    let Some((file, len)) = data.split_last_chunk::<8>() else {
        return;
    };
    let len = u64::from_le_bytes(*len) & 0xff_ffff;
    let parts = read_references(file, 1 + len as usize % 97);
    let (mut whole, mut parts) = match (read_references(file, usize::MAX), parts) {
        (Ok(Some(whole)), Ok(Some(parts))) => (whole, parts),
        (Ok(None), Ok(None)) => return,
        (Err(whole), Err(parts)) => return assert_eq!(whole, parts),
        (whole, parts) => panic!("whole: {whole:?}, in parts: {parts:?}"),
    };
    assert_eq!(whole.data_references(), parts.data_references());
    assert_eq!(whole.recorded_media_len(), parts.recorded_media_len());
    for n in 0..whole.data_references().len() {
        let (index, again) = (whole.build_index(n, len), parts.build_index(n, len));
        assert_eq!(format!("{index:?}"), format!("{again:?}"));
        if let Ok(index) = index {
            assert_eq!(index.file_len, len);
            check_index(&index);
        }
    }
}

/// Parses an index MP4 that is fed in pieces of `piece` bytes. Returns `None` for a film that
/// contains its own media.
fn read_references(file: &[u8], piece: usize) -> Result<Option<ExternalReferences>> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.needed_range() {
        let (start, end) = (range.start as usize, range.end as usize);
        let bytes = &file[start..end.min(start.saturating_add(piece))];
        indexer.feed(bytes)?;
    }
    Ok(indexer.take_references())
}

fn collect_samples(track: &media::index::Track) -> Vec<Sample> {
    track.samples.iter_range(0..track.samples.len()).collect()
}

fn check_index(index: &Index) {
    assert!(!index.tracks.is_empty());
    for track in &index.tracks {
        let within = |s: &Sample| s.offset + u64::from(s.size) <= index.file_len;
        assert!(collect_samples(track).iter().all(within));
    }
    if let Ok(written) = mp4::write_index_mp4(index, "film.mp4") {
        let again =
            read_references(&written, usize::MAX).expect("the written index MP4 can be parsed");
        let mut again = again.expect("it references its media");
        let again = again
            .build_index(0, index.file_len)
            .expect("its tables are valid");
        assert_eq!(again.fingerprint, index.fingerprint);
        assert_eq!(again.tracks.len(), index.tracks.len());
        for (a, b) in index.tracks.iter().zip(&again.tracks) {
            assert_eq!(
                (a.id, a.timescale, a.presentation_offset),
                (b.id, b.timescale, b.presentation_offset)
            );
            assert_eq!(
                (a.presentation_end, &a.name, &a.language),
                (b.presentation_end, &b.name, &b.language)
            );
            assert_eq!(a.codec.sample_entry, b.codec.sample_entry);
            assert_eq!(collect_samples(a), collect_samples(b));
        }
    }
    if let Ok(made) = ProgressiveMp4::new(&[Arc::new(index.clone())]) {
        let sizes = made
            .source_ranges
            .iter()
            .map(|(_, range)| range.end - range.start);
        assert_eq!(made.len, made.head.len() as u64 + sizes.sum::<u64>());
        assert!(
            made.source_ranges
                .iter()
                .all(|(_, range)| range.end <= index.file_len)
        );
    }
}
