//! The standard output of a sink.

use serde_json::Value;
use std::cell::OnceCell;

/// The output of a sink, which is parsed as JSON on first use.
pub(super) struct SinkStdout {
    text: String,
    json: OnceCell<Result<Value, NoJson>>,
}

/// The error for an output that is not JSON. It contains the start of the output's last line.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the output is not JSON; its last line starts with: {0}")]
pub(crate) struct NoJson(String);

impl SinkStdout {
    /// Wraps the standard output of a sink.
    pub(super) fn new(text: String) -> SinkStdout {
        let json = OnceCell::new();
        SinkStdout { text, json }
    }

    /// Parses the whole output as JSON. If that fails, parses only its last line.
    ///
    /// # Errors
    /// Neither the whole output nor its last line is JSON.
    pub(super) fn json(&self) -> Result<&Value, NoJson> {
        let read = || {
            let last = self.text.trim_end().lines().next_back().unwrap_or_default();
            let read = serde_json::from_str(&self.text).or_else(|_| serde_json::from_str(last));
            let begins: String = last.chars().take(200).collect();
            read.map_err(|_| NoJson(begins))
        };
        self.json.get_or_init(read).as_ref().map_err(NoJson::clone)
    }
}
