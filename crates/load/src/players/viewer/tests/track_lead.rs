//! Tests of the limit on audio that is requested ahead of video.

use super::*;

/// Plays a minute of media. Video arrives at half of its bitrate, audio arrives fast. Returns the
/// largest lead of audio: the number of requested audio segments minus that of video segments.
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
    // Only the buffer limit of 30 seconds bounds the lead of audio, and some of these seconds were
    // played.
    assert!(audio_lead(TrackSync::Independent) >= 8);
    for track_sync in [TrackSync::HlsJs, TrackSync::DashJs, TrackSync::Shaka] {
        assert!(audio_lead(track_sync) <= 1, "{track_sync:?}");
    }
}
