//! Chooses the content coding that the client prefers (RFC 9110 sections 8.4 and 12.5.3), and
//! compresses bodies.

use std::io::{self, Write};

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    /// No compression.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// Our order of preference among codings of the same weight. Brotli is first, because it makes the
/// smallest manifests.
const PREFERENCE: [ContentCoding; 4] = [
    ContentCoding::Brotli,
    ContentCoding::Zstd,
    ContentCoding::Gzip,
    ContentCoding::Identity,
];

impl ContentCoding {
    /// Returns the name in Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            ContentCoding::Identity => "identity",
            ContentCoding::Gzip => "gzip",
            ContentCoding::Brotli => "br",
            ContentCoding::Zstd => "zstd",
        }
    }

    /// Returns the value of the Content-Encoding header, or `None` for identity.
    pub fn header_value(self) -> Option<HeaderValue> {
        (self != ContentCoding::Identity).then(|| HeaderValue::from_static(self.name()))
    }

    fn is_named(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(self.name())
            || (self == ContentCoding::Gzip && name.eq_ignore_ascii_case("x-gzip"))
    }
}

/// Returns the coding that a request's Accept-Encoding prefers. A client that refuses all codings,
/// even identity, still gets identity, as RFC 9110 section 12.5.3 allows.
pub fn choose_coding(headers: &HeaderMap) -> ContentCoding {
    let mut weights = [None; PREFERENCE.len()];
    let mut wildcard = None;
    let lines = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    for item in lines.flat_map(|line| line.split(',')) {
        let (name, weight) = parse_weighted(item);
        if name == "*" {
            wildcard = Some(weight);
        }
        for (coding, slot) in PREFERENCE.iter().zip(&mut weights) {
            if coding.is_named(name) {
                *slot = Some(weight);
            }
        }
    }
    best_coding(weights, wildcard)
}

fn best_coding(weights: [Option<u16>; PREFERENCE.len()], wildcard: Option<u16>) -> ContentCoding {
    let mut best = (0, ContentCoding::Identity);
    for (coding, weight) in PREFERENCE.into_iter().zip(weights) {
        // If the header does not name identity, identity has the weight of `*`. If the header does
        // not contain `*` either, identity has the lowest positive weight.
        let unnamed = if coding == ContentCoding::Identity {
            wildcard.or(Some(1))
        } else {
            wildcard
        };
        let weight = weight.or(unnamed).unwrap_or(0);
        if weight > best.0 {
            best = (weight, coding);
        }
    }
    best.1
}

/// Parses `name;q=0.5` into the name and the weight in thousandths. An invalid weight counts as 0.
pub(crate) fn parse_weighted(item: &str) -> (&str, u16) {
    let mut parts = item.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, weight.map_or(1000, parse_thousandths))
}

fn parse_thousandths(text: &str) -> u16 {
    let value = text.parse::<f32>().unwrap_or(0.0);
    // After the clamp, the product is within 0..=1000. The cast turns a NaN into 0.
    (value.clamp(0.0, 1.0) * 1000.0) as u16
}

/// Compresses text. The compression levels favor small output over speed, because the output is
/// cached and sent often.
pub fn compress(coding: ContentCoding, bytes: &[u8]) -> io::Result<Vec<u8>> {
    match coding {
        ContentCoding::Identity => Ok(bytes.to_vec()),
        ContentCoding::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            writer.write_all(bytes)?;
            writer.finish()
        }
        ContentCoding::Brotli => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: 5,
                ..Default::default()
            };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &*bytes, &mut out, &params)?;
            Ok(out)
        }
        ContentCoding::Zstd => zstd::bulk::compress(bytes, 9),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_client_ranks_and_we_break_ties() {
        let cases = [
            (None, ContentCoding::Identity),
            (Some(""), ContentCoding::Identity),
            (Some("gzip"), ContentCoding::Gzip),
            (Some("GZIP"), ContentCoding::Gzip),
            (Some("x-gzip"), ContentCoding::Gzip),
            (Some("gzip, deflate, br, zstd"), ContentCoding::Brotli),
            (Some("gzip, deflate"), ContentCoding::Gzip),
            (Some("zstd, gzip"), ContentCoding::Zstd),
            (Some("br;q=0.5, gzip;q=0.8"), ContentCoding::Gzip),
            (Some("br;q=0, gzip;q=0"), ContentCoding::Identity),
            (Some("*"), ContentCoding::Brotli),
            (Some("*;q=0"), ContentCoding::Identity),
            (Some("br;q=0, *;q=0.1"), ContentCoding::Zstd),
            (Some("identity, gzip;q=0.5"), ContentCoding::Identity),
            (Some("identity;q=0"), ContentCoding::Identity),
            (Some("br;q=NaN, gzip;q=-1"), ContentCoding::Identity),
            (Some("br;q=7"), ContentCoding::Brotli),
            (Some("gzip;q=0.001"), ContentCoding::Gzip),
            (Some("gzip;level=9;q=0.4"), ContentCoding::Gzip),
            (Some(";;,,q=1"), ContentCoding::Identity),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(choose_coding(&headers), expected, "{value:?}");
        }
    }

    #[test]
    fn other_decoders_read_our_compressed_bodies() {
        let text = "#EXTINF:6.000000,\n../seg/1.m4s\n".repeat(200).into_bytes();
        for coding in PREFERENCE {
            let small = compress(coding, &text).unwrap();
            let mut back = Vec::new();
            match coding {
                ContentCoding::Identity => back = small.clone(),
                ContentCoding::Gzip => {
                    flate2::read::GzDecoder::new(&*small)
                        .read_to_end(&mut back)
                        .map(drop)
                        .unwrap();
                }
                ContentCoding::Brotli => brotli::BrotliDecompress(&mut &*small, &mut back).unwrap(),
                ContentCoding::Zstd => back = zstd::bulk::decompress(&small, 1 << 20).unwrap(),
            }
            assert_eq!(back, text, "{}", coding.name());
            assert!(coding == ContentCoding::Identity || small.len() < text.len() / 10);
        }
    }
}
