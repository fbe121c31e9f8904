//! Common Media Client Data, versions 1 and 2 (CTA-5004, CTA-5004-B): what a player says of itself
//! beside its requests. From a hostile player, too: bounded, and what is malformed is left out.

use std::collections::BTreeMap;

use http::HeaderMap;

/// The most that is read of it, in bytes as sent.
const BYTES_MAX: usize = 4096;
/// The most keys that are kept.
const KEYS_MAX: usize = 64;

const HEADERS: [&str; 4] = ["cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"];

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a list (version 2), the greatest.
    Number(f64),
    /// A string or a token.
    Text(String),
    /// `true` is said by the bare key.
    Flag(bool),
}

/// What a player said, by its keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cmcd(BTreeMap<String, Value>);

impl Cmcd {
    /// From the query's `CMCD` and the four headers; what is said twice: the first word.
    pub fn of(query: Option<&str>, headers: &HeaderMap) -> Cmcd {
        let mut found = Cmcd::default();
        let parts = query.unwrap_or_default().split('&');
        if let Some(text) = parts
            .into_iter()
            .find_map(|part| part.strip_prefix("CMCD="))
            && let Some(text) = decoded(text)
        {
            found.read(&text);
        }
        for name in HEADERS {
            for value in headers.get_all(name) {
                found.read(value.to_str().unwrap_or_default());
            }
        }
        found
    }

    /// Nothing was said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// As it goes into the record.
    pub fn record(&self) -> Option<BTreeMap<String, serde_json::Value>> {
        use serde_json::Value as Json;
        let pairs = self.0.iter().map(|(key, value)| {
            let value = match value {
                Value::Number(number) => Json::from(*number),
                Value::Text(text) => Json::from(text.chars().take(256).collect::<String>()),
                Value::Flag(flag) => Json::from(*flag),
            };
            (key.clone(), value)
        });
        (!self.is_empty()).then(|| pairs.collect())
    }

    fn read(&mut self, text: &str) {
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
                Some((key, text)) => (key, parse(text.trim())),
                None => (member, Some(Value::Flag(true))),
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

/// Up to the next comma that is in no string and no list.
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

fn parse(text: &str) -> Option<Value> {
    if let Some(list) = text.strip_prefix('(') {
        return list_value(list.split_once(')')?.0);
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return Some(Value::Text(unquoted(quoted)?));
    }
    // Parameters mean nothing for a single value.
    let bare = text.split(';').next().unwrap_or_default().trim();
    match bare {
        "" => None,
        "?1" | "true" => Some(Value::Flag(true)),
        "?0" | "false" => Some(Value::Flag(false)),
        bare => Some(match number(bare) {
            Some(number) => Value::Number(number),
            None => Value::Text(bare.to_owned()),
        }),
    }
}

/// Version 2: `(5000;v 128;a)`, one item a kind of media. The greatest number is that of the
/// object that matters; of strings, the first.
fn list_value(list: &str) -> Option<Value> {
    let items = list.split_ascii_whitespace();
    let bare = |item: &str| item.split(';').next().unwrap_or_default().to_owned();
    let items: Vec<String> = items.map(bare).collect();
    let greatest = items.iter().filter_map(|item| number(item));
    if let Some(greatest) = greatest.reduce(f64::max) {
        return Some(Value::Number(greatest));
    }
    let first = items.first()?;
    Some(Value::Text(first.trim_matches('"').to_owned()))
}

/// Digits, with a sign and a fraction perhaps; none that floating point could not hold.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let short = digits.len() <= 18 && digits.starts_with(|c: char| c.is_ascii_digit());
    (short && digits.bytes().all(plain)).then(|| text.parse().ok())?
}

fn unquoted(text: &str) -> Option<String> {
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

/// Percent-decoded; `None` when that is no text.
fn decoded(text: &str) -> Option<String> {
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

    fn of_query(query: &str) -> Vec<(String, Value)> {
        let found = Cmcd::of(Some(query), &HeaderMap::new());
        found
            .iter()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect()
    }

    fn n(key: &str, number: f64) -> (String, Value) {
        (key.into(), Value::Number(number))
    }

    fn t(key: &str, text: &str) -> (String, Value) {
        (key.into(), Value::Text(text.into()))
    }

    #[test]
    fn version_1_in_a_query() {
        let query =
            "a=b&CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cot%3Dv%2Csid%3D%226e2f%2C%5C%22x%22%2Csu&c";
        let flag = |key: &str| (key.to_owned(), Value::Flag(true));
        assert_eq!(
            of_query(query),
            [
                n("bl", 21300.0),
                n("br", 3200.0),
                flag("bs"),
                t("ot", "v"),
                t("sid", "6e2f,\"x"),
                flag("su")
            ]
        );
    }

    #[test]
    fn version_1_in_headers() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "cmcd-object",
            "br=3200,d=4004,ot=v,tb=6000".parse().unwrap(),
        );
        headers.insert("cmcd-session", "sid=\"a\"".parse().unwrap());
        let found = Cmcd::of(None, &headers);
        assert_eq!(found.iter().count(), 5);
        assert!(
            found
                .iter()
                .any(|(key, value)| key == "tb" && *value == Value::Number(6000.0))
        );
    }

    #[test]
    fn version_2_has_lists_with_parameters() {
        let query = "CMCD=br%3D(5000%3Bv%20128%3Ba)%2Cnor%3D(%22seg2.m4s%22%3Br%3D%220-999%22)%2Cv%3D2%2Cpr%3D1.5%2Cbs%3D%3F0";
        assert_eq!(
            of_query(query),
            [
                n("br", 5000.0),
                ("bs".into(), Value::Flag(false)),
                t("nor", "seg2.m4s"),
                n("pr", 1.5),
                n("v", 2.0)
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_read_or_left_out(text in "\\PC{0,200}", list in "[a-z=(),;\"0-9.%\\\\ -]{0,200}") {
            for query in [format!("CMCD={text}"), format!("CMCD={list}")] {
                let found = Cmcd::of(Some(&query), &HeaderMap::new());
                proptest::prop_assert!(found.iter().count() <= KEYS_MAX);
            }
        }
    }

    #[test]
    fn nonsense_is_left_out_and_bounded() {
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
        assert_eq!(of_query(&long), [n("a", 1.0)], "no half of a value");
        let wide = format!("CMCD=a=1,b={}", "\u{e9}".repeat(BYTES_MAX));
        assert_eq!(
            of_query(&wide),
            [n("a", 1.0)],
            "cut in the middle of a letter"
        );
        assert_eq!(of_query("CMCD=a=1e999,b=99999999999999999999").len(), 2);
    }
}
