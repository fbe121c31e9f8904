//! Parses the values of settings that are choices or URLs.

use net::config::{SettingLayers, UsageError};
use std::fmt::Display;
use url::Url;

/// Parses a setting. Returns `None` if the setting is not set.
///
/// # Errors
/// The value is invalid. The error names the setting, its source (flag, environment variable or
/// file), and the cause.
pub(super) fn parse_setting<T, E: Display>(
    layers: &SettingLayers,
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, UsageError> {
    layers.parse_setting(name, |text| parse(text).map_err(|cause| cause.to_string()))
}

/// A value that is not one of the choices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub(super) struct InvalidChoice(String);

/// Returns the value of the choice with this name.
///
/// # Errors
/// No choice has this name.
pub(super) fn parse_choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, InvalidChoice> {
    let chosen = choices.iter().find(|(name, _)| *name == text);
    chosen.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        InvalidChoice(names.join(" or "))
    })
}

/// Parses `yes` or `no`.
pub(super) fn parse_yes_no(text: &str) -> Result<bool, InvalidChoice> {
    parse_choice(text, &[("yes", true), ("no", false)])
}

/// Text that is not an `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UrlError {
    #[error("invalid URL: {0}; use http://host/path")]
    Syntax(url::ParseError),
    #[error("unsupported scheme {0}; use http or https")]
    Scheme(String),
}

/// Parses an `http` or `https` URL.
pub(super) fn parse_url(text: &str) -> Result<Url, UrlError> {
    let url = Url::parse(text).map_err(UrlError::Syntax)?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(UrlError::Scheme(other.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_list_the_valid_ones() {
        let error = parse_yes_no("maybe").unwrap_err();
        assert_eq!(error.to_string(), "expected yes or no");
        assert_eq!(parse_yes_no("yes"), Ok(true));
        let error = parse_url("ftp://host/").unwrap_err();
        assert_eq!(
            error.to_string(),
            "unsupported scheme ftp; use http or https"
        );
    }
}
