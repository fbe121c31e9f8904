//! Values of variables and parameters as text.

use toml::Value;

/// Returns a variable's value as text; `None` for arrays and tables.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}
