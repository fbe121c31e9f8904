//! Whole manifests, of tracks made by hand, read back by parsers that are not ours.

mod dash;
mod hls;
mod read;

use crate::fixtures::{self, index};
use crate::index::Track;
use crate::presentation::{Presentation, Rules};

fn title(files: Vec<Vec<Track>>) -> Presentation {
    let files = files.into_iter().map(index).collect();
    Presentation::new(files, &Rules { segment_ms: 6000 }).expect("a legal title")
}

fn audio(language: &str, size: u32) -> Track {
    Track {
        language: language.into(),
        ..fixtures::audio(20, size)
    }
}

fn video(size: u32) -> Track {
    fixtures::video(20, 50, size)
}

/// Three renditions, English in each file, French in the first.
fn film() -> Presentation {
    title(vec![
        vec![video(3_000), audio("eng", 300), audio("fra", 200)],
        vec![video(9_000), audio("eng", 300)],
        vec![video(30_000), audio("eng", 300)],
    ])
}
