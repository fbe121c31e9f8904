//! Purposes of tracks, such as commentary or audio description.

use crate::bmff::Mp4Box;
use crate::bmff::kind_box::KindBox;
use crate::bytes::{write_box, write_full_box};

/// The scheme of DASH roles (ISO/IEC 23009-1, 5.8.5.5).
pub const DASH_ROLE_SCHEME: &str = "urn:mpeg:dash:role:2011";
/// The scheme of audio purposes in TV-Anytime (ETSI TS 102 822-3-1, `AudioPurposeCS`).
pub const AUDIO_PURPOSE_SCHEME: &str = "urn:tva:metadata:cs:AudioPurposeCS:2007";
/// The scheme of HTML track kinds, which some packagers write.
const HTML_KIND_SCHEME: &str = "about:html-kind";

/// Purpose of a track, as declared by the author of the track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackRole {
    /// The main programme.
    Main,
    /// An alternative to the main programme.
    Alternate,
    /// Additional content.
    Supplementary,
    /// Commentary, such as the director's commentary.
    Commentary,
    /// A translation.
    Dub,
    /// Audio that describes the pictures to viewers who cannot see them.
    AudioDescription,
    /// Audio whose speech is easier to understand.
    EnhancedSpeech,
    /// Text of the dialogue.
    Subtitle,
    /// Text of the dialogue and of all relevant sounds.
    Caption,
    /// Forced subtitles, which are shown even to viewers who understand the spoken language.
    ForcedSubtitle,
    /// Text that is easier to read.
    EasyReader,
}

/// Each role with its value in the DASH scheme.
const DASH_ROLES: [(TrackRole, &str); 11] = [
    (TrackRole::Main, "main"),
    (TrackRole::Alternate, "alternate"),
    (TrackRole::Supplementary, "supplementary"),
    (TrackRole::Commentary, "commentary"),
    (TrackRole::Dub, "dub"),
    (TrackRole::AudioDescription, "description"),
    (TrackRole::EnhancedSpeech, "enhanced-audio-intelligibility"),
    (TrackRole::Subtitle, "subtitle"),
    (TrackRole::Caption, "caption"),
    (TrackRole::ForcedSubtitle, "forced-subtitle"),
    (TrackRole::EasyReader, "easyreader"),
];

impl TrackRole {
    /// Returns the value in the scheme of DASH roles.
    pub fn as_dash(self) -> &'static str {
        let same = DASH_ROLES.iter().find(|(role, _)| *role == self);
        same.map_or("alternate", |(_, value)| value)
    }

    fn from_kind(kind: &KindBox) -> Option<TrackRole> {
        match (kind.scheme.as_str(), kind.value.as_str()) {
            (DASH_ROLE_SCHEME, value) => {
                let same = DASH_ROLES.iter().find(|(_, known)| *known == value);
                // An earlier edition of the standard writes this value with an underscore.
                let forced = (value == "forced_subtitle").then_some(TrackRole::ForcedSubtitle);
                same.map(|(role, _)| *role).or(forced)
            }
            (AUDIO_PURPOSE_SCHEME, "1") => Some(TrackRole::AudioDescription),
            (AUDIO_PURPOSE_SCHEME, "2") => Some(TrackRole::EnhancedSpeech),
            (AUDIO_PURPOSE_SCHEME, "3" | "4") => Some(TrackRole::Commentary),
            (AUDIO_PURPOSE_SCHEME, "6") => Some(TrackRole::Main),
            (HTML_KIND_SCHEME, "main") => Some(TrackRole::Main),
            (HTML_KIND_SCHEME, "alternative") => Some(TrackRole::Alternate),
            (HTML_KIND_SCHEME, "commentary") => Some(TrackRole::Commentary),
            (HTML_KIND_SCHEME, "translation") => Some(TrackRole::Dub),
            (HTML_KIND_SCHEME, "descriptions" | "main-desc") => Some(TrackRole::AudioDescription),
            (HTML_KIND_SCHEME, "subtitles") => Some(TrackRole::Subtitle),
            (HTML_KIND_SCHEME, "captions") => Some(TrackRole::Caption),
            _ => None,
        }
    }

    /// Converts a media characteristic in a `tagc` box (QuickTime File Format, "Media
    /// characteristics").
    fn from_tagc(tag: &[u8]) -> Option<TrackRole> {
        let tag = tag.trim_ascii_end();
        // Some writers end the tag with NUL, before or after spaces.
        match tag.strip_suffix(b"\0").unwrap_or(tag).trim_ascii_end() {
            b"public.main-program-content" => Some(TrackRole::Main),
            b"public.auxiliary-content" => Some(TrackRole::Supplementary),
            b"public.dubbed-translation" | b"public.voice-over-translation" => Some(TrackRole::Dub),
            b"public.accessibility.describes-video" => Some(TrackRole::AudioDescription),
            b"public.accessibility.enhances-speech-intelligibility" => {
                Some(TrackRole::EnhancedSpeech)
            }
            b"public.accessibility.transcribes-spoken-dialog"
            | b"public.accessibility.describes-music-and-sound" => Some(TrackRole::Caption),
            b"public.subtitles.forced-only" => Some(TrackRole::ForcedSubtitle),
            b"public.easy-to-read" => Some(TrackRole::EasyReader),
            _ => None,
        }
    }
}

