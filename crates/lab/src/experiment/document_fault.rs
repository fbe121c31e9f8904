//! A fault of an experiment document, with the position of the fault.

use std::fmt;
use std::ops::Range;

/// A fault of an experiment document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFault {
    /// Line number from 1. It is 0 for JSON documents, where `path` gives the position.
    pub line: usize,
    /// Column from 1, in characters. It is 0 if `line` is 0.
    pub column: usize,
    /// The key, such as `sink.viewer.at`, or a JSONPath. Empty if the document cannot be parsed, or
    /// if no single key is at fault.
    pub path: String,
    /// The fault and its remedy.
    pub what: String,
}

impl DocumentFault {
    /// Creates a fault at a byte range of the document's text.
    pub(super) fn at_span(
        text: &str,
        span: Option<Range<usize>>,
        path: &str,
        what: String,
    ) -> DocumentFault {
        let before = text
            .get(..span.map_or(0, |span| span.start))
            .unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        DocumentFault {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            path: path.to_owned(),
            what,
        }
    }
}

impl DocumentFault {
    /// Creates a fault of a key whose line is unknown, because the document is not TOML.
    pub(super) fn at_key(path: &str, what: String) -> DocumentFault {
        DocumentFault {
            line: 0,
            column: 0,
            path: path.to_owned(),
            what,
        }
    }
}

#[cfg(not(feature = "nbmp"))]
impl DocumentFault {
    /// Creates a fault of the whole document.
    pub(crate) fn of_whole_document(what: String) -> DocumentFault {
        DocumentFault {
            line: 0,
            column: 0,
            path: String::new(),
            what,
        }
    }
}

impl fmt::Display for DocumentFault {
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
