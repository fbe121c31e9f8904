//! Settings that determine what manifests declare.

use super::{SettingLayers, UsageError};
use media::presentation::{CmafHlsTextForm, DashTextForm, ManifestOptions};

/// Maximum length of a language tag, in bytes. BCP 47 tags in use are far shorter.
const LANGUAGE_BYTES_MAX: usize = 35;

/// Reads the settings that determine what manifests declare.
///
/// # Errors
/// An error that names the invalid setting and the place where it was set.
pub(super) fn read_manifest_rules(layers: &SettingLayers) -> Result<ManifestOptions, UsageError> {
    Ok(ManifestOptions {
        has_no_captions: layers
            .parse_setting("closed-captions", parse_has_no_captions)?
            .unwrap_or(false),
        default_audio: layers.parse_setting("default-audio", parse_language)?,
        hls_text: layers
            .parse_setting("hls-text", parse_hls_text_format)?
            .unwrap_or_default(),
        dash_text: layers
            .parse_setting("dash-text", parse_dash_text_format)?
            .unwrap_or_default(),
    })
}

fn parse_has_no_captions(text: &str) -> Result<bool, String> {
    match text {
        "none" => Ok(true),
        "unknown" => Ok(false),
        _ => Err("expected unknown or none".to_owned()),
    }
}

fn parse_hls_text_format(text: &str) -> Result<CmafHlsTextForm, String> {
    match text {
        "vtt" => Ok(CmafHlsTextForm::WebVtt),
        "stpp" => Ok(CmafHlsTextForm::Imsc),
        _ => Err("expected vtt or stpp".to_owned()),
    }
}

fn parse_dash_text_format(text: &str) -> Result<DashTextForm, String> {
    match text {
        "wvtt" => Ok(DashTextForm::Wvtt),
        "stpp" => Ok(DashTextForm::Imsc),
        "file" => Ok(DashTextForm::File),
        _ => Err("expected wvtt, stpp or file".to_owned()),
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
    fn forms_of_text_are_validated() {
        assert_eq!(parse_hls_text_format("stpp"), Ok(CmafHlsTextForm::Imsc));
        assert_eq!(parse_dash_text_format("file"), Ok(DashTextForm::File));
        assert!(parse_hls_text_format("wvtt").is_err() && parse_dash_text_format("vtt").is_err());
    }

    #[test]
    fn captions_and_languages_are_validated() {
        assert_eq!(parse_has_no_captions("none"), Ok(true));
        assert_eq!(parse_has_no_captions("unknown"), Ok(false));
        assert!(parse_has_no_captions("NONE").is_err());
        for legal in ["en", "ger", "pt-BR"] {
            assert_eq!(parse_language(legal), Ok(legal.to_owned()));
        }
        for illegal in ["", "-", "en\"", "deutsch, bitte", &"a".repeat(36)] {
            assert!(parse_language(illegal).is_err(), "{illegal}");
        }
    }
}
