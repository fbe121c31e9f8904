//! Runs one job, to count the instructions or to measure the time of the job.
//!
//! `hot JOB HOURS TIMES` prints nothing; `bench/callgrind.py` counts the instructions of the
//! process. `hot JOB HOURS TIMES ms` prints the median time of a run in milliseconds, for
//! `bench/table.py`. The constant `JOBS` lists the jobs.

// The test muxer below is included with `#[path]` and refers to `crate::bytes` and `crate::index`.
// The imports of `bytes` and `index` make these two paths valid in this example.
use media::codec::Codec;
use media::index::{Index, Indexer};
use media::manifest::dash::{self, TemplateAddressing};
use media::manifest::{HlsTextForm, SegmentFormat, hls};
use media::plan::SegmentAccessUnits;
use media::presentation::{PackagingRules, Presentation};
use media::text::{
    Cue, CueList, TextRendition, TextSet, write_imsc_segment, write_vtt_segment, write_wvtt_segment,
};
use media::{bytes, index, ts};
use std::cell::RefCell;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use testing::{
    ProgressiveLayout, SyntheticMediaFile, SyntheticTrack, build_synthetic_progressive,
    unplaced_sample,
};

#[allow(dead_code, unused_imports)]
#[path = "../src/index/testing/mod.rs"]
mod testing;

type JobRun = Box<dyn Fn()>;
/// Function that prepares a job. The argument is the duration of the film in hours.
type JobSetup = fn(u32) -> media::Result<JobRun>;

/// Name and setup function of each job. The setup function runs once, even if the job runs many
/// times.
const JOBS: &[(&str, JobSetup)] = &[
    ("index", prepare_index),
    ("cut", prepare_cut),
    ("playlist", |hours| {
        prepare_ladder(hours, |p| {
            let rendition = p.renditions.first();
            black_box(
                rendition.and_then(|r| hls::write_media_playlist(p, r, SegmentFormat::Cmaf, None)),
            );
        })
    }),
    ("multivariant", |hours| {
        prepare_ladder(hours, |p| {
            drop(black_box(hls::write_multivariant_playlist(
                p,
                SegmentFormat::Cmaf,
                false,
            )))
        })
    }),
    ("mpd", |hours| {
        prepare_ladder(hours, |p| {
            drop(black_box(dash::write_mpd(p, TemplateAddressing::Time)))
        })
    }),
    ("cold-playlist", |hours| {
        prepare_cold(hours, |p| {
            let rendition = p.renditions.first();
            black_box(
                rendition.and_then(|r| hls::write_media_playlist(p, r, SegmentFormat::Cmaf, None)),
            );
        })
    }),
    ("cold-mpd", |hours| {
        prepare_cold(hours, |p| {
            drop(black_box(dash::write_mpd(p, TemplateAddressing::Time)))
        })
    }),
    ("first-segment", |hours| prepare_segment(hours, |_| 0)),
    ("last-segment", |hours| {
        prepare_segment(hours, |segments| segments - 1)
    }),
    ("ts", prepare_transport_stream),
    ("text-segments", prepare_text_segments),
    ("imsc-segment", prepare_imsc_segment),
    ("text-multivariant", |hours| {
        prepare_text(hours, |p| {
            drop(black_box(hls::write_multivariant_playlist(
                p,
                SegmentFormat::Cmaf,
                false,
            )))
        })
    }),
    ("text-playlist", |hours| {
        prepare_text(hours, |p| {
            drop(black_box(hls::write_text_playlist(
                p,
                HlsTextForm::WebVtt(SegmentFormat::Ts),
            )))
        })
    }),
    ("first-text-mpd", |hours| {
        prepare_text(hours, |p| {
            // `with_text` discards the measured bandwidth of the text, so the MPD writer must
            // measure the bandwidth again.
            let unmeasured = p.clone().with_text(p.text.clone());
            drop(black_box(dash::write_mpd(
                &unmeasured,
                TemplateAddressing::Time,
            )))
        })
    }),
    ("text-mpd", |hours| {
        prepare_text(hours, |p| {
            drop(black_box(dash::write_mpd(p, TemplateAddressing::Time)))
        })
    }),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok());
    let (Some(name), Some(hours), Some(times)) = (words.first(), number(1), number(2)) else {
        return fail_with("hot JOB HOURS TIMES [ms]");
    };
    let Some((_, make)) = JOBS.iter().find(|(job, _)| job == name) else {
        return fail_with(&format!("no job is called {name}"));
    };
    let work = match make(hours) {
        Ok(work) => work,
        Err(error) => return fail_with(&format!("{name}: {error}")),
    };
    if words.get(3).is_some_and(|unit| unit == "ms") {
        let mut ms: Vec<f64> = (0..times).map(|_| time_run_ms(&work)).collect();
        ms.sort_by(f64::total_cmp);
        println!("{:.4}", ms.get(ms.len() / 2).copied().unwrap_or(0.0));
    } else {
        (0..times).for_each(|_| work());
    }
    ExitCode::SUCCESS
}

