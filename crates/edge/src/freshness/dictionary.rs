//! A parser for the dictionaries of RFC 8941. Targeted cache control fields have this syntax (RFC
//! 9213 section 2.1).
//!
//! The parser is strict, so one error makes the whole field invalid. The parser checks the syntax
//! of all values, but returns the contents of booleans and integers only.

/// The value of a member. Directives use booleans, integers and strings. Values of all other types
/// become `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructuredFieldValue {
    Boolean(bool),
    Integer(i64),
    Text,
    Other,
}

/// Maximum number of members in a dictionary. Real servers send fewer than ten members.
const MEMBERS_MAX: usize = 64;

/// Parses a dictionary. If a key occurs several times, the last member with this key is used.
/// Returns `None` if the text is invalid or has too many members.
pub fn parse_dictionary(text: &str) -> Option<Vec<(&str, StructuredFieldValue)>> {
    let mut members: Vec<(&str, StructuredFieldValue)> = Vec::new();
    let mut rest = FieldParser(text.trim_matches(' '));
    while !rest.0.is_empty() {
        let key = rest.take_key()?;
        let value = match rest.take_char('=') {
            Some(()) => rest.take_member_value()?,
            None => StructuredFieldValue::Boolean(true),
        };
        rest.skip_parameters()?;
        members.retain(|(other, _)| *other != key);
        members.push((key, value));
        rest.skip_chars(&[' ', '\t']);
        if rest.0.is_empty() {
            break;
        }
        rest.take_char(',')?;
        rest.skip_chars(&[' ', '\t']);
        // A comma must be followed by a member.
        if rest.0.is_empty() || members.len() >= MEMBERS_MAX {
            return None;
        }
    }
    Some(members)
}

/// The rest of a field that has not been parsed yet.
struct FieldParser<'a>(&'a str);

impl<'a> FieldParser<'a> {
    fn take_char(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }

    fn skip_chars(&mut self, spaces: &[char]) {
        self.0 = self.0.trim_start_matches(spaces);
    }

    /// Takes the leading characters for which `is_part` is true. The result may be empty.
    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        let (run, rest) = self.0.split_at(end);
        self.0 = rest;
        run
    }

    fn take_key(&mut self) -> Option<&'a str> {
        let starts = |c: char| c.is_ascii_lowercase() || c == '*';
        self.0.starts_with(starts).then(|| {
            self.take_while(|c| starts(c) || c.is_ascii_digit() || matches!(c, '_' | '-' | '.'))
        })
    }

    fn skip_parameters(&mut self) -> Option<()> {
        while self.take_char(';').is_some() {
            self.skip_chars(&[' ']);
            self.take_key()?;
            if self.take_char('=').is_some() {
                self.take_item()?;
            }
        }
        Some(())
    }

    fn take_member_value(&mut self) -> Option<StructuredFieldValue> {
        if self.take_char('(').is_none() {
            return self.take_item();
        }
        loop {
            self.skip_chars(&[' ']);
            if self.take_char(')').is_some() {
                return Some(StructuredFieldValue::Other);
            }
            self.take_item()?;
            self.skip_parameters()?;
            if !self.0.starts_with([' ', ')']) {
                return None;
            }
        }
    }

    fn take_item(&mut self) -> Option<StructuredFieldValue> {
        match self.0.chars().next()? {
            '-' | '0'..='9' => self.take_number(),
            '"' => self.take_string(),
            '?' => {
                self.take_char('?')?;
                match self.take_char('1') {
                    Some(()) => Some(StructuredFieldValue::Boolean(true)),
                    None => self
                        .take_char('0')
                        .map(|()| StructuredFieldValue::Boolean(false)),
                }
            }
            ':' => {
                self.take_char(':')?;
                self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='));
                self.take_char(':').map(|()| StructuredFieldValue::Other)
            }
            c if c.is_ascii_alphabetic() || c == '*' => {
                self.take_while(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(c));
                Some(StructuredFieldValue::Other)
            }
            _ => None,
        }
    }

    /// Takes an integer of at most 15 digits, or a decimal with at most 12 digits before the point
    /// and 3 after it.
    fn take_number(&mut self) -> Option<StructuredFieldValue> {
        let sign = if self.take_char('-').is_some() { -1 } else { 1 };
        let integer = self.take_while(|c| c.is_ascii_digit());
        if self.take_char('.').is_some() {
            let fraction = self.take_while(|c| c.is_ascii_digit());
            let fits = (1..=12).contains(&integer.len()) && (1..=3).contains(&fraction.len());
            return fits.then_some(StructuredFieldValue::Other);
        }
        let value: i64 = integer.parse().ok().filter(|_| integer.len() <= 15)?;
        Some(StructuredFieldValue::Integer(sign * value))
    }

    fn take_string(&mut self) -> Option<StructuredFieldValue> {
        self.take_char('"')?;
        loop {
            self.take_while(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\'));
            if self.take_char('"').is_some() {
                return Some(StructuredFieldValue::Text);
            }
            self.take_char('\\')?;
            self.take_char('"').or_else(|| self.take_char('\\'))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_follow_the_standard() {
        let integer = |key, value| Some(vec![(key, StructuredFieldValue::Integer(value))]);
        for (text, expected) in [
            ("max-age=60", integer("max-age", 60)),
            ("  max-age=60;a=b;c  ", integer("max-age", 60)),
            ("a=1,a=-2", integer("a", -2)),
            (
                "a=?0",
                Some(vec![("a", StructuredFieldValue::Boolean(false))]),
            ),
            (
                "a;x=\"y\"",
                Some(vec![("a", StructuredFieldValue::Boolean(true))]),
            ),
            (
                "a=\"b, \\\" \\\\ c\"",
                Some(vec![("a", StructuredFieldValue::Text)]),
            ),
            (
                "a=(1 \"x\";q b)",
                Some(vec![("a", StructuredFieldValue::Other)]),
            ),
            ("a=:aGk=:", Some(vec![("a", StructuredFieldValue::Other)])),
            ("a=1.5", Some(vec![("a", StructuredFieldValue::Other)])),
            ("a=b/c", Some(vec![("a", StructuredFieldValue::Other)])),
            ("", Some(vec![])),
        ] {
            assert_eq!(parse_dictionary(text), expected, "{text}");
        }
        for invalid in [
            "a=",
            "a b",
            "A=1",
            "1=1",
            "=1",
            "a,",
            ",a",
            "a,,b",
            "a=1.",
            "a=.5",
            "a=-",
            "a=1.2345",
            "a=1234567890123456",
            "a=\"b",
            "a=\"\\c\"",
            "a=\"\u{e9}\"",
            "a=(1",
            "a=(1\"x\")",
            "a=?2",
            "a=:x",
            "a;",
            "a;B",
            "a =1",
            "a= 1",
            "a=\u{e9}",
            "a=@1",
            "\ta",
        ] {
            assert_eq!(parse_dictionary(invalid), None, "{invalid:?}");
        }
        let many = vec!["a"; MEMBERS_MAX * 2].join(",");
        assert_eq!(parse_dictionary(&many).map(|all| all.len()), Some(1));
    }
}
