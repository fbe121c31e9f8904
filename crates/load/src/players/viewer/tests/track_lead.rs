//! Tests how far audio is requested ahead of video.

use super::*;

/// Plays one minute of media. The bandwidth is half the bitrate of the video, but a multiple of the
/// bitrate of the audio. At any time, the lead of audio is the number of requested audio segments
/// minus the number of requested video segments. Returns the largest lead.
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
    // Without synchronization, the lead of audio is limited only by the buffer of 30 s, which
    // contains 15 segments. The test requires about half of this lead.
    assert!(audio_lead(TrackSync::Independent) >= 8);
    for track_sync in [TrackSync::HlsJs, TrackSync::DashJs, TrackSync::Shaka] {
        assert!(audio_lead(track_sync) <= 1, "{track_sync:?}");
    }
}
