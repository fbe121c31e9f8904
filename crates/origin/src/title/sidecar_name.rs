//! Parses the names of text files beside a film, such as `film.en.srt` and `film.pt-BR.forced.vtt`.

use media::text::{TextKind, parse_language};

/// Properties that the name of a text file declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SidecarName {
    /// ISO 639 code or BCP 47 tag; `und` if the file name contains no language.
    pub(crate) language: String,
    pub(crate) kind: TextKind,
    pub(crate) label: Option<String>,
    pub(crate) is_default: bool,
}

/// Suffixes of the text files that the server parses.
pub(crate) const TEXT_SUFFIXES: [&str; 5] = ["vtt", "srt", "ttml", "dfxp", "imsc"];

/// Returns the suffix of a text file in lower case; `None` for other files.
pub(crate) fn recognized_text_suffix(name: &str) -> Option<&'static str> {
    let (_, suffix) = name.rsplit_once('.')?;
    TEXT_SUFFIXES
        .into_iter()
        .find(|known| suffix.eq_ignore_ascii_case(known))
}

/// Parses the part of a file name after the film's name. This part consists of words that are
/// separated by dots. The words may include the keywords `forced`, `sdh`, `cc`, `easy-to-read` and
/// `default`. The first word that is not a keyword is the language, if this word names a language.
/// All remaining words form the label.
///
/// `stems` are the possible names of the film. A text file whose name does not start with a stem
/// also belongs to the film, because the text file is in the film's folder. The words before the
/// language are then skipped.
pub(crate) fn parse_sidecar_name(name: &str, stems: &[&str]) -> SidecarName {
    let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
    let matching = stems.iter().filter_map(|stem| {
        let rest = name.strip_prefix(stem)?;
        (rest.is_empty() || rest.starts_with('.')).then_some(rest)
    });
    match matching.min_by_key(|rest| rest.len()) {
        Some(rest) => parse_sidecar_words(rest.split('.').filter(|word| !word.is_empty())),
        None => {
            let mut words = name.split('.').filter(|word| !word.is_empty()).peekable();
            while words
                .next_if(|word| parse_language(word).is_none())
                .is_some()
            {}
            parse_sidecar_words(words)
        }
    }
}

fn parse_sidecar_words<'a>(words: impl Iterator<Item = &'a str>) -> SidecarName {
    let mut parsed = SidecarName {
        language: "und".to_owned(),
        ..SidecarName::default()
    };
    let mut label: Vec<&str> = Vec::new();
    for word in words {
        match word.to_ascii_lowercase().as_str() {
            "forced" => parsed.kind = TextKind::Forced,
            "sdh" | "cc" => parsed.kind = TextKind::Captions,
            "easy-to-read" | "easyreader" => parsed.kind = TextKind::EasyToRead,
            "default" => parsed.is_default = true,
            "commentary" => label.push("Commentary"),
            _ if parsed.language == "und" && label.is_empty() => match parse_language(word) {
                Some(language) => parsed.language = language,
                None => label.push(word),
            },
            _ => label.push(word),
        }
    }
    parsed.label = Some(label.join(" ")).filter(|label| !label.is_empty());
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> (String, TextKind, Option<String>, bool) {
        let parsed = parse_sidecar_name(name, &["film", "film.2012"]);
        (
            parsed.language,
            parsed.kind,
            parsed.label,
            parsed.is_default,
        )
    }

    #[test]
    fn names_declare_language_kind_and_label() {
        let label = |text: &str| Some(text.to_owned());
        for (name, language, kind, named, is_default) in [
            ("film.srt", "und", TextKind::Subtitles, None, false),
            ("film.en.vtt", "en", TextKind::Subtitles, None, false),
            ("film.2012.eng.srt", "en", TextKind::Subtitles, None, false),
            ("film.German.srt", "de", TextKind::Subtitles, None, false),
            (
                "film.pt-BR.forced.srt",
                "pt-BR",
                TextKind::Forced,
                None,
                false,
            ),
            (
                "film.en.sdh.default.VTT",
                "en",
                TextKind::Captions,
                None,
                true,
            ),
            ("film.cc.fr.vtt", "fr", TextKind::Captions, None, false),
            (
                "film.de.easy-to-read.srt",
                "de",
                TextKind::EasyToRead,
                None,
                false,
            ),
            ("film.yue.srt", "yue", TextKind::Subtitles, None, false),
            (
                "film.en.commentary.vtt",
                "en",
                TextKind::Subtitles,
                label("Commentary"),
                false,
            ),
            (
                "film.en.Signs.and.songs.vtt",
                "en",
                TextKind::Subtitles,
                label("Signs and songs"),
                false,
            ),
            ("en.vtt", "en", TextKind::Subtitles, None, false),
            ("Other.Name.en.vtt", "en", TextKind::Subtitles, None, false),
            ("subtitles.vtt", "und", TextKind::Subtitles, None, false),
        ] {
            assert_eq!(
                parse(name),
                (language.to_owned(), kind, named, is_default),
                "{name}"
            );
        }
    }
}
