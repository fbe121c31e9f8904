//! Places in a document.

use std::fmt::{self, Write};

/// Something wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offence {
    /// A JSONPath (RFC 9535), such as `$.processing['connection-map'][0].from.instance`; of a
    /// field that is missing, where it should be.
    pub path: String,
    /// What is wrong, and what to do.
    pub what: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// Where a walk is.
#[derive(Debug, Clone)]
pub(super) struct Place(String);

impl Place {
    pub(super) fn root() -> Place {
        Place("$".into())
    }

    /// Of a member.
    pub(super) fn at(&self, name: &str) -> Place {
        Place(format!("{}{}", self.0, Member(name)))
    }

    /// Of an element.
    pub(super) fn nth(&self, n: usize) -> Place {
        Place(format!("{}[{n}]", self.0))
    }

    pub(super) fn offence(&self, what: impl Into<String>) -> Offence {
        Offence {
            path: self.0.clone(),
            what: what.into(),
        }
    }
}

/// A member's name as a segment: short where RFC 9535 allows that, else quoted.
pub(super) struct Member<'a>(pub(super) &'a str);

impl fmt::Display for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        let short =
            self.0.starts_with(first) && self.0.chars().all(|c| first(c) || c.is_ascii_digit());
        if short {
            return write!(f, ".{}", self.0);
        }
        f.write_str("['")?;
        for c in self.0.chars() {
            match c {
                '\'' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_str("']")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        let place = Place::root()
            .at("general")
            .at("input-ports")
            .nth(3)
            .at("it's");
        assert_eq!(
            place.offence("").path,
            r"$.general['input-ports'][3]['it\'s']"
        );
        assert_eq!(
            Place::root().at("").at("1a").at("\n").offence("").path,
            r"$['']['1a']['\u000a']"
        );
    }
}