fn fail_with(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

fn time_run_ms(work: &JobRun) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}

// ── jobs ─────────────────────────────────────────────────────────────────────────────────────

fn prepare_index(hours: u32) -> media::Result<JobRun> {
    let muxed = build_film(hours, 1);
    index_muxed(&muxed)?;
    Ok(Box::new(move || drop(black_box(index_muxed(&muxed)))))
}

fn prepare_cut(hours: u32) -> media::Result<JobRun> {
    prepare_cold(hours, |_| ())
}

/// Prepares a job whose input is the indexes. Each run cuts the segments again, and then calls
/// `text`.
fn prepare_cold(hours: u32, text: impl Fn(&Presentation) + 'static) -> media::Result<JobRun> {
    let files = build_ladder(hours)?;
    cut_ladder(&files)?;
    Ok(Box::new(move || {
        if let Ok(presentation) = cut_ladder(&files) {
            text(black_box(&presentation));
        }
    }))
}

fn prepare_ladder(hours: u32, work: impl Fn(&Presentation) + 'static) -> media::Result<JobRun> {
    let presentation = cut_ladder(&build_ladder(hours)?)?;
    Ok(Box::new(move || work(&presentation)))
}

fn prepare_segment(hours: u32, which: fn(usize) -> usize) -> media::Result<JobRun> {
    let presentation = cut_ladder(&[Arc::new(index_muxed(&build_film(hours, 1))?)])?;
    Ok(Box::new(move || {
        for rendition in &presentation.renditions {
            let n = which(rendition.segment_count());
            let at = presentation.segment_start(rendition, n);
            let found = presentation.find_segment(rendition, at);
            black_box(found.map(|n| presentation.plan_segment(rendition, n)));
        }
    }))
}

/// Builds 5000 cues for a film of this many hours.
fn build_cues(hours: u32) -> CueList {
    let every_ms = i64::from(hours) * 3_600_000 / 5000;
    let cues = (0..5000).map(|n| Cue {
        start_ms: n * every_ms,
        end_ms: n * every_ms + every_ms * 3 / 4,
        payload: "<i>Two lines</i>\nof a cue".to_owned(),
        ..Cue::default()
    });
    CueList::from_cues(String::new(), cues.collect(), &mut Vec::new())
}

/// Prepares a job on a film with 5000 cues.
fn prepare_text(hours: u32, work: impl Fn(&Presentation) + 'static) -> media::Result<JobRun> {
    let text = TextRendition {
        language: "en".to_owned(),
        cues: build_cues(hours),
        ..TextRendition::default()
    };
    let presentation = cut_ladder(&build_ladder(hours)?)?;
    let presentation = presentation.with_text(Arc::new(TextSet::new(vec![text])));
    Ok(Box::new(move || work(&presentation)))
}

/// Prepares a job that writes the same text segment twice: as plain WebVTT, and as WebVTT in CMAF.
fn prepare_text_segments(hours: u32) -> media::Result<JobRun> {
    let cues = build_cues(hours);
    prepare_text(hours, move |presentation| {
        let Some(grid) = black_box(presentation).text_segment_times() else {
            return;
        };
        let n = grid.segment_count() / 2;
        let shown = grid.shown_ms(n);
        black_box(write_vtt_segment(
            &cues,
            shown,
            grid.served_film_start(),
            SegmentFormat::Ts,
        ));
        black_box(write_wvtt_segment(&grid, &cues, n));
    })
}

