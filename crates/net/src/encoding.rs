//! Content codings (RFC 9110 sections 8.4 and 12.5.3): which one a client takes best, and making it.

use std::io::{self, Write};

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Not at all.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// Best first, where a client likes several equally: manifests come out smallest by Brotli.
const PREFERENCE: [Coding; 4] = [Coding::Brotli, Coding::Zstd, Coding::Gzip, Coding::Identity];

impl Coding {
    /// The name in Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The Content-Encoding header; none for identity.
    pub fn header(self) -> Option<HeaderValue> {
        (self != Coding::Identity).then(|| HeaderValue::from_static(self.name()))
    }

    fn named(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(self.name())
            || (self == Coding::Gzip && name.eq_ignore_ascii_case("x-gzip"))
    }
}

/// The coding that a request's Accept-Encoding likes best. A client that refuses everything, even
/// identity, gets identity (section 12.5.3 allows it).
pub fn choose(headers: &HeaderMap) -> Coding {
    let mut weights = [None; PREFERENCE.len()];
    let mut others = None;
    let lines = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    for item in lines.flat_map(|line| line.split(',')) {
        let (name, weight) = weighted(item);
        if name == "*" {
            others = Some(weight);
        }
        for (coding, slot) in PREFERENCE.iter().zip(&mut weights) {
            if coding.named(name) {
                *slot = Some(weight);
            }
        }
    }
    best(weights, others)
}

fn best(weights: [Option<u16>; PREFERENCE.len()], others: Option<u16>) -> Coding {
    let mut best = (0, Coding::Identity);
    for (coding, weight) in PREFERENCE.into_iter().zip(weights) {
        // Unnamed, identity is acceptable but liked least.
        let unnamed = if coding == Coding::Identity {
            others.or(Some(1))
        } else {
            others
        };
        let weight = weight.or(unnamed).unwrap_or(0);
        if weight > best.0 {
            best = (weight, coding);
        }
    }
    best.1
}

/// `name;q=0.5` → the name, and the weight in thousandths. A weight that is none counts as 0.
fn weighted(item: &str) -> (&str, u16) {
    let mut parts = item.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, weight.map_or(1000, thousandths))
}

fn thousandths(text: &str) -> u16 {
    let value = text.parse::<f32>().unwrap_or(0.0);
    // Within 0..=1000 after the clamp; a NaN becomes 0.
    (value.clamp(0.0, 1.0) * 1000.0) as u16
}

/// Compresses text that is kept and sent often: thorough, yet some megabytes a second.
pub fn compress(coding: Coding, bytes: &[u8]) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Identity => Ok(bytes.to_vec()),
        Coding::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            writer.write_all(bytes)?;
            writer.finish()
        }
        Coding::Brotli => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: 5,
                ..Default::default()
            };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut &*bytes, &mut out, &params)?;
            Ok(out)
        }
        Coding::Zstd => zstd::bulk::compress(bytes, 9),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_client_ranks_and_we_break_ties() {
        let cases = [
            (None, Coding::Identity),
            (Some(""), Coding::Identity),
            (Some("gzip"), Coding::Gzip),
            (Some("GZIP"), Coding::Gzip),
            (Some("x-gzip"), Coding::Gzip),
            (Some("gzip, deflate, br, zstd"), Coding::Brotli),
            (Some("gzip, deflate"), Coding::Gzip),
            (Some("zstd, gzip"), Coding::Zstd),
            (Some("br;q=0.5, gzip;q=0.8"), Coding::Gzip),
            (Some("br;q=0, gzip;q=0"), Coding::Identity),
            (Some("*"), Coding::Brotli),
            (Some("*;q=0"), Coding::Identity),
            (Some("br;q=0, *;q=0.1"), Coding::Zstd),
            (Some("identity, gzip;q=0.5"), Coding::Identity),
            (Some("identity;q=0"), Coding::Identity),
            (Some("br;q=NaN, gzip;q=-1"), Coding::Identity),
            (Some("br;q=7"), Coding::Brotli),
            (Some("gzip;q=0.001"), Coding::Gzip),
            (Some("gzip;level=9;q=0.4"), Coding::Gzip),
            (Some(";;,,q=1"), Coding::Identity),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(choose(&headers), expected, "{value:?}");
        }
    }

    #[test]
    fn other_decoders_read_what_we_compress() {
        let text = "#EXTINF:6.000000,\n../seg/1.m4s\n".repeat(200).into_bytes();
        for coding in PREFERENCE {
            let small = compress(coding, &text).unwrap();
            let mut back = Vec::new();
            match coding {
                Coding::Identity => back = small.clone(),
                Coding::Gzip => {
                    flate2::read::GzDecoder::new(&*small)
                        .read_to_end(&mut back)
                        .map(drop)
                        .unwrap();
                }
                Coding::Brotli => brotli::BrotliDecompress(&mut &*small, &mut back).unwrap(),
                Coding::Zstd => back = zstd::bulk::decompress(&small, 1 << 20).unwrap(),
            }
            assert_eq!(back, text, "{}", coding.name());
            assert!(coding == Coding::Identity || small.len() < text.len() / 10);
        }
    }
}
