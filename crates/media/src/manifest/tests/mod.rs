//! Tests of whole manifests of hand-made tracks. Most tests parse the manifests with other
//! libraries.

mod dash;
mod hls;
mod read;
mod tracks;

use crate::fixtures::{self, build_index_of_tracks};
use crate::index::Track;
use crate::presentation::{PackagingRules, Presentation};

fn build_title(files: Vec<Vec<Track>>) -> Presentation {
    let files = files.into_iter().map(build_index_of_tracks).collect();
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

/// Builds a film of three files, each with one video rendition and the same English audio. The
/// first file also has French audio.
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