/// Prepares a job that writes one text segment as IMSC.
fn prepare_imsc_segment(hours: u32) -> media::Result<JobRun> {
    let cues = build_cues(hours);
    prepare_text(hours, move |presentation| {
        if let Some(grid) = black_box(presentation).text_segment_times() {
            let n = grid.segment_count() / 2;
            black_box(write_imsc_segment(&grid, Some("en"), &cues, n));
        }
    })
}

/// Prepares a job that muxes the video of the built-in film as one transport stream segment of
/// about 1 MB.
fn prepare_transport_stream(_: u32) -> media::Result<JobRun> {
    let file = include_bytes!("../../../media/demo/video-540p.mp4");
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.needed_range() {
        indexer.feed(&file[range.start as usize..range.end as usize])?;
    }
    let rules = PackagingRules {
        segment_duration_ms: 60_000,
    };
    let presentation = Presentation::new(vec![Arc::new(indexer.finish()?)], &rules)?;
    let units = presentation.plan_access_units(&presentation.renditions[0], 0);
    let codec = presentation
        .track(&presentation.renditions[0])
        .codec
        .clone();
    let len = ts::BatchedMuxer::new(&codec, &units)?.segment_len_max();
    let out = RefCell::new(vec![0; len]);
    mux_in_batches(&codec, &units, file, &mut out.borrow_mut())?;
    Ok(Box::new(move || {
        let len = mux_in_batches(&codec, &units, file, &mut out.borrow_mut());
        drop(black_box(len));
    }))
}

/// Muxes a transport stream segment in batches, as `serve` does for a local file.
fn mux_in_batches(
    codec: &Codec,
    units: &SegmentAccessUnits,
    file: &[u8],
    out: &mut [u8],
) -> media::Result<usize> {
    let mut batches = ts::BatchedMuxer::new(codec, units)?;
    let mut len = 0;
    while let Some(batch) = batches.plan_next_batch(128 << 10) {
        let ranges = batch.source_ranges.iter();
        let parts: Vec<&[u8]> = ranges
            .map(|range| &file[range.start as usize..range.end as usize])
            .collect();
        len += batches.write_batch(&batch, &parts, &mut out[len..])?;
    }
    Ok(len)
}

// ── input, the same in every run ─────────────────────────────────────────────────────────────

fn cut_ladder(files: &[Arc<Index>]) -> media::Result<Presentation> {
    Presentation::new(
        files.to_vec(),
        &PackagingRules {
            segment_duration_ms: 6000,
        },
    )
}

/// Builds the indexes of eight video renditions. Each rendition is in its own file, which also
/// contains the audio.
fn build_ladder(hours: u32) -> media::Result<Vec<Arc<Index>>> {
    let files = (1..=8).map(|weight| index_muxed(&build_film(hours, weight)).map(Arc::new));
    files.collect()
}

fn index_muxed(muxed: &SyntheticMediaFile) -> media::Result<Index> {
    let mut indexer = Indexer::new(muxed.len());
    while let Some(range) = indexer.needed_range() {
        indexer.feed(&muxed.read_range(range))?;
    }
    indexer.finish()
}

/// Builds a film with 25 frames per second, a key frame every 2 s, and audio. Three of every five
/// frames are B-frames. The file interleaves video and audio about every half second.
fn build_film(hours: u32, weight: u32) -> SyntheticMediaFile {
    let cts = |n: u32| [2, 5, 2, 0, 1].get(n as usize % 5).copied().unwrap_or(0) * 512;
    let size = |n: u32| weight * (600 + n.wrapping_mul(2_654_435_761) % 9_000);
    let pictures =
        (0..hours * 90_000).map(|n| unplaced_sample(512, cts(n), size(n), n.is_multiple_of(50)));
    let sound = (0..hours * 168_750)
        .map(|n| unplaced_sample(1024, 0, 300 + n.wrapping_mul(40_503) % 200, true));
    let tracks = [
        SyntheticTrack::video(1, pictures.collect()),
        SyntheticTrack::audio(2, sound.collect()),
    ];
    let round = [(0, 12), (1, 23)];
    let rounds = (0..hours * 90_000 / 12).flat_map(|_| round);
    let layout = ProgressiveLayout {
        is_64_bit: true,
        chunks: rounds.collect(),
        ..ProgressiveLayout::default()
    };
    build_synthetic_progressive(&tracks, &layout)
}
