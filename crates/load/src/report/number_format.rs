//! Formats numbers in reports.

/// Formats milliseconds with about four significant digits, and at most three decimal places.
pub(super) fn format_ms(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 10.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// Formats a number of bytes with a decimal unit, such as MB.
pub(super) fn format_bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}
