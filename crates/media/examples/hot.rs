//! One thing that is done with a film of so many hours, so many times: `hot JOB HOURS TIMES` prints
//! nothing, for `bench/callgrind.py` to count; `hot JOB HOURS TIMES ms` prints the median of
//! milliseconds, for `bench/table.py`. Jobs are in `JOBS`.

// The muxer of the tests, which knows its crate by these names.
use media::codec::Codec;
use media::index::{Index, Indexer};
use media::manifest::dash::{self, Template};
use media::manifest::{Format, hls};
use media::plan::AccessUnits;
use media::presentation::{Presentation, Rules};
use media::{bytes, index, ts};
use std::cell::RefCell;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use testing::{Layout, MuxTrack, Muxed, progressive, row};

#[allow(dead_code, unused_imports)]
#[path = "../src/index/testing/mod.rs"]
mod testing;

type Work = Box<dyn Fn()>;
/// Makes the material of a film of so many hours.
type Make = fn(u32) -> media::Result<Work>;

/// What can be done, and with what: the making of the material is counted too, but once.
const JOBS: &[(&str, Make)] = &[
    ("index", index_of),
    ("cut", cut_of),
    ("playlist", |hours| {
        with_ladder(hours, |p| {
            let rendition = p.renditions.first();
            black_box(rendition.and_then(|r| hls::media(p, r, Format::Cmaf, None)));
        })
    }),
    ("multivariant", |hours| {
        with_ladder(hours, |p| {
            drop(black_box(hls::multivariant(p, Format::Cmaf, false)))
        })
    }),
    ("mpd", |hours| {
        with_ladder(hours, |p| drop(black_box(dash::mpd(p, Template::Time))))
    }),
    ("cold-playlist", |hours| {
        cold(hours, |p| {
            let rendition = p.renditions.first();
            black_box(rendition.and_then(|r| hls::media(p, r, Format::Cmaf, None)));
        })
    }),
    ("cold-mpd", |hours| {
        cold(hours, |p| drop(black_box(dash::mpd(p, Template::Time))))
    }),
    ("first-segment", |hours| segment_of(hours, |_| 0)),
    ("last-segment", |hours| {
        segment_of(hours, |segments| segments - 1)
    }),
    ("ts", transport_stream),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
    let (Some(name), Some(hours), Some(times)) = (words.first(), number(1), number(2)) else {
        return told("hot JOB HOURS TIMES [ms]");
    };
    let Some((_, make)) = JOBS.iter().find(|(job, _)| job == name) else {
        return told(&format!("no job is called {name}"));
    };
    let work = match make(hours) {
        Ok(work) => work,
        Err(error) => return told(&format!("{name}: {error}")),
    };
    if words.get(3).is_some_and(|unit| unit == "ms") {
        let mut ms: Vec<f64> = (0..times).map(|_| timed(&work)).collect();
        ms.sort_by(f64::total_cmp);
        println!("{:.4}", ms.get(ms.len() / 2).copied().unwrap_or(0.0));
    } else {
        (0..times).for_each(|_| work());
    }
    ExitCode::SUCCESS
}

fn told(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::FAILURE
}

fn timed(work: &Work) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}

// ── jobs ─────────────────────────────────────────────────────────────────────────────────────

fn index_of(hours: u32) -> media::Result<Work> {
    let muxed = film(hours, 1);
    build(&muxed)?;
    Ok(Box::new(move || drop(black_box(build(&muxed)))))
}

fn cut_of(hours: u32) -> media::Result<Work> {
    cold(hours, |_| ())
}

/// Indexes are in memory; nothing else is.
fn cold(hours: u32, text: impl Fn(&Presentation) + 'static) -> media::Result<Work> {
    let files = ladder(hours)?;
    cut(&files)?;
    Ok(Box::new(move || {
        if let Ok(presentation) = cut(&files) {
            text(black_box(&presentation));
        }
    }))
}

