//! Tests that our parsers recover the original title from the written manifests.

use super::build_film;
use crate::fixtures::arbitrary_title;
use crate::manifest::SegmentFormat;
use crate::manifest::dash::{TemplateAddressing, write_mpd};
use crate::manifest::hls::{write_media_playlist, write_multivariant_playlist};
use crate::manifest::read::hls::{ParsedPlaylist, parse_playlist as read_hls};
use crate::manifest::read::mpd::parse_mpd as read_mpd;
use crate::manifest::read::{RenditionKind, SegmentList, SegmentListSource, Url};
use crate::presentation::{PackagingRules, Presentation, Rendition};
use proptest::prelude::*;

fn manifest_url() -> Url {
    Url::parse("http://o.test/film/manifest").expect("a URL")
}

fn assert_same_segments(presentation: &Presentation, rendition: &Rendition, found: &SegmentList) {
    assert_eq!(found.len(), rendition.segment_count());
    let timescale = presentation.track(rendition).timescale;
    for n in 0..found.len() {
        let ticks = presentation.segment_duration_ticks(rendition, n) as i64;
        assert_eq!(found.duration(n).round_to(timescale), ticks);
    }
}

fn assert_mpd_round_trip(presentation: &Presentation) {
    for template in [TemplateAddressing::Time, TemplateAddressing::Number] {
        let found = read_mpd(
            &manifest_url(),
            write_mpd(presentation, template).as_bytes(),
        )
        .expect("our MPD");
        assert_eq!(found.renditions.len(), presentation.renditions.len());
        for rendition in &presentation.renditions {
            let same = found
                .renditions
                .iter()
                .find(|found| found.id == rendition.name);
            let SegmentListSource::Segments(segments) = &same.expect("by name").segment_sources[0]
            else {
                panic!()
            };
            assert_same_segments(presentation, rendition, segments);
        }
    }
}

#[test]
fn a_written_film_is_parsed_back() {
    let film = build_film();
    assert_mpd_round_trip(&film);
    let text = write_multivariant_playlist(&film, SegmentFormat::Cmaf, false).expect("a film");
    let ParsedPlaylist::Multivariant(title) =
        read_hls(&manifest_url(), text.as_bytes()).expect("ours")
    else {
        panic!()
    };
    let count = |kind| {
        title
            .renditions
            .iter()
            .filter(|rendition| rendition.kind == kind)
            .count()
    };
    assert!(
        count(RenditionKind::Video) >= 3 && count(RenditionKind::Audio) >= 2,
        "{:?}",
        title.renditions
    );
    let rendition = &film.renditions[0];
    let text =
        write_media_playlist(&film, rendition, SegmentFormat::Cmaf, None).expect("a playlist");
    let ParsedPlaylist::Media(playlist) = read_hls(&manifest_url(), text.as_bytes()).expect("ours")
    else {
        panic!()
    };
    assert_same_segments(&film, rendition, &playlist.segments);
    assert!(!playlist.is_live);
}

proptest! {
    #[test]
    fn any_written_title_is_parsed_back(tracks in arbitrary_title()) {
        if let Ok(presentation) = Presentation::new(tracks, &PackagingRules { segment_duration_ms: 2000 }) {
            assert_mpd_round_trip(&presentation);
        }
    }
}
