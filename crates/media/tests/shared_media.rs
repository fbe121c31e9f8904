//! Indexes real files of various encoders, if the files are available.

#![allow(clippy::unwrap_used)]

use media::index::{Index, index_file_in_memory};
use std::path::Path;

/// Indexes a shared file. Prints a message and returns `None` if the file is missing.
fn index_shared_file(name: &str) -> Option<media::Result<Index>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here
        .ancestors()
        .map(|folder| folder.join("shared/media").join(name))
        .find_map(|path| std::fs::read(path).ok());
    if found.is_none() {
        println!("SKIPPED: shared/media/{name} is missing");
    }
    found.map(|bytes| index_file_in_memory(&bytes))
}

/// Codec, language, timescale, presentation offset, sample count, sync sample count, duration in
/// ticks, size of all samples in bytes.
type TrackFacts = (&'static str, &'static str, u32, i64, u32, usize, u64, u64);

#[test]
fn indexed_facts_agree_with_ffprobe() {
    let files: [(&str, &[TrackFacts]); 5] = [
        ("bbb_prog_10s.mp4", BBB_PROG),
        ("prog_8s.mp4", PROG_8S),
        ("bbb5s_aac_sidx.mp4", BBB_AAC),
        ("v300_multiple_segments.mp4", V300),
        ("opus.mp4", OPUS),
    ];
    for (name, facts) in files {
        let Some(index) = index_shared_file(name) else {
            continue;
        };
        let index = index.unwrap();
        assert_eq!(index.notes, [], "{name}");
        let found = index.tracks.iter().map(|track| {
            let samples = &track.samples;
            let (codec, language) = (track.codec.codec_string.as_str(), track.language.as_str());
            (
                codec,
                language,
                track.timescale,
                track.presentation_offset,
                samples.len(),
                samples.sync_samples().count(),
                samples.total_duration(),
                samples.byte_count(0..samples.len()),
            )
        });
        assert_eq!(found.collect::<Vec<_>>(), facts, "{name}");
    }
}

#[test]
fn a_file_of_subtitles_alone_is_indexed_as_text() {
    if let Some(index) = index_shared_file("stpp_prog.mp4") {
        let index = index.unwrap();
        let codecs = index.text_tracks.iter().map(|t| &*t.codec.codec_string);
        assert_eq!(codecs.collect::<Vec<_>>(), ["stpp"]);
        assert!(index.tracks.is_empty());
    }
}

const BBB_PROG: &[TrackFacts] = &[
    ("avc1.64000D", "und", 12288, -1024, 238, 6, 121856, 286706),
    ("mp4a.40.2", "und", 44100, -1024, 428, 428, 437614, 120247),
];
const PROG_8S: &[TrackFacts] = &[
    ("mp4a.40.2", "und", 48000, 0, 375, 375, 384000, 48752),
    ("avc1.64001E", "und", 90000, 0, 240, 8, 720000, 134386),
];
const BBB_AAC: &[TrackFacts] = &[("mp4a.40.2", "eng", 48000, 0, 235, 235, 240640, 79082)];
/// The language code in this file is 0. In QuickTime files, but not in MP4 files, 0 means English.
const V300: &[TrackFacts] = &[("avc1.64001E", "und", 90000, 0, 240, 8, 720000, 134386)];
const OPUS: &[TrackFacts] = &[("opus", "mon", 48000, -312, 50, 50, 48000, 16000)];
