//! Sends the user name and the password of a URL as `Authorization` (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use url::Url;

/// Returns the value of `Authorization` for the user name and the password of a URL, or `None` if
/// the URL has neither.
pub(super) fn basic_authorization(url: &Url) -> Option<String> {
    if !has_credentials(url) {
        return None;
    }
    let mut pair = decode_percent(url.username());
    pair.push(b':');
    pair.extend(decode_percent(url.password().unwrap_or_default()));
    Some(format!("Basic {}", STANDARD.encode(pair)))
}

/// Returns the URL without user name and password. `:authority` must not contain them (RFC 9113,
/// 8.3.1).
pub(super) fn without_credentials(url: &Url) -> Cow<'_, Url> {
    let mut url = Cow::Borrowed(url);
    if has_credentials(&url) {
        // These calls fail only for URLs that cannot have credentials.
        let _ = url.to_mut().set_username("");
        let _ = url.to_mut().set_password(None);
    }
    url
}

/// Adds the credentials of `from` to `to`, unless `to` has credentials of its own.
pub(super) fn inherit_credentials(to: &mut Url, from: &Url) {
    if !has_credentials(to) {
        // These calls fail only for URLs that cannot have credentials.
        let _ = to.set_username(from.username());
        let _ = to.set_password(from.password());
    }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn decode_percent(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        // `from_str_radix` would accept a sign.
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_decoded_and_removed_from_the_url() {
        let url = Url::parse("http://me:a%40b%zz%+5@host/path").unwrap();
        let expected = format!("Basic {}", STANDARD.encode("me:a@b%zz%+5"));
        assert_eq!(basic_authorization(&url), Some(expected));
        let plain = without_credentials(&url).into_owned();
        assert_eq!(plain.as_str(), "http://host/path");
        assert_eq!(basic_authorization(&plain), None);
    }
}
