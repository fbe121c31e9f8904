//! What is wrong in a document, and where.

use std::fmt;
use std::ops::Range;

/// Something wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// From 1; 0 where the document is JSON, whose places are paths.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The key, such as `sink.viewer.at`, of JSON a JSONPath; empty where the document is no TOML.
    pub path: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Fault {
    /// At these bytes of the text.
    pub(super) fn at(text: &str, span: Option<Range<usize>>, path: &str, what: String) -> Fault {
        let before = text
            .get(..span.map_or(0, |span| span.start))
            .unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Fault {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            path: path.to_owned(),
            what,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}