fn with_ladder(hours: u32, work: impl Fn(&Presentation) + 'static) -> media::Result<Work> {
    let presentation = cut(&ladder(hours)?)?;
    Ok(Box::new(move || work(&presentation)))
}

fn segment_of(hours: u32, which: fn(usize) -> usize) -> media::Result<Work> {
    let presentation = cut(&[Arc::new(build(&film(hours, 1))?)])?;
    Ok(Box::new(move || {
        for rendition in &presentation.renditions {
            let n = which(rendition.segments());
            let at = presentation.segment_start(rendition, n);
            let found = presentation.segment_at(rendition, at);
            black_box(found.map(|n| presentation.segment(rendition, n)));
        }
    }))
}

/// The built-in film's pictures, as one segment of a megabyte.
fn transport_stream(_: u32) -> media::Result<Work> {
    let file = include_bytes!("../../../media/demo/video-540p.mp4");
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.need() {
        indexer.feed(&file[range.start as usize..range.end as usize])?;
    }
    let rules = Rules { segment_ms: 60_000 };
    let presentation = Presentation::new(vec![Arc::new(indexer.finish()?)], &rules)?;
    let units = presentation.units(&presentation.renditions[0], 0);
    let codec = presentation
        .track(&presentation.renditions[0])
        .codec
        .clone();
    let len = ts::Batches::new(&codec, &units)?.len_max();
    let out = RefCell::new(vec![0; len]);
    batched(&codec, &units, file, &mut out.borrow_mut())?;
    Ok(Box::new(move || {
        let len = batched(&codec, &units, file, &mut out.borrow_mut());
        drop(black_box(len));
    }))
}

/// As `serve` makes it of a file of its machine.
fn batched(
    codec: &Codec,
    units: &AccessUnits,
    file: &[u8],
    out: &mut [u8],
) -> media::Result<usize> {
    let mut batches = ts::Batches::new(codec, units)?;
    let mut len = 0;
    while let Some(batch) = batches.next(128 << 10) {
        let ranges = batch.ranges.iter();
        let parts: Vec<&[u8]> = ranges
            .map(|range| &file[range.start as usize..range.end as usize])
            .collect();
        len += batches.write(&batch, &parts, &mut out[len..])?;
    }
    Ok(len)
}

// ── material, the same in every run ──────────────────────────────────────────────────────────

fn cut(files: &[Arc<Index>]) -> media::Result<Presentation> {
    Presentation::new(files.to_vec(), &Rules { segment_ms: 6000 })
}

/// A film in eight renditions of pictures, each file with the sound.
fn ladder(hours: u32) -> media::Result<Vec<Arc<Index>>> {
    let files = (1..=8).map(|weight| build(&film(hours, weight)).map(Arc::new));
    files.collect()
}

fn build(muxed: &Muxed) -> media::Result<Index> {
    let mut indexer = Indexer::new(muxed.len());
    while let Some(range) = indexer.need() {
        indexer.feed(&muxed.read(range))?;
    }
    indexer.finish()
}

/// 25 pictures a second with two B-frames between P-frames, a key frame each 2 s, and sound;
/// interleaved by half a second.
fn film(hours: u32, weight: u32) -> Muxed {
    let cts = |n: u32| [2, 5, 2, 0, 1].get(n as usize % 5).copied().unwrap_or(0) * 512;
    let size = |n: u32| weight * (600 + n.wrapping_mul(2_654_435_761) % 9_000);
    let pictures = (0..hours * 90_000).map(|n| row(512, cts(n), size(n), n.is_multiple_of(50)));
    let sound =
        (0..hours * 168_750).map(|n| row(1024, 0, 300 + n.wrapping_mul(40_503) % 200, true));
    let tracks = [
        MuxTrack::video(1, pictures.collect()),
        MuxTrack::audio(2, sound.collect()),
    ];
    let round = [(0, 12), (1, 23)];
    let rounds = (0..hours * 90_000 / 12).flat_map(|_| round);
    let layout = Layout {
        wide: true,
        chunks: rounds.collect(),
        ..Layout::default()
    };
    progressive(&tracks, &layout)
}
