//! Parsing CMCD from untrusted clients: bounded, and malformed members are left out.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::HEADERS;

/// Bytes that are parsed of a header field or of the query argument.
const BYTES_MAX: usize = 4096;
/// Keys that are returned.
const KEYS_MAX: usize = 64;

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum CmcdValue {
    /// A number. A list of numbers (version 2) becomes the greatest of them.
    Number(f64),
    /// A string or a token.
    Text(String),
    /// A Boolean. The key alone means `true`.
    Flag(bool),
}

/// Keys and values that a player sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CmcdData(BTreeMap<String, CmcdValue>);

impl CmcdData {
    /// Parses the query's `CMCD` argument and the header fields. The first value of a key counts.
    pub fn parse(query: Option<&str>, headers: &HeaderMap) -> CmcdData {
        let mut found = CmcdData::default();
        let parts = query.unwrap_or_default().split('&');
        if let Some(text) = parts
            .into_iter()
            .find_map(|part| part.strip_prefix("CMCD="))
            && let Some(text) = percent_decode(text)
        {
            found.parse_dictionary(&text);
        }
        for name in HEADERS {
            for value in headers.get_all(name) {
                found.parse_dictionary(value.to_str().unwrap_or_default());
            }
        }
        found
    }

    /// Returns whether the player sent nothing valid.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CmcdValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The form for the access record, with texts of up to 256 characters.
    pub fn to_record(&self) -> Option<BTreeMap<String, serde_json::Value>> {
        use serde_json::Value as Json;
        let pairs = self.0.iter().map(|(key, value)| {
            let value = match value {
                CmcdValue::Number(number) => Json::from(*number),
                CmcdValue::Text(text) => Json::from(text.chars().take(256).collect::<String>()),
                CmcdValue::Flag(flag) => Json::from(*flag),
            };
            (key.clone(), value)
        });
        (!self.is_empty()).then(|| pairs.collect())
    }

    fn parse_dictionary(&mut self, text: &str) {
        let mut rest = text
            .get(..text.floor_char_boundary(BYTES_MAX))
            .unwrap_or("");
        if text.len() > BYTES_MAX {
            // A cut value could be mistaken for a whole one.
            rest = rest.rsplit_once(',').map_or("", |(whole, _)| whole);
        }
        while !rest.is_empty() {
            let (member, after) = split_member(rest);
            rest = after;
            let (key, value) = match member.split_once('=') {
                Some((key, text)) => (key, parse_item(text.trim())),
                None => (member, Some(CmcdValue::Flag(true))),
            };
            let key = key.trim();
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
            if let Some(value) = value
                && !key.is_empty()
                && key.len() <= 64
                && key.bytes().all(plain)
                && self.0.len() < KEYS_MAX
            {
                self.0.entry(key.to_owned()).or_insert(value);
            }
        }
    }
}

/// Splits at the next comma outside strings and lists.
fn split_member(text: &str) -> (&str, &str) {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0u32);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth = depth.saturating_sub(1),
            b',' if !quoted && depth == 0 => {
                return (
                    text.get(..at).unwrap_or(""),
                    text.get(at + 1..).unwrap_or(""),
                );
            }
            _ => {}
        }
    }
    (text, "")
}

fn parse_item(text: &str) -> Option<CmcdValue> {
    if let Some(list) = text.strip_prefix('(') {
        return parse_list(list.split_once(')')?.0);
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return Some(CmcdValue::Text(unescape_string(quoted)?));
    }
    // Parameters of a single value have no meaning.
    let bare = text.split(';').next().unwrap_or_default().trim();
    match bare {
        "" => None,
        "?1" | "true" => Some(CmcdValue::Flag(true)),
        "?0" | "false" => Some(CmcdValue::Flag(false)),
        bare => Some(match parse_number(bare) {
            Some(number) => CmcdValue::Number(number),
            None => CmcdValue::Text(bare.to_owned()),
        }),
    }
}

/// Version 2: `(5000;v 128;a)`, one item per kind of media. Returns the greatest number, which
/// belongs to the main media; without numbers, the first item.
fn parse_list(list: &str) -> Option<CmcdValue> {
    let items = list.split_ascii_whitespace();
    let bare = |item: &str| item.split(';').next().unwrap_or_default().to_owned();
    let items: Vec<String> = items.map(bare).collect();
    let greatest = items.iter().filter_map(|item| parse_number(item));
    if let Some(greatest) = greatest.reduce(f64::max) {
        return Some(CmcdValue::Number(greatest));
    }
    let first = items.first()?;
    Some(CmcdValue::Text(first.trim_matches('"').to_owned()))
}

