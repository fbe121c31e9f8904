//! Attribute lists (RFC 8216, 4.2), parsed without copying.

use super::super::decimal;

/// A list such as `NAME=value,NAME="value, with commas"`.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttributeList<'a>(pub(super) &'a str);

impl<'a> AttributeList<'a> {
    /// Returns the value of the first attribute with this name, without quotes.
    pub(super) fn get(self, name: &str) -> Option<&'a str> {
        self.iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// Returns the value of an attribute as an integer.
    pub(super) fn get_integer(self, name: &str) -> Option<u64> {
        // Ignores a fraction, because some packagers write bitrates with a fraction.
        self.get(name)?.split('.').next()?.parse().ok()
    }

    /// Returns the value of an attribute as a resolution such as `1280x720`.
    pub(super) fn get_resolution(self, name: &str) -> Option<(u32, u32)> {
        let (width, height) = self.get(name)?.split_once(['x', 'X'])?;
        Some((width.parse().ok()?, height.parse().ok()?))
    }

    /// Returns the value of an attribute as a decimal number.
    pub(super) fn get_decimal(self, name: &str) -> Option<f64> {
        decimal::parse_seconds(self.get(name)?)
            .map(|nanos| nanos as f64 / f64::from(decimal::NANOS_PER_SECOND))
    }

    fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (name, after) = rest.split_once('=')?;
            let (value, next) = match after.strip_prefix('"') {
                Some(quoted) => {
                    let (value, next) = quoted.split_once('"').unwrap_or((quoted, ""));
                    (value, next.split_once(',').map_or("", |(_, next)| next))
                }
                None => after.split_once(',').unwrap_or((after, "")),
            };
            rest = next;
            Some((name.trim(), value.trim()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_may_contain_commas_and_equals() {
        let list = AttributeList(
            r#"BANDWIDTH=1280000.5, CODECS="avc1.4d401f,mp4a.40.2",RESOLUTION=640x360,URI="a?b=c,d",FRAME-RATE=29.970"#,
        );
        assert_eq!(list.get_integer("BANDWIDTH"), Some(1_280_000));
        assert_eq!(list.get("CODECS"), Some("avc1.4d401f,mp4a.40.2"));
        assert_eq!(list.get_resolution("RESOLUTION"), Some((640, 360)));
        assert_eq!(list.get("URI"), Some("a?b=c,d"));
        assert_eq!(list.get_decimal("FRAME-RATE"), Some(29.97));
        assert_eq!(list.get("RATE"), None);
    }

    #[test]
    fn broken_lists_end_after_a_few_entries() {
        for broken in ["", "=", "A", "A=\"", "A=\"x", ",,,=,", "A=\"x\"y,B=1"] {
            assert!(AttributeList(broken).iter().count() <= 3, "{broken}");
        }
        assert_eq!(AttributeList("A=\"x\"y,B=1").get("B"), Some("1"));
    }
}
