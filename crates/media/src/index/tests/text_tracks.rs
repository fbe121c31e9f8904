//! Text tracks next to video and audio. The text tracks are indexed and stored in index MP4s. An
//! error in a text track is never a reason to refuse the film.

use crate::bytes::write_box;
use crate::codec::TextFormat;
use crate::error::ErrorKind;
use crate::index::testing::{
    ProgressiveLayout, SyntheticTrack, build_synthetic_progressive, unplaced_sample,
};
use crate::index::{Index, Indexer, Track, index_file_in_memory};

/// A `tx3g` sample entry without styles.
fn tx3g_entry() -> Vec<u8> {
    let mut entry = Vec::new();
    write_box(&mut entry, b"tx3g", |out| {
        out.extend([0, 0, 0, 0, 0, 0, 0, 1]);
        out.resize(out.len() + 30, 0);
    });
    entry
}

fn video() -> SyntheticTrack {
    let rows = (0..50).map(|n| unplaced_sample(512, 0, 100, n % 25 == 0));
    SyntheticTrack::video(1, rows.collect())
}

fn text(id: u32) -> SyntheticTrack {
    let rows = (0..4).map(|_| unplaced_sample(500, 0, 20, true)).collect();
    SyntheticTrack {
        timescale: 1000,
        entries: vec![tx3g_entry()],
        handler: *b"sbtl",
        ..SyntheticTrack::audio(id, rows)
    }
}

fn mux(tracks: &[SyntheticTrack]) -> Vec<u8> {
    build_synthetic_progressive(tracks, &ProgressiveLayout::default()).to_bytes()
}

fn text_ids(index: &Index) -> Vec<u32> {
    index.text_tracks.iter().map(|track| track.id).collect()
}

#[test]
fn text_tracks_are_indexed_and_kept_by_index_mp4s() {
    let index = index_file_in_memory(&mux(&[video(), text(2), text(3)])).unwrap();
    assert_eq!((index.tracks.len(), text_ids(&index)), (1, vec![2, 3]));
    assert!(index.notes.is_empty(), "{:?}", index.notes);
    assert_text_is_kept_by_index_mp4(&index);
}

#[test]
fn the_index_mp4_of_a_file_of_text_alone_is_read_back() {
    let index = index_file_in_memory(&mux(&[text(2), text(3)])).unwrap();
    assert_eq!((index.tracks.len(), text_ids(&index)), (0, vec![2, 3]));
    assert_text_is_kept_by_index_mp4(&index);
}

/// Writes an index MP4, reads it back, and compares the text tracks.
fn assert_text_is_kept_by_index_mp4(index: &Index) {
    let written = crate::mp4::write_index_mp4(index, "film.mp4").unwrap();
    let mut indexer = Indexer::new(written.len() as u64);
    while let Some(need) = indexer.needed_range() {
        let range = need.start as usize..need.end as usize;
        indexer.feed(&written[range]).unwrap();
    }
    let mut references = indexer.take_references().expect("an index MP4");
    let back = references.build_index(0, index.file_len).unwrap();
    assert_eq!(back.tracks.len(), index.tracks.len());
    assert_eq!(text_ids(&back), text_ids(index));
    for (a, b) in index.text_tracks.iter().zip(&back.text_tracks) {
        assert_eq!(b.codec.text(), Some(TextFormat::Tx3g));
        assert_eq!(a.codec.sample_entry, b.codec.sample_entry);
        let samples = |track: &Track| track.samples.iter_range(0..9).collect::<Vec<_>>();
        assert_eq!(samples(a), samples(b));
    }
}

#[test]
fn broken_text_does_not_refuse_the_film() {
    let mut several_edits = text(2);
    several_edits.edits = vec![(100, 0), (100, 1500)];
    let mut unknown = text(3);
    unknown.entries = vec![[&[0, 0, 0, 16], &b"mp4s"[..], &[0; 8]].concat()];
    let mut huge = text(4);
    huge.rows[3].duration = u32::MAX;
    let index =
        index_file_in_memory(&mux(&[video(), several_edits, unknown, huge, text(5)])).unwrap();
    assert_eq!((index.tracks.len(), text_ids(&index)), (1, vec![5]));
    for id in [2, 3, 4] {
        let name = format!("track {id}");
        let listed = index
            .left_out
            .iter()
            .any(|part| part.name.starts_with(&name));
        assert!(listed, "{name}: {:?}", index.left_out);
    }
}

#[test]
fn a_file_of_text_alone_is_no_title() {
    let index = index_file_in_memory(&mux(&[text(1)])).unwrap();
    assert!(index.tracks.is_empty());
    let rules = crate::presentation::PackagingRules {
        segment_duration_ms: 6000,
    };
    let files = vec![std::sync::Arc::new(index)];
    let error = crate::presentation::Presentation::new(files, &rules).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
}

#[test]
fn chapters_are_not_subtitles() {
    let file = mux(&[video(), text(2), text(3)]);
    let mut tref = Vec::new();
    write_box(&mut tref, b"tref", |out| {
        write_box(out, b"chap", |out| out.extend(3u32.to_be_bytes()));
    });
    let at = |name: &[u8; 4]| file.windows(4).position(|found| found == name).unwrap() - 4;
    let (moov, trak, tkhd) = (at(b"moov"), at(b"trak"), at(b"tkhd"));
    let mut with_chapters = file.clone();
    for start in [moov, trak] {
        let size = u32::from_be_bytes(file[start..start + 4].try_into().unwrap());
        let size = size + tref.len() as u32;
        with_chapters[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }
    with_chapters.splice(tkhd..tkhd, tref);
    assert_eq!(text_ids(&index_file_in_memory(&file).unwrap()), [2, 3]);
    assert_eq!(
        text_ids(&index_file_in_memory(&with_chapters).unwrap()),
        [2]
    );
}
