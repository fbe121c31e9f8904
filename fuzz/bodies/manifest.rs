//! No manifest can make its reader panic; what it lists has times in order and URLs that are
//! `http` or refused.

use media::manifest::read::hls::Playlist;
use media::manifest::read::{Piece, SEGMENTS_MAX, Segments, Url, hls, mpd};

/// `data` is an HLS playlist.
pub fn run_hls(data: &[u8]) {
    let url = Url::parse("http://o.test/film/a.m3u8?x=1").expect("a URL");
    match hls::read(&url, data) {
        Ok(Playlist::Media(media)) => check(&media.segments),
        Ok(Playlist::Multivariant(title)) => assert!(!title.renditions.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// `data` is an MPD; what follows its first `<!--` serves as a `sidx`, too.
pub fn run_mpd(data: &[u8]) {
    let url = Url::parse("http://o.test/film/a.mpd").expect("a URL");
    match mpd::read(&url, data) {
        Ok(title) => {
            assert!(!title.renditions.is_empty());
            let pieces = title
                .renditions
                .iter()
                .flat_map(|rendition| &rendition.pieces);
            pieces.for_each(|piece| check_piece(piece, data));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_piece(piece: &Piece, data: &[u8]) {
    match piece {
        Piece::Segments(segments) => check(segments),
        Piece::Index(index) => {
            let at = data
                .windows(4)
                .position(|window| window == b"<!--")
                .unwrap_or(0);
            if let Ok(segments) = index.read(data.get(at + 4..).unwrap_or_default()) {
                check(&segments);
            }
        }
        Piece::Playlist(_) => panic!("an MPD names no playlist"),
    }
}

/// What holds for all segments; the first hundred are looked at.
fn check(segments: &Segments) {
    assert!(segments.len() <= SEGMENTS_MAX);
    for n in 0..segments.len().min(100) {
        if let Ok(part) = segments.part(n) {
            let part = part.expect("a segment that is listed");
            assert!(matches!(part.url.scheme(), "http" | "https"));
            assert!(part.range.is_none_or(|range| range.start <= range.end));
        }
        let _ = (segments.start(n), segments.duration(n), segments.is_gap(n));
        if let Some(init) = segments.init(n) {
            assert!(
                segments.init_part(init).is_err() || segments.init_part(init).unwrap().is_some()
            );
        }
    }
    assert!(segments.at(segments.end()) < segments.len().max(1));
}
