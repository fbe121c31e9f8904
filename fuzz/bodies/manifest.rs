//! Checks that no manifest makes its parser panic. The URLs of segments must have the scheme `http`
//! or `https`, or be refused.

use media::manifest::read::hls::ParsedPlaylist;
use media::manifest::read::{SEGMENTS_MAX, SegmentList, SegmentListSource, Url, hls, mpd};

/// `data` is an HLS playlist.
pub fn run_hls(data: &[u8]) {
    let url = Url::parse("http://o.test/film/a.m3u8?x=1").expect("a URL");
    match hls::parse_playlist(&url, data) {
        Ok(ParsedPlaylist::Media(media)) => check_segments(&media.segments),
        Ok(ParsedPlaylist::Multivariant(title)) => assert!(!title.renditions.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// `data` is an MPD. The bytes after the first `<!--` are also parsed as a `sidx` box.
pub fn run_mpd(data: &[u8]) {
    let url = Url::parse("http://o.test/film/a.mpd").expect("a URL");
    match mpd::parse_mpd(&url, data) {
        Ok(title) => {
            assert!(!title.renditions.is_empty());
            let sources = title
                .renditions
                .iter()
                .flat_map(|rendition| &rendition.segment_sources);
            sources.for_each(|source| check_source(source, data));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_source(source: &SegmentListSource, data: &[u8]) {
    match source {
        SegmentListSource::Segments(segments) => check_segments(segments),
        SegmentListSource::Sidx(index) => {
            let at = data
                .windows(4)
                .position(|window| window == b"<!--")
                .unwrap_or(0);
            if let Ok(segments) = index.parse_segments(data.get(at + 4..).unwrap_or_default()) {
                check_segments(&segments);
            }
        }
        SegmentListSource::Playlist(_) => panic!("an MPD references no playlist"),
    }
}

/// Checks the properties of the first hundred segments.
fn check_segments(segments: &SegmentList) {
    assert!(segments.len() <= SEGMENTS_MAX);
    for n in 0..segments.len().min(100) {
        if let Ok(resource) = segments.segment_resource(n) {
            let resource = resource.expect("a listed segment has a resource");
            assert!(matches!(resource.url.scheme(), "http" | "https"));
            assert!(resource.range.is_none_or(|range| range.start <= range.end));
        }
        let _ = (
            segments.start_time(n),
            segments.duration(n),
            segments.is_gap(n),
        );
        if let Some(init) = segments.init_index(n) {
            assert!(
                segments.init_resource(init).is_err()
                    || segments.init_resource(init).unwrap().is_some()
            );
        }
    }
    assert!(segments.segment_at(segments.last_segment_end()) < segments.len().max(1));
}
