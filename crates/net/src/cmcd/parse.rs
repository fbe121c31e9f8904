//! Parses CMCD from untrusted clients. The size of the input is limited. In requests, malformed
//! members are ignored. An event line with a malformed member is rejected.

use std::collections::BTreeMap;

use http::HeaderMap;
use serde_json::Value as Json;

use super::HEADERS;
use super::value::{CmcdItem, CmcdMemberValue, CmcdValue, is_key_character, parse_member_value};

/// Limit on the bytes of a header field, of the query argument, or of an event line. A longer field
/// or argument is cut after the last whole member. A longer event line is rejected.
const BYTES_MAX: usize = 4096;
/// Limit on the number of keys; further keys are ignored.
const KEYS_MAX: usize = 64;
/// Limit on the bytes of a key.
const KEY_BYTES_MAX: usize = 64;

/// Keys and values that a player sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CmcdData(BTreeMap<String, CmcdMemberValue>);

impl CmcdData {
    /// Parses the query's `CMCD` argument and the header fields. If a key occurs more than once,
    /// the first value is used.
    pub fn parse_cmcd(query: Option<&str>, headers: &HeaderMap) -> CmcdData {
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

    /// Parses one line of an event report (version 2, CTA-5004-B section 3).
    ///
    /// Returns `None` if the line is longer than 4 KiB, if a member is malformed, or if the version
    /// (`v=2`) or the event (`e`) is missing.
    pub fn parse_event(line: &str) -> Option<CmcdData> {
        let mut found = CmcdData::default();
        let is_valid = line.len() <= BYTES_MAX && found.parse_dictionary(line.trim());
        let is_version_2 = found.numeric_value("v") == Some(2.0);
        (is_valid && is_version_2 && found.string_value("e").is_some()).then_some(found)
    }

    /// Returns whether there are no valid keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the keys and values, sorted by key. For a list, the value is the greatest number. If
    /// the list contains no number, the value is the first item.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CmcdValue)> {
        let pairs = self.0.iter();
        pairs.map(|(key, member)| (key.as_str(), member.main_value()))
    }

