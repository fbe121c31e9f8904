//! Server manifests (`.ism`): SMIL documents that name the files of a title, as Unified's,
//! Microsoft's and FFmpeg's tools write them.

mod read;
mod write;

pub use read::{SOURCES_MAX, TEXT_BYTES_MAX, read};
pub use write::write;

/// A track that a server manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// `src`: the file it is in, as it is written: relative to the manifest, or a URL.
    pub src: String,
    /// By the name of the element.
    pub kind: Kind,
    /// `systemLanguage`, where it says more than `und`.
    pub language: Option<String>,
    /// `trackID`: which track of the file; `None`: all of this kind.
    pub track: Option<u32>,
}

/// Kinds of track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Subtitles and other text.
    Text,
}

impl Kind {
    /// The name of the element.
    pub fn element(self) -> &'static str {
        match self {
            Kind::Video => "video",
            Kind::Audio => "audio",
            Kind::Text => "textstream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use proptest::prelude::*;

    fn source(src: &str, kind: Kind, language: Option<&str>, track: Option<u32>) -> Source {
        let (src, language) = (src.to_owned(), language.map(str::to_owned));
        Source {
            src,
            kind,
            language,
            track,
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
    fn as_unified_writes_it() {
        let expected = [
            source("tos-aac-64k.cmfa", Kind::Audio, Some("eng"), Some(1)),
            source("tos & more.cmfv", Kind::Video, None, Some(2)),
            source("tos-en.cmft", Kind::Text, Some("eng"), None),
        ];
        assert_eq!(read(UNIFIED.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn as_others_write_it() {
        // Microsoft's: another namespace, attributes in elements, UTF-16 with a byte order mark.
        let text = r#"<?xml version="1.0" encoding="utf-16"?><smil><head><meta name="formats"
            content="mp4-v3"/></head><body><switch><video src="f_1.mp4" systemBitrate="1"
            systemLanguage="fra"><param name="trackID" value="1"/><param name="role"
            value="alternate"/></video><img src="x.jpg"/></switch></body></smil>"#;
        let expected = [source("f_1.mp4", Kind::Video, Some("fra"), Some(1))];
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
            assert_eq!(read(&bytes).unwrap(), expected);
        }
        // FFmpeg's name no file: the live stream itself.
        let live = r#"<smil xmlns="http://www.w3.org/2001/SMIL20/Language"><body><switch>
            <video systemBitrate="1"><param name="trackID" value="1"/></video></switch></body></smil>"#;
        assert!(read(live.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_server_manifest_says_why() {
        let clips =
            r#"<smil><body><seq><video src="a.mp4"/><video src="b.mp4"/></seq></body></smil>"#;
        let one = r#"<video src="a.mp4"/>"#;
        let many = format!("<smil><body>{}</body></smil>", one.repeat(SOURCES_MAX + 1));
        let bomb = "<!DOCTYPE smil [<!ENTITY a 'b'>]><smil><body>&a;</body></smil>";
        for (text, what) in [
            ("", "not XML"),
            ("<html/>", "begins with html"),
            ("<smil><body/></smil>", "names no file"),
            (clips, "one clip after another"),
            (&many, "at most"),
            (bomb, "not XML"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.what.contains(what), "{error}");
        }
        let long = vec![b' '; TEXT_BYTES_MAX + 1];
        assert_eq!(read(&long).unwrap_err().kind, crate::error::Kind::TooLarge);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(files in fixtures::any_title(), name in "[^\0- \u{fffe}\u{ffff}]{1,20}") {
            let names: Vec<String> = (0..files.len()).map(|n| format!("{name}{n}")).collect();
            let both = names.iter().map(String::as_str).zip(files.iter().map(|file| &**file));
            let text = write(both);
            let found = read(text.as_bytes()).unwrap();
            let tracks = names.iter().zip(&files).flat_map(|(name, file)| {
                file.tracks.iter().map(move |track| (name, track))
            });
            let expected: Vec<Source> = tracks.map(|(name, track)| {
                let kind = if track.codec.video().is_some() { Kind::Video } else { Kind::Audio };
                let language = Some(track.language.as_str()).filter(|language| *language != "und");
                source(name, kind, language, Some(track.id))
            }).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
