//! Server manifests (`.ism`). They are SMIL documents that list the files of a title. Tools of
//! Unified, Microsoft and FFmpeg write such documents.

mod read;
mod write;

pub use read::{SERVER_MANIFEST_BYTES_MAX, SMIL_TRACKS_MAX, parse_server_manifest};
pub use write::write_server_manifest;

use crate::index::TrackRole;

/// A track in a server manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmilTrack {
    /// The `src` attribute, exactly as written. It names the file by a path relative to the
    /// manifest, or by a URL.
    pub src: String,
    /// Kind of the track, from the name of the element.
    pub kind: SmilTrackKind,
    /// The `systemLanguage` attribute, unless it is empty or `und`.
    pub language: Option<String>,
    /// `trackID` of the track in the file; `None` means all tracks of this kind in the file.
    pub track_id: Option<u32>,
    /// Purpose of a text track, from its `Subtype` ([MS-SSTR], 2.2.2.3).
    pub text_role: Option<TrackRole>,
}

/// Kinds of track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SmilTrackKind {
    /// A video track.
    Video,
    /// An audio track.
    Audio,
    /// Subtitles and other text.
    Text,
}

impl SmilTrackKind {
    /// Returns the name of the SMIL element.
    pub fn element_name(self) -> &'static str {
        match self {
            SmilTrackKind::Video => "video",
            SmilTrackKind::Audio => "audio",
            SmilTrackKind::Text => "textstream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use proptest::prelude::*;

    fn smil_track(
        src: &str,
        kind: SmilTrackKind,
        language: Option<&str>,
        track: Option<u32>,
    ) -> SmilTrack {
        let (src, language) = (src.to_owned(), language.map(str::to_owned));
        SmilTrack {
            src,
            kind,
            language,
            track_id: track,
            text_role: None,
        }
    }

    const UNIFIED: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<!-- Created with Unified Streaming Platform  (version=1.15.5-31515) -->
<smil xmlns="http://www.w3.org/2001/SMIL20/Language">
  <head>
    <meta name="clientManifestRelativePath" content="tears-of-steel.ismc"/>
    <meta name="hls_playout" content="sample_aes"/>
    <paramGroup id="hls"><meta name="key" content=":8275665585FBC4C9"/></paramGroup>
  </head>
  <body>
    <switch>
      <audio src="tos-aac-64k.cmfa" systemBitrate="64008" systemLanguage="eng">
        <param name="trackID" value="1" valuetype="data"/>
        <param name="trackName" value="audio_eng" valuetype="data"/>
      </audio>
      <video src="tos &amp; more.cmfv" systemBitrate="401000" systemLanguage="und">
        <param name="trackID" value="2" valuetype="data"/>
      </video>
      <textstream src="tos-en.cmft" systemBitrate="1000" systemLanguage="eng">
        <param name="FourCC" value="TTML" valuetype="data"/>
      </textstream>
    </switch>
  </body>
</smil>"#;

    #[test]
    fn manifests_of_unified_are_parsed() {
        let expected = [
            smil_track(
                "tos-aac-64k.cmfa",
                SmilTrackKind::Audio,
                Some("eng"),
                Some(1),
            ),
            smil_track("tos & more.cmfv", SmilTrackKind::Video, None, Some(2)),
            smil_track("tos-en.cmft", SmilTrackKind::Text, Some("eng"), None),
        ];
        assert_eq!(parse_server_manifest(UNIFIED.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn the_subtype_of_a_text_stream_is_its_purpose() {
        let stream = |param: &str| {
            format!(
                "<smil><body><switch><textstream src='a.cmft'>{param}</textstream></switch></body></smil>"
            )
        };
        let param = |value: &str| stream(&format!("<param name='Subtype' value='{value}'/>"));
        for (text, role) in [
            (param("CAPT"), Some(TrackRole::Caption)),
            (param("capt"), Some(TrackRole::Caption)),
            (param("SUBT"), Some(TrackRole::Subtitle)),
            (param("DATA"), None),
            (stream(""), None),
        ] {
            let tracks = parse_server_manifest(text.as_bytes()).unwrap();
            assert_eq!(tracks[0].text_role, role, "{text}");
        }
    }

    #[test]
    fn manifests_of_other_tools_are_parsed() {
        // A manifest in the style of Microsoft's tools, in UTF-16 with a byte order mark. The
        // manifest has no namespace, and contains an `img` element, which is not a track.
        let text = r#"<?xml version="1.0" encoding="utf-16"?><smil><head><meta name="formats"
            content="mp4-v3"/></head><body><switch><video src="f_1.mp4" systemBitrate="1"
            systemLanguage="fra"><param name="trackID" value="1"/><param name="role"
            value="alternate"/></video><img src="x.jpg"/></switch></body></smil>"#;
        let expected = [smil_track(
            "f_1.mp4",
            SmilTrackKind::Video,
            Some("fra"),
            Some(1),
        )];
        for big in [false, true] {
            let mark = [0xfeff].into_iter().chain(text.encode_utf16());
            let bytes: Vec<u8> = mark
                .flat_map(|unit| {
                    if big {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect();
            assert_eq!(parse_server_manifest(&bytes).unwrap(), expected);
        }
        // FFmpeg's manifests of live streams name no file, because they describe the stream itself.
        let live = r#"<smil xmlns="http://www.w3.org/2001/SMIL20/Language"><body><switch>
            <video systemBitrate="1"><param name="trackID" value="1"/></video></switch></body></smil>"#;
        assert!(parse_server_manifest(live.as_bytes()).is_err());
    }

    #[test]
    fn invalid_manifests_are_refused_with_a_reason() {
        let clips =
            r#"<smil><body><seq><video src="a.mp4"/><video src="b.mp4"/></seq></body></smil>"#;
        let one = r#"<video src="a.mp4"/>"#;
        let many = format!(
            "<smil><body>{}</body></smil>",
            one.repeat(SMIL_TRACKS_MAX + 1)
        );
        let bomb = "<!DOCTYPE smil [<!ENTITY a 'b'>]><smil><body>&a;</body></smil>";
        for (text, message) in [
            ("", "not XML"),
            ("<html/>", "starts with html"),
            ("<smil><body/></smil>", "names no file"),
            (clips, "one clip after another"),
            (&many, "more than 256"),
            (bomb, "not XML"),
        ] {
            let error = parse_server_manifest(text.as_bytes()).unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
        let long = vec![b' '; SERVER_MANIFEST_BYTES_MAX + 1];
        assert_eq!(
            parse_server_manifest(&long).unwrap_err().kind,
            crate::error::ErrorKind::TooLarge
        );
    }

    proptest! {
        #[test]
        fn written_manifests_are_parsed_back(files in fixtures::arbitrary_title(), name in "[^\0- \u{fffe}\u{ffff}]{1,20}") {
            let names: Vec<String> = (0..files.len()).map(|n| format!("{name}{n}")).collect();
            let both = names.iter().map(String::as_str).zip(files.iter().map(|file| &**file));
            let text = write_server_manifest(both);
            let found = parse_server_manifest(text.as_bytes()).unwrap();
            let tracks = names.iter().zip(&files).flat_map(|(name, file)| {
                file.tracks.iter().map(move |track| (name, track))
            });
            let expected: Vec<SmilTrack> = tracks.map(|(name, track)| {
                let kind = if track.codec.video().is_some() { SmilTrackKind::Video } else { SmilTrackKind::Audio };
                let language = Some(track.language.as_str()).filter(|language| *language != "und");
                smil_track(name, kind, language, Some(track.id))
            }).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
