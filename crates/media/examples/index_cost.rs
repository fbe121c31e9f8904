//! What an index costs: milliseconds to build, bytes a sample to keep, for large films made up
//! here. Run it with `cargo run --release -p media --example index_cost`.

// The muxer of the tests, which knows its crate by these names.
use media::index::{Index, Indexer};
use media::{bytes, index};
use std::time::Instant;
use testing::{Base, Fragment, Layout, MuxTrack, Muxed, fragmented, progressive, row};

#[allow(dead_code)]
#[path = "../src/index/testing/mod.rs"]
mod testing;

/// Runs of each film; the median is told.
const RUNS: usize = 9;

fn main() {
    println!("| film | samples | moov, bytes | ms | index, bytes | bytes a sample |");
    println!("|---|---|---|---|---|---|");
    let hour = 3600;
    tell("2 hours, 24 fps and sound", || {
        film(&[video(2 * hour * 24, 512), audio(337_500)])
    });
    tell("2 hours, fragments of 2 s", || {
        fragments(&[video(2 * hour * 24, 512), audio(337_500)])
    });
    tell("2 hours, variable frame rate", || {
        film(&[variable(2 * hour * 24), audio(337_500)])
    });
    tell("2 hours, sound only", || film(&[audio(337_500)]));
    tell("2 hours, every sample its own chunk", || {
        scattered(&[video(2 * hour * 24, 512), audio(337_500)])
    });
    tell("10 million samples", || film(&[video(10_000_000, 512)]));
}

fn tell(name: &str, make: impl FnOnce() -> Muxed) {
    let muxed = make();
    let metadata = muxed.before.len() + muxed.after.len();
    let mut times: Vec<f64> = Vec::new();
    let mut bytes = (0, 0);
    for _ in 0..RUNS {
        let started = Instant::now();
        match build(&muxed) {
            Ok(index) => bytes = size(&index),
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

fn size(index: &Index) -> (usize, u32) {
    let samples = index.tracks.iter().map(|track| track.samples.len()).sum();
    (index.heap_bytes(), samples)
}

/// Reading is part of it: bytes are copied as from a warm file.
fn build(muxed: &Muxed) -> media::Result<Index> {
    let mut indexer = Indexer::new(muxed.len());
    while let Some(range) = indexer.need() {
        indexer.feed(&muxed.read(range))?;
    }
    indexer.finish()
}

/// Sizes that look like a film's, the same in every run.
fn sized(n: u32) -> u32 {
    3000 + n.wrapping_mul(2_654_435_761) % 60_000 + if n.is_multiple_of(48) { 90_000 } else { 0 }
}

fn video(frames: u32, ticks: u32) -> MuxTrack {
    // The pattern of two B-frames between P-frames.
    let cts = |n: u32| [2, 5, 2, 0, 1].get(n as usize % 5).copied().unwrap_or(0) * ticks as i32;
    let rows = (0..frames).map(|n| row(ticks, cts(n), sized(n), n.is_multiple_of(48)));
    MuxTrack::video(1, rows.collect())
}

fn variable(frames: u32) -> MuxTrack {
    let mut track = video(frames, 512);
    for (n, row) in track.rows.iter_mut().enumerate() {
        row.duration = 3000 + (n as u32).wrapping_mul(2_246_822_519) % 1500;
    }
    track
}

fn audio(frames: u32) -> MuxTrack {
    let rows = (0..frames).map(|n| row(1024, 0, 300 + n.wrapping_mul(40_503) % 200, true));
    MuxTrack::audio(2, rows.collect())
}

/// Interleaved by half a second, the moov last.
fn film(tracks: &[MuxTrack]) -> Muxed {
    chunked(tracks, &[12, 23])
}

/// As bad as interleaving gets.
fn scattered(tracks: &[MuxTrack]) -> Muxed {
    chunked(tracks, &[1, 2])
}

fn chunked(tracks: &[MuxTrack], samples: &[u32]) -> Muxed {
    let rounds = tracks.first().map_or(0, |track| track.rows.len()) as u32;
    let round = (0..tracks.len()).zip(samples.iter().copied());
    let chunks = (0..rounds / samples.first().copied().unwrap_or(1)).flat_map(|_| round.clone());
    let layout = Layout {
        wide: true,
        chunks: chunks.collect(),
        ..Layout::default()
    };
    progressive(tracks, &layout)
}

fn fragments(tracks: &[MuxTrack]) -> Muxed {
    // Fragments keep their media, so samples are a tenth as large.
    let mut tracks = tracks.to_vec();
    let rows = tracks.iter_mut().flat_map(|track| &mut track.rows);
    rows.for_each(|row| row.size = row.size / 10 + 1);
    let one = Fragment {
        base: Base::Moof,
        explicit: false,
        tfdt: true,
        stray: 0,
        trafs: vec![(0, vec![48]), (1, vec![94])],
    };
    fragmented(&tracks, 0, &vec![one; 3600])
}
