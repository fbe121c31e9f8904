//! Checks that no file makes the indexer panic, request an empty range, or reference bytes beyond
//! the end of the file. The result must not depend on the sizes of the pieces in which the indexer
//! receives the file.

use media::Result;
use media::index::{Index, Indexer, Sample, index_file_in_memory};

/// All of `data` is the file. The last byte also seeds the piece sizes.
pub fn run(data: &[u8]) {
    let whole = index_file_in_memory(data);
    let pieces = index_in_pieces(data, data.last().copied().unwrap_or(0));
    match (&whole, &pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
            whole.tracks.iter().for_each(check_track);
            assert!(
                whole
                    .tracks
                    .iter()
                    .all(|track| lies_within(track, data.len()))
            );
        }
        (Err(whole), Err(pieces)) => assert_eq!(whole, pieces),
        _ => panic!("whole: {whole:?}, in pieces: {pieces:?}"),
    }
}

fn index_in_pieces(data: &[u8], seed: u8) -> Result<Index> {
    let mut indexer = Indexer::new(data.len() as u64);
    let mut state = u64::from(seed) | 1;
    while let Some(range) = indexer.needed_range() {
        assert!(
            range.start < range.end && range.end <= data.len() as u64,
            "{range:?}"
        );
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let start = range.start as usize;
        // Piece sizes range from one byte to somewhat more than requested.
        let most = 1 + (range.end - range.start) + u64::from(seed);
        let len = 1 + ((state >> 33) % most) as usize;
        indexer.feed(&data[start..data.len().min(start + len)])?;
    }
    indexer.finish()
}

fn lies_within(track: &media::index::Track, len: usize) -> bool {
    let mut samples = track.samples.iter_range(0..track.samples.len());
    samples.all(|sample| sample.offset + u64::from(sample.size) <= len as u64)
}

/// Checks that the tables of a track are consistent.
fn check_track(track: &media::index::Track) {
    let samples = &track.samples;
    assert!(!samples.is_empty() && track.timescale > 0);
    let rows: Vec<Sample> = samples.iter_range(0..samples.len()).collect();
    assert_eq!(rows.len(), samples.len() as usize);
    let mut dts = 0;
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row.dts, dts);
        dts += u64::from(row.duration);
        if n % 17 == 0 {
            assert_eq!(samples.get(n as u32), *row);
            assert_eq!(samples.is_sync(n as u32), row.is_sync);
            let at = samples.sample_at_dts(row.dts) as usize;
            assert!(at >= n && rows[at].dts == row.dts);
        }
    }
    assert_eq!(samples.total_duration(), dts);
}
