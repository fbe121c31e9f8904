//! Tests of the limit on audio that is requested ahead of video.

use super::*;

/// Plays a minute whose video arrives at half of its bitrate, and whose audio is fast. Returns the
/// largest number of audio segments requested more than video segments.
fn audio_lead(track_sync: TrackSync) -> usize {
    let mut world = SimulatedOrigin::new(test_manifest(60), &constant_rate(2e6));
    world.parallel = true;
    let settings = PlaybackSettings {
        track_sync,
        ..PlaybackSettings::default()
    };
    let rule = Box::new(FixedLevel::Highest);
    let mut viewer = Viewer::new(Arc::new(settings), test_plan(), rule, 0);
    world.play_viewer(&mut viewer);
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    assert_eq!(world.count(FetchPurpose::Audio), 30);
    let (mut audio, mut video, mut lead) = (0_usize, 0, 0);
    for (_, purpose, _) in &world.requests {
        audio += usize::from(*purpose == FetchPurpose::Audio);
        video += usize::from(*purpose == FetchPurpose::Video);
        lead = lead.max(audio.saturating_sub(video));
    }
    lead
}

#[test]
fn audio_waits_for_video_as_in_each_player() {
    // The buffer alone bounds it: 30 seconds, of which some were played.
    assert!(audio_lead(TrackSync::Independent) >= 8);
    for track_sync in [TrackSync::HlsJs, TrackSync::DashJs, TrackSync::Shaka] {
        assert!(audio_lead(track_sync) <= 1, "{track_sync:?}");
    }
}
