//! What we write is read back by our own reader as it was meant.

use super::film;
use crate::fixtures::any_title;
use crate::manifest::Format;
use crate::manifest::dash::{Template, mpd};
use crate::manifest::hls::{media, multivariant};
use crate::manifest::read::hls::{Playlist, read as read_hls};
use crate::manifest::read::mpd::read as read_mpd;
use crate::manifest::read::{Kind, Piece, Segments, Url};
use crate::presentation::{Presentation, Rendition, Rules};
use proptest::prelude::*;

fn url() -> Url {
    Url::parse("http://o.test/film/manifest").expect("a URL")
}

fn same_segments(presentation: &Presentation, rendition: &Rendition, found: &Segments) {
    assert_eq!(found.len(), rendition.segments());
    let timescale = presentation.track(rendition).timescale;
    for n in 0..found.len() {
        let ticks = presentation.segment_ticks(rendition, n) as i64;
        assert_eq!(found.duration(n).round_to(timescale), ticks);
    }
}

fn same_mpd(presentation: &Presentation) {
    for template in [Template::Time, Template::Number] {
        let found = read_mpd(&url(), mpd(presentation, template).as_bytes()).expect("our MPD");
        assert_eq!(found.renditions.len(), presentation.renditions.len());
        for rendition in &presentation.renditions {
            let same = found
                .renditions
                .iter()
                .find(|found| found.id == rendition.name);
            let Piece::Segments(segments) = &same.expect("by name").pieces[0] else {
                panic!()
            };
            same_segments(presentation, rendition, segments);
        }
    }
}

#[test]
fn our_own_film() {
    let film = film();
    same_mpd(&film);
    let text = multivariant(&film, Format::Cmaf, false).expect("a film");
    let Playlist::Multivariant(title) = read_hls(&url(), text.as_bytes()).expect("ours") else {
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
        count(Kind::Video) >= 3 && count(Kind::Audio) >= 2,
        "{:?}",
        title.renditions
    );
    let rendition = &film.renditions[0];
    let text = media(&film, rendition, Format::Cmaf, None).expect("a playlist");
    let Playlist::Media(playlist) = read_hls(&url(), text.as_bytes()).expect("ours") else {
        panic!()
    };
    same_segments(&film, rendition, &playlist.segments);
    assert!(!playlist.live);
}

proptest! {
    #[test]
    fn any_title_of_ours(tracks in any_title()) {
        if let Ok(presentation) = Presentation::new(tracks, &Rules { segment_ms: 2000 }) {
            same_mpd(&presentation);
        }
    }
}
