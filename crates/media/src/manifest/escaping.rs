//! Text from files, escaped for manifests.

use crate::time::Time;
use std::fmt::{Display, Formatter, Result, Write};

/// The content of an HLS quoted-string (RFC 8216, 4.2). A quoted-string has no escape sequences, so
/// forbidden characters are replaced.
pub(super) struct QuotedString<'a>(pub(super) &'a str);

impl Display for QuotedString<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.chars().try_for_each(|c| match c {
            '"' => f.write_char('\''),
            c if c.is_control() => f.write_char(' '),
            c => f.write_char(c),
        })
    }
}

/// The escaped content of an XML 1.0 element or attribute. Control characters become spaces, and
/// noncharacters are dropped.
pub(crate) struct XmlText<'a>(pub(crate) &'a str);

impl Display for XmlText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            c if c.is_control() => f.write_char(' '),
            '\u{fffe}' | '\u{ffff}' => Ok(()),
            c => f.write_char(c),
        })
    }
}

/// An XML Schema duration in seconds with up to nine decimals, without trailing zeros.
pub(super) struct XmlDuration(pub(super) Time);

impl Display for XmlDuration {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let nanos = self.0.as_nanos().max(0);
        write!(f, "PT{}", nanos / 1_000_000_000)?;
        let fraction = format!("{:09}", nanos % 1_000_000_000);
        match fraction.trim_end_matches('0') {
            "" => f.write_char('S'),
            fraction => write!(f, ".{fraction}S"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped() {
        let nasty = "a\"b\r\n<c>&\u{0}\u{ffff}ü";
        assert_eq!(QuotedString(nasty).to_string(), "a'b  <c>& \u{ffff}ü");
        assert_eq!(XmlText(nasty).to_string(), "a&quot;b  &lt;c&gt;&amp; ü");
    }

    #[test]
    fn durations_are_short_and_exact() {
        for (time, text) in [
            (Time::new(60, 1), "PT60S"),
            (Time::new(1001, 24_000), "PT0.041708333S"),
            (Time::new(5, 2), "PT2.5S"),
            (Time::new(-1, 1), "PT0S"),
        ] {
            assert_eq!(XmlDuration(time).to_string(), text);
        }
    }
}
