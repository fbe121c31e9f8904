//! Access tokens that operators store in files, such as the token of the admin port.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use http::header::{self, HeaderMap, HeaderName};

/// Smallest accepted length of a token. A shorter token could be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Base64 decoder for `Basic` authentication (RFC 7617 section 2). Padding is optional, because
/// scripts often omit the padding.
const BASIC: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads a token from a file and removes white space around the token.
///
/// # Errors
/// When the file cannot be read or the token is too short. The error contains the file's name.
pub fn read_token_file(path: &Path) -> io::Result<Arc<str>> {
    let named =
        |what: &dyn std::fmt::Display| format!("cannot use token file {}: {what}", path.display());
    let text = std::fs::read_to_string(path);
    let described = |e: io::Error| io::Error::new(e.kind(), named(&crate::describe_io_error(&e)));
    let text = text.map_err(described)?;
    let text = text.trim();
    if text.len() < TOKEN_BYTES_MIN {
        let what = format!(
            "the token is too short; write {TOKEN_BYTES_MIN} characters or more into the file"
        );
        return Err(io::Error::other(named(&what)));
    }
    Ok(text.into())
}

/// Returns whether the Authorization header contains the token. Accepts `Bearer TOKEN`, and for
/// browsers also `Basic` with the token as the password.
pub fn has_valid_token(headers: &HeaderMap, token: &str) -> bool {
    let value = headers.get(header::AUTHORIZATION);
    let Some((scheme, given)) = value
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split_once(' '))
    else {
        return false;
    };
    if scheme.eq_ignore_ascii_case("bearer") {
        return equals_in_constant_time(given.trim().as_bytes(), token.as_bytes());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return false;
    }
    let pair = BASIC.decode(given.trim()).ok();
    let password = pair.as_deref().and_then(|pair| {
        let colon = pair.iter().position(|byte| *byte == b':')?;
        pair.get(colon + 1..)
    });
    password.is_some_and(|password| equals_in_constant_time(password, token.as_bytes()))
}

/// The header in which a client sends the token to request `Server-Timing`. The header is meant for
/// one hop only.
pub const TIMING_TOKEN: HeaderName = HeaderName::from_static("headwater-timing");

/// A request header that must contain a token.
#[derive(Clone)]
pub struct RequiredTokenHeader {
    name: HeaderName,
    token: Arc<str>,
}

impl RequiredTokenHeader {
    pub(crate) fn new(name: HeaderName, token: Arc<str>) -> RequiredTokenHeader {
        RequiredTokenHeader { name, token }
    }

    /// Returns whether the request has this header with the token.
    pub fn has_required_token(&self, request: &HeaderMap) -> bool {
        let given = request.get(&self.name);
        given.is_some_and(|given| equals_in_constant_time(given.as_bytes(), self.token.as_bytes()))
    }
}

impl fmt::Debug for RequiredTokenHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequiredTokenHeader({})", self.name)
    }
}

/// Compares two byte strings in a time that does not depend on their content.
pub(crate) fn equals_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            has_valid_token(&headers, "s3cret")
        };
        assert!(with("Bearer s3cret") && with("bearer  s3cret"));
        assert!(with("Basic YW55Ym9keTpzM2NyZXQ="));
        assert!(with("basic YW55Ym9keTpzM2NyZXQ"));
        assert!(!with("Digest YW55Ym9keTpzM2NyZXQ="));
        for wrong in [
            "Bearer",
            "Bearer s3cre",
            "Bearer s3cret!",
            "Basic s3cret",
            "Basic !",
            "s3cret",
        ] {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!has_valid_token(&HeaderMap::new(), "s3cret"));
    }
}
