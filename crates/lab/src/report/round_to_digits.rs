//! Rounds the figures of reports.

/// Rounds to five significant digits to keep pages small.
pub(super) fn round_to_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let factor = 10f64.powf(4.0 - value.abs().log10().floor());
    match factor.is_finite() && factor > 0.0 {
        true => (value * factor).round() / factor,
        false => value,
    }
}
