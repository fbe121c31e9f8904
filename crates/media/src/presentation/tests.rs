//! Whole presentations, on tracks made by hand.

use super::*;
use crate::fixtures::{self, index};

const RULES: Rules = Rules { segment_ms: 6000 };

fn presentation(files: Vec<Arc<Index>>) -> Presentation {
    Presentation::new(files, &RULES).expect("a legal title")
}

#[test]
fn a_film_with_sound_is_cut_near_six_seconds() {
    let film = index(vec![
        fixtures::video(60, 50, 10_000),
        fixtures::audio(60, 300),
    ]);
    let title = presentation(vec![film]);
    let [video, audio] = &title.renditions[..] else {
        panic!("two renditions")
    };
    assert_eq!(video.name, "video=2281000");
    assert_eq!(audio.name, "audio=113000");
    assert_eq!((video.segments(), audio.segments()), (10, 10));
    // The video begins at the film's zero, the audio's priming 1024 ticks before: 69/3200 s is
    // the least that both timescales can say.
    assert_eq!(title.zero, Time::new(69, 3200));
    assert_eq!((video.start, audio.start), (276, 1035 - 1024));
    assert_eq!(title.segment_start(video, 3), 276 + 18 * 12_800);
    assert_eq!(title.segment_at(video, 276 + 18 * 12_800), Some(3));
    assert_eq!(title.segment_at(video, 277 + 18 * 12_800), None);
    assert_eq!(title.target_duration, 6);
}
