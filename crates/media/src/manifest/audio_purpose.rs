//! The purposes of audio, as HLS and DASH express them.

use crate::index::{Track, TrackRole};
use crate::presentation::Presentation;

/// Returns whether audio is for all viewers. Supplementary audio, commentary and accessibility
/// audio are only for some viewers.
pub(super) fn is_for_all_viewers(track: &Track) -> bool {
    !track.roles.iter().any(|role| {
        matches!(
            role,
            TrackRole::Supplementary
                | TrackRole::Commentary
                | TrackRole::AudioDescription
                | TrackRole::EnhancedSpeech
        )
    })
}

/// Returns whether audio may play by default. Audio that is not for all viewers may play by default
/// only if the title has no other audio.
pub(super) fn may_be_default(presentation: &Presentation, track: &Track) -> bool {
    let mut all = presentation.audio_renditions();
    is_for_all_viewers(track) || !all.any(|other| is_for_all_viewers(presentation.track(other)))
}

/// Returns whether the track is accessibility audio. Players select such audio if the viewer's
/// settings request it.
pub(super) fn is_accessibility_audio(track: &Track) -> bool {
    media_characteristics(track).next().is_some()
}

/// Returns the values of the HLS attribute `CHARACTERISTICS` (RFC 8216, 4.3.4.1).
pub(super) fn media_characteristics(track: &Track) -> impl Iterator<Item = &'static str> {
    track.roles.iter().filter_map(|role| match role {
        TrackRole::AudioDescription => Some("public.accessibility.describes-video"),
        TrackRole::EnhancedSpeech => Some("public.accessibility.enhances-speech-intelligibility"),
        _ => None,
    })
}

/// Returns the values of the DASH element `Accessibility` in the scheme of audio purposes.
pub(super) fn accessibility_purposes(track: &Track) -> impl Iterator<Item = &'static str> {
    track.roles.iter().filter_map(|role| match role {
        TrackRole::AudioDescription => Some("1"),
        TrackRole::EnhancedSpeech => Some("2"),
        _ => None,
    })
}

/// Returns the purpose of the audio as text, such as `commentary`. The text is added to the
/// language name.
pub(super) fn purpose_name(track: &Track) -> Option<&'static str> {
    track.roles.iter().find_map(|role| match role {
        TrackRole::Commentary => Some("commentary"),
        TrackRole::AudioDescription => Some("audio description"),
        TrackRole::EnhancedSpeech => Some("clear speech"),
        _ => None,
    })
}
