//! Measures the time in milliseconds to index large generated films, and the memory of each index
//! in bytes per sample.
//!
//! Run this example with `cargo run --release -p media --example index_cost`.

// The test muxer below is included with `#[path]` and refers to `crate::bytes` and `crate::index`.
// The imports of `bytes` and `index` make these two paths valid in this example.
use media::index::{Index, Indexer};
use media::{bytes, index};
use std::time::Instant;
use testing::{
    OffsetBase, ProgressiveLayout, SyntheticFragment, SyntheticMediaFile, SyntheticTrack,
    build_synthetic_progressive, mux_fragmented, unplaced_sample,
};

#[allow(dead_code)]
#[path = "../src/index/testing/mod.rs"]
mod testing;

/// Number of times that each film is indexed. The median time is printed.
const RUNS: usize = 9;

fn main() {
    println!("| film | samples | moov, bytes | ms | index, bytes | bytes a sample |");
    println!("|---|---|---|---|---|---|");
    let hour = 3600;
    print_cost("2 hours, 24 fps and audio", || {
        mux_interleaved(&[video_track(2 * hour * 24, 512), audio_track(337_500)])
    });
    print_cost("2 hours, fragments of 2 s", || {
        mux_fragments(&[video_track(2 * hour * 24, 512), audio_track(337_500)])
    });
    print_cost("2 hours, variable frame rate", || {
        mux_interleaved(&[variable_rate_track(2 * hour * 24), audio_track(337_500)])
    });
    print_cost("2 hours, audio only", || {
        mux_interleaved(&[audio_track(337_500)])
    });
    print_cost("2 hours, one sample per chunk", || {
        mux_scattered(&[video_track(2 * hour * 24, 512), audio_track(337_500)])
    });
    print_cost("10 million samples", || {
        mux_interleaved(&[video_track(10_000_000, 512)])
    });
}

fn print_cost(name: &str, make: impl FnOnce() -> SyntheticMediaFile) {
    let muxed = make();
    let metadata = muxed.bytes_before_media.len() + muxed.bytes_after_media.len();
    let mut times: Vec<f64> = Vec::new();
    let mut bytes = (0, 0);
    for _ in 0..RUNS {
        let started = Instant::now();
        match index_muxed(&muxed) {
            Ok(index) => bytes = heap_bytes_and_samples(&index),
            Err(error) => println!("{name}: {error}"),
        }
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let (heap, samples) = bytes;
    let each = heap as f64 / samples as f64;
    let median = times.get(RUNS / 2).copied().unwrap_or(0.0);
    println!("| {name} | {samples} | {metadata} | {median:.1} | {heap} | {each:.2} |");
}

fn heap_bytes_and_samples(index: &Index) -> (usize, u32) {
    let samples = index.tracks.iter().map(|track| track.samples.len()).sum();
    (index.heap_bytes(), samples)
}

/// Indexes a generated file. Copies each requested range, as a read from the page cache does. The
/// measured time therefore includes the copying.
fn index_muxed(muxed: &SyntheticMediaFile) -> media::Result<Index> {
    let mut indexer = Indexer::new(muxed.len());
    while let Some(range) = indexer.needed_range() {
        indexer.feed(&muxed.read_range(range))?;
    }
    indexer.finish()
}

/// Returns a realistic size for sample `n`, in bytes. The size is the same in every run.
fn film_sample_size(n: u32) -> u32 {
    3000 + n.wrapping_mul(2_654_435_761) % 60_000 + if n.is_multiple_of(48) { 90_000 } else { 0 }
}

fn video_track(frames: u32, ticks: u32) -> SyntheticTrack {
    // Composition offsets for a pattern with three B-frames in every five frames.
    let cts = |n: u32| [2, 5, 2, 0, 1].get(n as usize % 5).copied().unwrap_or(0) * ticks as i32;
    let rows = (0..frames)
        .map(|n| unplaced_sample(ticks, cts(n), film_sample_size(n), n.is_multiple_of(48)));
    SyntheticTrack::video(1, rows.collect())
}

fn variable_rate_track(frames: u32) -> SyntheticTrack {
    let mut track = video_track(frames, 512);
    for (n, row) in track.rows.iter_mut().enumerate() {
        row.duration = 3000 + (n as u32).wrapping_mul(2_246_822_519) % 1500;
    }
    track
}

fn audio_track(frames: u32) -> SyntheticTrack {
    let rows =
        (0..frames).map(|n| unplaced_sample(1024, 0, 300 + n.wrapping_mul(40_503) % 200, true));
    SyntheticTrack::audio(2, rows.collect())
}

/// Writes a file that interleaves the tracks every half second, with the `moov` box at the end.
fn mux_interleaved(tracks: &[SyntheticTrack]) -> SyntheticMediaFile {
    mux_chunked(tracks, &[12, 23])
}

/// Writes a file with one or two samples per chunk, which is the worst case for an index.
fn mux_scattered(tracks: &[SyntheticTrack]) -> SyntheticMediaFile {
    mux_chunked(tracks, &[1, 2])
}

fn mux_chunked(tracks: &[SyntheticTrack], samples: &[u32]) -> SyntheticMediaFile {
    let rounds = tracks.first().map_or(0, |track| track.rows.len()) as u32;
    let round = (0..tracks.len()).zip(samples.iter().copied());
    let chunks = (0..rounds / samples.first().copied().unwrap_or(1)).flat_map(|_| round.clone());
    let layout = ProgressiveLayout {
        is_64_bit: true,
        chunks: chunks.collect(),
        ..ProgressiveLayout::default()
    };
    build_synthetic_progressive(tracks, &layout)
}

fn mux_fragments(tracks: &[SyntheticTrack]) -> SyntheticMediaFile {
    // The test muxer stores the media of fragments in memory. To limit this memory, each sample has
    // about a tenth of its usual size.
    let mut tracks = tracks.to_vec();
    let rows = tracks.iter_mut().flat_map(|track| &mut track.rows);
    rows.for_each(|row| row.size = row.size / 10 + 1);
    let one = SyntheticFragment {
        offset_base: OffsetBase::Moof,
        has_explicit_fields: false,
        has_tfdt: true,
        stray_boxes: 0,
        trafs: vec![(0, vec![48]), (1, vec![94])],
    };
    mux_fragmented(&tracks, 0, &vec![one; 3600])
}
