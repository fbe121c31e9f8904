//! What a sink printed.

use serde_json::Value;
use std::cell::OnceCell;

/// Read as JSON when that is asked for.
pub(super) struct Printed {
    text: String,
    json: OnceCell<Result<Value, String>>,
}

impl Printed {
    /// Of a sink's standard output.
    pub(super) fn new(text: String) -> Printed {
        let json = OnceCell::new();
        Printed { text, json }
    }

    /// All of it, or else its last line.
    ///
    /// # Errors
    /// What it printed instead.
    pub(super) fn json(&self) -> Result<&Value, String> {
        let read = || {
            let last = self.text.trim_end().lines().next_back().unwrap_or_default();
            let read = serde_json::from_str(&self.text).or_else(|_| serde_json::from_str(last));
            let begins: String = last.chars().take(200).collect();
            read.map_err(|_| format!("it printed no JSON, but: {begins}"))
        };
        self.json.get_or_init(read).as_ref().map_err(String::clone)
    }
}