    /// Returns the value of a key if the value is a number. For a list, returns the greatest
    /// number.
    pub fn numeric_value(&self, key: &str) -> Option<f64> {
        match self.0.get(key)?.main_value() {
            CmcdValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the value of a key if the value is a string or a token.
    pub fn string_value(&self, key: &str) -> Option<&str> {
        match self.0.get(key)?.main_value() {
            CmcdValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether the value of a key is the Boolean `true`.
    pub fn has_flag(&self, key: &str) -> bool {
        let value = self.0.get(key).map(CmcdMemberValue::main_value);
        matches!(value, Some(CmcdValue::Flag(true)))
    }

    /// Returns the items of a list (version 2), or an empty slice for any other value.
    pub fn list_items(&self, key: &str) -> &[CmcdItem] {
        match self.0.get(key) {
            Some(CmcdMemberValue::List(_, items)) => items,
            _ => &[],
        }
    }

    /// Returns the keys and values for the access record, or `None` if there are no keys. Texts are
    /// cut after 256 characters.
    pub fn to_record(&self) -> Option<BTreeMap<String, Json>> {
        let pairs = self.iter();
        let record = pairs.map(|(key, value)| (key.to_owned(), value_to_json(value)));
        (!self.is_empty()).then(|| record.collect())
    }

    /// Returns the keys and values for the collector's record. Lists become JSON arrays. An item
    /// with parameters becomes a JSON object, such as `{"value":3000,"v":true}`.
    pub fn to_full_record(&self) -> BTreeMap<String, Json> {
        let pairs = self.0.iter().map(|(key, member)| {
            let value = match member {
                CmcdMemberValue::Single(value) => value_to_json(value),
                CmcdMemberValue::List(_, items) => items.iter().map(item_to_json).collect(),
            };
            (key.clone(), value)
        });
        pairs.collect()
    }

    /// Parses the members of `text`. Returns whether the whole text is valid.
    fn parse_dictionary(&mut self, text: &str) -> bool {
        let mut rest = text
            .get(..text.floor_char_boundary(BYTES_MAX))
            .unwrap_or("");
        if text.len() > BYTES_MAX {
            // Removes the last member, because a cut value could be mistaken for a complete value.
            rest = rest.rsplit_once(',').map_or("", |(whole, _)| whole);
        }
        let mut is_valid = text.len() <= BYTES_MAX;
        while !rest.is_empty() {
            let (member, after) = split_member(rest);
            rest = after;
            let (key, member) = match member.split_once('=') {
                Some((key, text)) => (key, parse_member_value(text.trim())),
                None => (member, Some(CmcdMemberValue::Single(CmcdValue::Flag(true)))),
            };
            let key = key.trim();
            match member {
                Some(member) if is_key(key) => {
                    if self.0.len() < KEYS_MAX {
                        self.0.entry(key.to_owned()).or_insert(member);
                    }
                }
                _ => is_valid = false,
            }
        }
        is_valid
    }
}

fn is_key(key: &str) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key.chars().all(is_key_character)
}

fn value_to_json(value: &CmcdValue) -> Json {
    match value {
        CmcdValue::Number(number) => Json::from(*number),
        CmcdValue::Text(text) => Json::from(text.chars().take(256).collect::<String>()),
        CmcdValue::Flag(flag) => Json::from(*flag),
    }
}

fn item_to_json(item: &CmcdItem) -> Json {
    if item.parameters.is_empty() {
        return value_to_json(&item.value);
    }
    let value = ("value".to_owned(), value_to_json(&item.value));
    let parameters = item.parameters.iter();
    let parameters = parameters.map(|(name, value)| (name.clone(), value_to_json(value)));
    Json::Object([value].into_iter().chain(parameters).collect())
}

/// Splits the text at the first comma that is outside strings and lists.
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

/// Decodes percent-encoded bytes, and `+` as a space. Returns `None` if an escape is malformed or
/// the result is not UTF-8.
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
        let found = CmcdData::parse_cmcd(Some(query), &HeaderMap::new());
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
        let found = CmcdData::parse_cmcd(None, &headers);
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

    #[test]
    fn parses_an_event_with_inner_lists_by_object_type() {
        let line = "br=(3000;v 128;a),cid=\"a, b\",e=ps,ec=(\"E)1\" \"E 2\"),msd=421,nr,sid=\"s\\\"1\",sta=p,ts=1790000000123,v=2,com.example-key=7";
        let found = CmcdData::parse_event(line).unwrap();
        let [video, audio] = found.list_items("br") else {
            panic!("{found:?}");
        };
        assert!(video.has_parameter("v") && !video.has_parameter("a") && audio.has_parameter("a"));
        assert_eq!(audio.value, CmcdValue::Number(128.0));
        assert_eq!(found.numeric_value("br"), Some(3000.0));
        assert_eq!(found.numeric_value("ts"), Some(1_790_000_000_123.0));
        assert_eq!(found.string_value("sid"), Some("s\"1"));
        assert!(found.has_flag("nr") && !found.has_flag("bs"));
        let record = serde_json::to_string(&found.to_full_record()).unwrap();
        assert!(
            record.contains(r#""br":[{"v":true,"value":3000.0},{"a":true,"value":128.0}]"#),
            "{record}"
        );
        assert!(record.contains(r#""ec":["E)1","E 2"]"#), "{record}");
    }

    #[test]
    fn a_line_that_is_no_event_of_version_2_is_refused() {
        let long = format!("e=t,v=2,x=\"{}\"", "x".repeat(BYTES_MAX));
        for line in [
            "",
            "e=ps",
            "v=2",
            "e=ps,v=1",
            "e=,v=2",
            "e=ps,v=2,br=(1",
            "e=ps,v=2,br=(1;v2;=)",
            "e=ps,v=2,sid=\"a",
            "e=ps,v=2,sid=\"a\"b",
            "e=ps,v=2,\u{e4}=1",
            "<script>",
            &long,
        ] {
            assert_eq!(CmcdData::parse_event(line), None, "{line}");
        }
        assert!(CmcdData::parse_event(" e=t, v=2 ").is_some());
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_lines_of_events_are_bounded(line in "e=t,v=2,[a-z=(),;\"0-9.%\\\\ -]{0,200}") {
            if let Some(found) = CmcdData::parse_event(&line) {
                proptest::prop_assert!(found.iter().count() <= KEYS_MAX);
                proptest::prop_assert!(found.string_value("e").is_some());
            }
        }

        #[test]
        fn arbitrary_text_is_parsed_within_bounds(text in "\\PC{0,200}", list in "[a-z=(),;\"0-9.%\\\\ -]{0,200}") {
            for query in [format!("CMCD={text}"), format!("CMCD={list}")] {
                let found = CmcdData::parse_cmcd(Some(&query), &HeaderMap::new());
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
