//! Whole manifests, of tracks made by hand.

use super::dash::{Template, mpd};
use super::{Format, hls};
use crate::fixtures::{self, index};
use crate::presentation::{Presentation, Rules};

fn film() -> Presentation {
    let mut french = fixtures::audio(20, 200);
    french.language = "fra".into();
    let mut english = fixtures::audio(20, 300);
    english.language = "eng".into();
    let low = index(vec![
        fixtures::video(20, 50, 3_000),
        english.clone(),
        french,
    ]);
    let high = index(vec![fixtures::video(20, 50, 9_000), english]);
    Presentation::new(vec![low, high], &Rules { segment_ms: 6000 }).expect("a legal title")
}

#[test]
fn prints() {
    let film = film();
    println!("{}", hls::multivariant(&film, Format::Cmaf).unwrap());
    println!("{}", hls::multivariant(&film, Format::Ts).unwrap());
    for r in &film.renditions {
        println!("{}", hls::media(&film, r, Format::Cmaf).unwrap());
        println!("{}", hls::media(&film, r, Format::Ts).unwrap_or_default());
        println!("{}", hls::iframes(&film, r).unwrap_or_default());
    }
    println!("{}", mpd(&film, Template::Time));
}
