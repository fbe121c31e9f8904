//! Paths in a JSON document.

use std::fmt::{self, Write};

/// A fault in a description, with the path of the faulty member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NbmpFault {
    /// JSONPath (RFC 9535) of the faulty member, such as
    /// `$.processing['connection-map'][0].from.instance`. If a field is missing, this is the path
    /// at which the field is expected.
    pub path: String,
    /// The fault and its remedy.
    pub what: String,
}

impl fmt::Display for NbmpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// A JSONPath that is built while a document is traversed.
#[derive(Debug, Clone)]
pub(super) struct JsonPath(String);

impl JsonPath {
    pub(super) fn root() -> JsonPath {
        JsonPath("$".into())
    }

    /// Returns the path of a member of this object.
    pub(super) fn at(&self, name: &str) -> JsonPath {
        JsonPath(format!("{}{}", self.0, PathMember(name)))
    }

    /// Returns the path of an element of this array.
    pub(super) fn element(&self, n: usize) -> JsonPath {
        JsonPath(format!("{}[{n}]", self.0))
    }

    pub(super) fn fault_here(&self, what: impl Into<String>) -> NbmpFault {
        NbmpFault {
            path: self.0.clone(),
            what: what.into(),
        }
    }
}

/// Formats a member's name as a path segment. Uses the short form (`.name`) if RFC 9535 allows it,
/// and otherwise the quoted form (`['name']`).
pub(super) struct PathMember<'a>(pub(super) &'a str);

impl fmt::Display for PathMember<'_> {
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
        let place = JsonPath::root()
            .at("general")
            .at("input-ports")
            .element(3)
            .at("it's");
        assert_eq!(
            place.fault_here("").path,
            r"$.general['input-ports'][3]['it\'s']"
        );
        assert_eq!(
            JsonPath::root()
                .at("")
                .at("1a")
                .at("\n")
                .fault_here("")
                .path,
            r"$['']['1a']['\u000a']"
        );
    }
}
