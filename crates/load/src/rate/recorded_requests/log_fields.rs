//! Splits the lines of access logs into fields. A field is a word, a text in quotes, or a text in
//! brackets.

use std::borrow::Cow;

/// The escape sequences in quoted texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteEscapes {
    /// `\"`, `\\` and `\xhh`, as Apache and nginx write them.
    Backslash,
    /// `""` for a quotation mark, as the Extended Log File Format (W3C, WD-logfile-960323)
    /// requires.
    Doubled,
}

/// Maximum number of fields in a line.
const FIELDS_MAX: usize = 64;

/// Splits a line into fields, and removes the quotes and brackets. Returns none if a quote or a
/// bracket is not closed, or if there are too many fields.
pub(super) fn split_fields(line: &str, escapes: QuoteEscapes) -> Option<Vec<Cow<'_, str>>> {
    let mut fields = Vec::new();
    let mut rest = line.trim_matches([' ', '\t']);
    while !rest.is_empty() {
        if fields.len() >= FIELDS_MAX {
            return None;
        }
        let (field, after) = match rest.as_bytes().first()? {
            b'"' => split_at_closing_quote(rest.get(1..)?, escapes)?,
            b'[' if escapes == QuoteEscapes::Backslash => {
                let (inside, after) = rest.get(1..)?.split_once(']')?;
                (Cow::Borrowed(inside), after)
            }
            _ => {
                let end = rest.find([' ', '\t']).unwrap_or(rest.len());
                let (word, after) = rest.split_at_checked(end)?;
                (Cow::Borrowed(word), after)
            }
        };
        fields.push(field);
        rest = after.trim_start_matches([' ', '\t']);
    }
    Some(fields)
}

/// Returns the text before the closing quote, with its escape sequences decoded. Also returns the
/// text after the closing quote.
fn split_at_closing_quote(text: &str, escapes: QuoteEscapes) -> Option<(Cow<'_, str>, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let end = loop {
        match *bytes.get(at)? {
            b'\\' if escapes == QuoteEscapes::Backslash => at += 2,
            b'"' if escapes == QuoteEscapes::Doubled && bytes.get(at + 1) == Some(&b'"') => at += 2,
            b'"' => break at,
            _ => at += 1,
        }
    };
    let (inside, after) = (text.get(..end)?, text.get(end + 1..)?);
    let plain = match escapes {
        QuoteEscapes::Doubled if inside.contains('"') => inside.replace("\"\"", "\"").into(),
        QuoteEscapes::Backslash if inside.contains('\\') => remove_backslashes(inside).into(),
        _ => inside.into(),
    };
    Some((plain, after))
}

fn remove_backslashes(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            plain.push(*byte);
            continue;
        }
        let hex = after
            .strip_prefix(b"x")
            .and_then(|digits| std::str::from_utf8(digits.get(..2)?).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (hex, after.split_first()) {
            (Some(escaped), _) => {
                plain.push(escaped);
                rest = after.get(3..).unwrap_or_default();
            }
            (None, Some((escaped, after))) => {
                plain.push(*escaped);
                rest = after;
            }
            (None, None) => {}
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_brackets_and_escapes_are_removed() {
        let line = r#"::1 - - [29/Feb/2024:23:59:59 +0000] "GET /a\x20\"b\\ HTTP/1.1" 200 -"#;
        let fields = split_fields(line, QuoteEscapes::Backslash).unwrap();
        assert_eq!(fields.len(), 7);
        assert_eq!(fields[3], "29/Feb/2024:23:59:59 +0000");
        assert_eq!(fields[4], "GET /a \"b\\ HTTP/1.1");
        let doubled = split_fields("a \"b \"\"c\"\"\" -", QuoteEscapes::Doubled).unwrap();
        assert_eq!(doubled, ["a", "b \"c\"", "-"]);
    }

    #[test]
    fn open_quotes_and_brackets_are_refused() {
        for line in ["\"", "a \"b\\\"", "[x", "\"é\\", "\"\\x"] {
            assert_eq!(split_fields(line, QuoteEscapes::Backslash), None, "{line}");
        }
        assert_eq!(split_fields("\"a\"\"", QuoteEscapes::Doubled), None);
        assert!(split_fields(&"a ".repeat(65), QuoteEscapes::Doubled).is_none());
    }
}
