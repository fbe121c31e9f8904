//! `mdhd`: media header (8.4.2), with QuickTime's language codes.

use super::read_version_and_flags;
use crate::bytes::ByteReader;
use crate::error::Result;

/// Timescale and language of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mdhd {
    /// Ticks per second; 0 in broken files.
    pub timescale: u32,
    /// Language as three packed letters of 5 bits, or as a Macintosh language code.
    pub language_code: u16,
}

impl Mdhd {
    /// Parses the body, which has version 0 or 1.
    ///
    /// # Errors
    /// Returns `Truncated` if the body is too short.
    pub fn parse(body: &[u8]) -> Result<Mdhd> {
        let mut reader = ByteReader::new(body);
        let wide = read_version_and_flags(&mut reader).0 == 1;
        reader.skip(if wide { 16 } else { 8 });
        let timescale = reader.u32();
        reader.skip(if wide { 8 } else { 4 });
        let language = reader.u16();
        reader.check_no_short_read()?;
        Ok(Mdhd {
            timescale,
            language_code: language,
        })
    }

    /// Returns the ISO 639-2/T code, or `None` if the language is unspecified or invalid.
    ///
    /// Codes below 0x400 are Macintosh codes, which are valid in QuickTime files only.
    pub fn decode_language(&self, quicktime: bool) -> Option<String> {
        if self.language_code < 0x400 {
            let known = MACINTOSH_LANGUAGES.get(usize::from(self.language_code));
            return known.filter(|_| quicktime).map(|code| (*code).to_owned());
        }
        let letter = |shift: u32| (((self.language_code >> shift) & 31) as u8) + 0x60;
        let letters = [letter(10), letter(5), letter(0)];
        let legal = letters.iter().all(u8::is_ascii_lowercase) && letters != *b"und";
        legal.then(|| letters.iter().map(|letter| char::from(*letter)).collect())
    }
}

/// ISO 639-2/T codes, indexed by Macintosh language code (QuickTime File Format, "Macintosh
/// language codes").
const MACINTOSH_LANGUAGES: [&str; 50] = [
    "eng", "fra", "deu", "ita", "nld", "swe", "spa", "dan", "por", "nor", "heb", "jpn", "ara",
    "fin", "ell", "isl", "mlt", "tur", "hrv", "zho", "urd", "hin", "tha", "kor", "lit", "pol",
    "hun", "est", "lav", "sme", "fao", "fas", "rus", "zho", "nld", "gle", "sqi", "ron", "ces",
    "slk", "slv", "yid", "srp", "mkd", "bul", "ukr", "bel", "uzb", "kaz", "aze",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        let mut narrow = vec![0; 20];
        narrow[14..16].copy_from_slice(&600u16.to_be_bytes());
        narrow[20 - 2..].copy_from_slice(&[0, 0]);
        narrow.extend([0x15, 0xc7, 0, 0]);
        let parsed = Mdhd::parse(&narrow).unwrap();
        assert_eq!(parsed.timescale, 600);
        assert_eq!(parsed.decode_language(false).as_deref(), Some("eng"));
        let mut wide = vec![0; 32];
        wide[0] = 1;
        wide[22..24].copy_from_slice(&600u16.to_be_bytes());
        wide.extend([0x15, 0xc7, 0, 0]);
        assert_eq!(Mdhd::parse(&wide), Ok(parsed));
        assert!(Mdhd::parse(&wide[..33]).is_err());
    }

    #[test]
    fn languages_are_decoded_by_kind_of_file() {
        let language = |language, quicktime| {
            let timescale = 1;
            Mdhd {
                timescale,
                language_code: language,
            }
            .decode_language(quicktime)
        };
        assert_eq!(language(0x55c4, false), None, "und");
        assert_eq!(language(0, false), None);
        assert_eq!(language(0, true).as_deref(), Some("eng"));
        assert_eq!(language(11, true).as_deref(), Some("jpn"));
        assert_eq!(language(0x3ff, true), None);
        assert_eq!(language(0x7fff, true), None, "unspecified");
        assert_eq!(language(0x400, false), None, "not letters");
    }
}
