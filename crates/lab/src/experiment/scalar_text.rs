//! Values of variables and parameters as text.

use toml::Value;

/// Returns a value as text, or `None` for arrays, tables and dates.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}
