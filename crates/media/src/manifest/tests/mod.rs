//! Whole manifests of hand-made tracks, parsed by other libraries.

mod dash;
mod hls;
mod read;
mod tracks;

use crate::fixtures::{self, build_index};
use crate::index::Track;
use crate::presentation::{PackagingRules, Presentation};

fn build_title(files: Vec<Vec<Track>>) -> Presentation {
    let files = files.into_iter().map(build_index).collect();
    Presentation::new(
        files,
        &PackagingRules {
            segment_duration_ms: 6000,
        },
    )
    .expect("a legal title")
}

fn audio_track(language: &str, size: u32) -> Track {
    Track {
        language: language.into(),
        ..fixtures::build_audio_track(20, size)
    }
}

fn video_track(size: u32) -> Track {
    fixtures::build_video_track(20, 50, size)
}

/// Builds three renditions with English audio in each file and French in the first.
fn build_film() -> Presentation {
    build_title(vec![
        vec![
            video_track(3_000),
            audio_track("eng", 300),
            audio_track("fra", 200),
        ],
        vec![video_track(9_000), audio_track("eng", 300)],
        vec![video_track(30_000), audio_track("eng", 300)],
    ])
}
