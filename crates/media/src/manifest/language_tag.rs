//! Converts the language tags of files (ISO 639-2 or BCP 47) to the shortest codes for manifests
//! (RFC 5646, 4.5). Also finds the English names of languages.

use super::language_table::LANGUAGES;

/// Returns the shortest tag of a language. Returns `None` if the language is unspecified or not
/// well-formed.
///
/// `eng` and `en` become `en`, `chi` and `zho` become `zh`, and `yue` and `pt-BR` do not change.
pub(crate) fn shortest_tag(language: &str) -> Option<String> {
    let (primary, rest) = match language.split_once('-') {
        Some((primary, rest)) => (primary, Some(rest)),
        None => (language, None),
    };
    if matches!(primary, "und" | "mis" | "mul" | "zxx" | "")
        || !is_well_formed_language_tag(language)
    {
        return None;
    }
    let primary = find_language_by_code(primary).map_or(primary, |language| language.0);
    Some(match rest {
        Some(rest) => format!("{primary}-{rest}"),
        None => primary.to_owned(),
    })
}

/// Parses a language as people write it in file names: a code, a tag such as `pt-BR`, or an English
/// name. Returns the shortest tag of the language, or `None` if `word` is not a language.
pub fn parse_language(word: &str) -> Option<String> {
    let named = LANGUAGES
        .iter()
        .find(|language| language.3.eq_ignore_ascii_case(word));
    if let Some(language) = named {
        return Some(language.0.to_owned());
    }
    let (primary, rest) = word
        .split_once('-')
        .map_or((word, ""), |(first, rest)| (first, rest));
    let primary = primary.to_ascii_lowercase();
    // A code without an entry in the table, such as `yue`, must have three letters.
    let is_code = primary.len() == 3 || find_language_by_code(&primary).is_some();
    let tag = match rest {
        "" => primary,
        rest => format!("{primary}-{rest}"),
    };
    shortest_tag(&tag).filter(|_| is_code)
}

/// Returns the English name of a language, if the table contains the language.
pub(crate) fn english_name(language: &str) -> Option<&'static str> {
    find_language_by_code(language.split('-').next()?).map(|language| language.3)
}

fn find_language_by_code(
    code: &str,
) -> Option<&'static (&'static str, &'static str, &'static str, &'static str)> {
    LANGUAGES
        .iter()
        .find(|(two, terminology, bibliographic, _)| {
            !code.is_empty() && (code == *two || code == *terminology || code == *bibliographic)
        })
}

/// Returns whether a tag is a valid value of the XML Schema type `language`. This type includes all
/// BCP 47 tags.
fn is_well_formed_language_tag(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let first = parts.next().unwrap_or("");
    let length = |part: &str| (1..=8).contains(&part.len());
    length(first)
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| length(part) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_use_the_shortest_code() {
        for (language, tag_) in [
            ("eng", Some("en")),
            ("en", Some("en")),
            ("ger", Some("de")),
            ("deu", Some("de")),
            ("por-BR", Some("pt-BR")),
            ("zh-Hant-TW", Some("zh-Hant-TW")),
            ("yue", Some("yue")),
            ("und", None),
            ("", None),
            ("e\"n", None),
            ("understood", None),
            ("en-", None),
        ] {
            assert_eq!(shortest_tag(language).as_deref(), tag_, "{language}");
        }
        assert_eq!(english_name("fre"), Some("French"));
        assert_eq!(english_name("tlh"), None);
    }

    #[test]
    fn no_code_means_two_languages() {
        let codes = LANGUAGES
            .iter()
            .flat_map(|l| [l.0, l.1, l.2])
            .filter(|code| !code.is_empty());
        let mut codes: Vec<&str> = codes.collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