/// Parses digits with an optional sign and fraction, within the range of `f64`.
fn parse_number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let short = digits.len() <= 18 && digits.starts_with(|c: char| c.is_ascii_digit());
    (short && digits.bytes().all(plain)).then(|| text.parse().ok())?
}

fn unescape_string(text: &str) -> Option<String> {
    let (mut out, mut escaped) = (String::new(), false);
    for c in text.chars() {
        match c {
            _ if escaped => {
                out.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some(out),
            _ => out.push(c),
        }
    }
    None
}

/// Returns `None` when the bytes are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let text = text
        .get(..text.floor_char_boundary(BYTES_MAX * 3))
        .unwrap_or("");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_query(query: &str) -> Vec<(String, CmcdValue)> {
        let found = CmcdData::parse(Some(query), &HeaderMap::new());
        found
            .iter()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect()
    }

    fn number_pair(key: &str, number: f64) -> (String, CmcdValue) {
        (key.into(), CmcdValue::Number(number))
    }

    fn text_pair(key: &str, text: &str) -> (String, CmcdValue) {
        (key.into(), CmcdValue::Text(text.into()))
    }

    #[test]
    fn parses_version_1_in_a_query() {
        let query =
            "a=b&CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cot%3Dv%2Csid%3D%226e2f%2C%5C%22x%22%2Csu&c";
        let flag = |key: &str| (key.to_owned(), CmcdValue::Flag(true));
        assert_eq!(
            of_query(query),
            [
                number_pair("bl", 21300.0),
                number_pair("br", 3200.0),
                flag("bs"),
                text_pair("ot", "v"),
                text_pair("sid", "6e2f,\"x"),
                flag("su")
            ]
        );
    }

    #[test]
    fn parses_version_1_in_headers() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "cmcd-object",
            "br=3200,d=4004,ot=v,tb=6000".parse().unwrap(),
        );
        headers.insert("cmcd-session", "sid=\"a\"".parse().unwrap());
        let found = CmcdData::parse(None, &headers);
        assert_eq!(found.iter().count(), 5);
        assert!(
            found
                .iter()
                .any(|(key, value)| key == "tb" && *value == CmcdValue::Number(6000.0))
        );
    }

    #[test]
    fn parses_lists_of_version_2() {
        let query = "CMCD=br%3D(5000%3Bv%20128%3Ba)%2Cnor%3D(%22seg2.m4s%22%3Br%3D%220-999%22)%2Cv%3D2%2Cpr%3D1.5%2Cbs%3D%3F0";
        assert_eq!(
            of_query(query),
            [
                number_pair("br", 5000.0),
                ("bs".into(), CmcdValue::Flag(false)),
                text_pair("nor", "seg2.m4s"),
                number_pair("pr", 1.5),
                number_pair("v", 2.0)
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_is_parsed_within_bounds(text in "\\PC{0,200}", list in "[a-z=(),;\"0-9.%\\\\ -]{0,200}") {
            for query in [format!("CMCD={text}"), format!("CMCD={list}")] {
                let found = CmcdData::parse(Some(&query), &HeaderMap::new());
                proptest::prop_assert!(found.iter().count() <= KEYS_MAX);
            }
        }
    }

    #[test]
    fn malformed_members_are_left_out() {
        for query in [
            "CMCD=",
            "CMCD=%",
            "CMCD=%ff",
            "CMCD=%22",
            "CMCD==1",
            "CMCD=a%3D",
            "CMCD=a%3D(1",
            "CMCD=%00%3D1",
        ] {
            assert_eq!(of_query(query), [], "{query}");
        }
        let many: String = (0..500).map(|n| format!("k{n}=1,")).collect();
        assert_eq!(of_query(&format!("CMCD={many}")).len(), KEYS_MAX);
        let long = format!("CMCD=a=1,b={}", "x".repeat(BYTES_MAX));
        assert_eq!(
            of_query(&long),
            [number_pair("a", 1.0)],
            "no half of a value"
        );
        let wide = format!("CMCD=a=1,b={}", "\u{e9}".repeat(BYTES_MAX));
        assert_eq!(
            of_query(&wide),
            [number_pair("a", 1.0)],
            "cut in the middle of a character"
        );
        assert_eq!(of_query("CMCD=a=1e999,b=99999999999999999999").len(), 2);
    }
}
