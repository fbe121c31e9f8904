//! Settings that manifests repeat.

use super::{SettingLayers, UsageError};
use media::presentation::ManifestRules;

/// Maximum length of a language tag, in bytes. BCP 47 tags in use are far shorter.
const LANGUAGE_BYTES_MAX: usize = 35;

/// Reads the declarations for manifests.
///
/// # Errors
/// An error that names the invalid setting and where it was set.
pub(super) fn read_manifest_rules(layers: &SettingLayers) -> Result<ManifestRules, UsageError> {
    Ok(ManifestRules {
        has_no_captions: layers
            .with("closed-captions", parse_captions)?
            .unwrap_or(false),
        default_audio: layers.with("default-audio", parse_language)?,
    })
}

fn parse_captions(text: &str) -> Result<bool, String> {
    match text {
        "none" => Ok(true),
        "unknown" => Ok(false),
        _ => Err("expected unknown or none".to_owned()),
    }
}

fn parse_language(text: &str) -> Result<String, String> {
    let legal = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= LANGUAGE_BYTES_MAX
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match legal {
        true => Ok(text.to_owned()),
        false => Err("expected a language tag such as en or pt-BR".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_and_languages_are_validated() {
        assert_eq!(parse_captions("none"), Ok(true));
        assert_eq!(parse_captions("unknown"), Ok(false));
        assert!(parse_captions("NONE").is_err());
        for legal in ["en", "ger", "pt-BR"] {
            assert_eq!(parse_language(legal), Ok(legal.to_owned()));
        }
        for illegal in ["", "-", "en\"", "deutsch, bitte", &"a".repeat(36)] {
            assert!(parse_language(illegal).is_err(), "{illegal}");
        }
    }
}