/// Reads the roles from a track's user data, without duplicates. Ignores boxes that cannot be
/// parsed, because user data has no fixed format.
pub(super) fn read_track_roles(udta: &Mp4Box<'_>) -> Vec<TrackRole> {
    let mut roles = Vec::new();
    for child in udta.children().map_while(Result::ok) {
        let role = match &child.name {
            b"kind" => KindBox::parse(child.body)
                .ok()
                .and_then(|kind| TrackRole::from_kind(&kind)),
            b"tagc" => TrackRole::from_tagc(child.body),
            _ => None,
        };
        roles.extend(role.filter(|role| !roles.contains(role)));
    }
    roles
}

/// Writes the roles as `kind` boxes.
pub(crate) fn write_track_roles(out: &mut Vec<u8>, roles: &[TrackRole]) {
    for role in roles {
        write_full_box(out, b"kind", 0, 0, |out| {
            for text in [DASH_ROLE_SCHEME, role.as_dash()] {
                out.extend_from_slice(text.as_bytes());
                out.push(0);
            }
        });
    }
}

/// Writes the user data of a track: its name and its roles.
pub(crate) fn write_track_user_data(out: &mut Vec<u8>, name: Option<&str>, roles: &[TrackRole]) {
    if name.is_none() && roles.is_empty() {
        return;
    }
    write_box(out, b"udta", |out| {
        if let Some(name) = name {
            write_box(out, b"name", |out| out.extend_from_slice(name.as_bytes()));
        }
        write_track_roles(out, roles);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_roles(boxes: &[(&[u8; 4], &[u8])]) -> Vec<TrackRole> {
        let mut bytes = Vec::new();
        write_box(&mut bytes, b"udta", |out| {
            for (name, body) in boxes {
                write_box(out, name, |out| out.extend_from_slice(body));
            }
        });
        read_track_roles(&Mp4Box::parse_first(&bytes, 0).unwrap())
    }

    #[test]
    fn kind_boxes_and_media_characteristics_are_roles() {
        let tva = b"\0\0\0\0urn:tva:metadata:cs:AudioPurposeCS:2007\x001\0";
        let dash = b"\0\0\0\0urn:mpeg:dash:role:2011\0commentary\0";
        let html = b"\0\0\0\0about:html-kind\0main-desc\0";
        for (boxes, roles) in [
            (vec![(b"kind", &tva[..])], vec![TrackRole::AudioDescription]),
            (
                vec![(b"kind", &dash[..]), (b"kind", html)],
                vec![TrackRole::Commentary, TrackRole::AudioDescription],
            ),
            (
                vec![(b"tagc", &b"public.accessibility.describes-video"[..])],
                vec![TrackRole::AudioDescription],
            ),
            (
                vec![(b"tagc", &b"public.auxiliary-content\0"[..])],
                vec![TrackRole::Supplementary],
            ),
            (
                vec![
                    (
                        b"kind",
                        &b"\0\0\0\0urn:mpeg:dash:role:2011\0forced_subtitle\0"[..],
                    ),
                    (b"kind", b"\0\0\0\0urn:mpeg:dash:role:2011\0caption\0"),
                    (b"tagc", b"public.easy-to-read"),
                ],
                vec![
                    TrackRole::ForcedSubtitle,
                    TrackRole::Caption,
                    TrackRole::EasyReader,
                ],
            ),
            // Each role is listed once, and unknown or broken boxes are ignored.
            (
                vec![(b"kind", &b"\0"[..]), (b"kind", tva), (b"kind", html)],
                vec![TrackRole::AudioDescription],
            ),
            (vec![(b"kind", b"\0\0\0\0urn:other\0main\0")], vec![]),
        ] {
            assert_eq!(read_roles(&boxes), roles);
        }
    }

    #[test]
    fn spaces_and_nul_after_a_media_characteristic_are_ignored() {
        for end in ["", " ", "\n", "\0", "\0 ", " \0", " \0\n"] {
            let tag = format!("public.auxiliary-content{end}");
            let roles = read_roles(&[(b"tagc", tag.as_bytes())]);
            assert_eq!(roles, [TrackRole::Supplementary], "{end:?}");
        }
    }

    #[test]
    fn written_roles_are_read_back() {
        let all = DASH_ROLES.map(|(role, _)| role);
        let mut bytes = Vec::new();
        write_track_user_data(&mut bytes, Some("Commentary"), &all);
        let udta = Mp4Box::parse_first(&bytes, 0).unwrap();
        assert_eq!(read_track_roles(&udta), all);
        let mut none = Vec::new();
        write_track_user_data(&mut none, None, &[]);
        assert_eq!(none, b"");
    }
}
