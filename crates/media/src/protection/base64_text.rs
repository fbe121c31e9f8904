//! Base64 (RFC 4648, 4) in XML and JSON.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

/// A decoder that ignores the unused bits of the last digit, because some encoders do not clear
/// these bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Encodes bytes.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes text, which may contain white space. Returns `None` if the text is not padded base64.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let is_digit = |byte: &u8| !byte.is_ascii_whitespace();
    let digits: Vec<u8> = text.bytes().filter(is_digit).collect();
    LENIENT.decode(digits).ok()
}
