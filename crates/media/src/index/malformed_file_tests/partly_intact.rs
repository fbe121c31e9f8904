//! Files in which only one track, or only the end of the file, is damaged. The rest of such a file
//! is served.

use super::*;

/// Renames the `n`-th box called `name` (counted from 0) to `free`, so that the indexer does not
/// find the box.
fn remove_box(file: &mut [u8], name: &[u8; 4], n: usize) {
    let found = file.windows(4).enumerate().filter(|(_, at)| at == name);
    let at = found.map(|(at, _)| at).nth(n).unwrap();
    file[at..at + 4].copy_from_slice(b"free");
}

#[test]
fn a_track_without_stsd_is_left_out() {
    for moov_first in [false, true] {
        let mut file = build_progressive(moov_first);
        remove_box(&mut file, b"stsd", 1);
        let index = index_file_in_memory(&file).unwrap();
        assert_eq!((index.tracks.len(), index.tracks[0].id), (1, 1));
        let left_out = left_out_of(&index);
        assert_eq!(left_out.len(), 1);
        assert!(
            left_out[0].starts_with("track 2 (audio): there is no stsd box"),
            "{left_out:?}"
        );
    }
}

#[test]
fn a_track_whose_stsd_is_cut_short_is_left_out() {
    let mut file = build_progressive(true);
    let second = file
        .windows(4)
        .enumerate()
        .filter(|(_, name)| name == b"stsd");
    let at = second.map(|(at, _)| at).nth(1).unwrap();
    // Shortens `stsd` to its header. A `free` box replaces the content of `stsd`.
    let len = u32::from_be_bytes(file[at - 4..at].try_into().unwrap());
    file[at - 4..at].copy_from_slice(&8u32.to_be_bytes());
    file[at + 4..at + 8].copy_from_slice(&(len - 8).to_be_bytes());
    file[at + 8..at + 12].copy_from_slice(b"free");
    assert_eq!(index_file_in_memory(&file).unwrap().tracks.len(), 1);
}

#[test]
fn a_film_without_its_only_video_is_refused() {
    let mut file = build_progressive(true);
    remove_box(&mut file, b"stsd", 0);
    expect_error(&file, ErrorKind::Malformed, &["no stsd box", "moov/trak"]);
    // If there is a second video track, the film is served without the broken video track.
    let mut film = build_synthetic_tracks();
    film.push(SyntheticTrack {
        id: 3,
        ..film[0].clone()
    });
    let mut file = build_synthetic_progressive(&film, &ProgressiveLayout::default()).to_bytes();
    remove_box(&mut file, b"stsd", 0);
    let index = index_file_in_memory(&file).unwrap();
    let ids: Vec<u32> = index.tracks.iter().map(|track| track.id).collect();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn a_film_whose_every_track_is_broken_is_refused() {
    let mut file = build_progressive(true);
    remove_box(&mut file, b"stsd", 0);
    remove_box(&mut file, b"stsd", 0);
    expect_error(&file, ErrorKind::Malformed, &["no stsd box", "moov/trak"]);
}

#[test]
fn a_fragmented_film_cut_in_its_last_fragment_is_served_up_to_there() {
    let file = build_fragmented();
    let whole = collect_samples(&index_file_in_memory(&file).unwrap());
    let index = index_file_in_memory(&file[..file.len() - 1]).unwrap();
    let cut = collect_samples(&index);
    assert_eq!((cut[0].len(), cut[1].len()), (12, 8));
    assert!(whole[0] == cut[0] && whole[1].starts_with(&cut[1]));
    let end = file.len() - 1;
    assert_eq!(
        left_out_of(&index),
        [format!(
            "the last sample of track 2: the file ends at byte {end}"
        )]
    );
    // In the second fragment, only the first video sample is intact, and all audio samples are
    // missing.
    let mdat = file.windows(4).rposition(|name| name == b"mdat").unwrap();
    let index = index_file_in_memory(&file[..mdat + 4 + 100]).unwrap();
    let counts: Vec<u32> = index.tracks.iter().map(|t| t.samples.len()).collect();
    assert_eq!(counts, [5, 3]);
    assert_eq!(index.left_out.len(), 2);
}

#[test]
fn a_fragmented_film_cut_within_a_moof_is_served_up_to_there() {
    let file = build_fragmented();
    let moof = file.windows(4).rposition(|name| name == b"moof").unwrap() - 4;
    for cut in [moof + 8, moof + 60] {
        let index = index_file_in_memory(&file[..cut]).unwrap();
        let counts: Vec<u32> = index.tracks.iter().map(|t| t.samples.len()).collect();
        assert_eq!(counts, [4, 3]);
        assert_eq!(
            left_out_of(&index),
            [format!(
                "the fragment at byte {moof}: the file ends within its moof box"
            )]
        );
    }
}

#[test]
fn a_fragmented_film_cut_in_its_first_fragment_is_refused() {
    let file = build_fragmented();
    let moof = file.windows(4).position(|name| name == b"moof").unwrap();
    let mdat = file[moof..].windows(4).position(|name| name == b"mdat");
    let mdat = moof + mdat.unwrap();
    let message = &["track 1: sample 0", "ends at byte"];
    expect_error(&file[..mdat + 5], ErrorKind::Truncated, message);
}
