//! Presentation of results in a report.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// Label and unit of a quantity.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuantityLabel {
    /// Label that the report shows instead of the name.
    pub label: Option<String>,
    /// Unit, such as `s` or `Mb/s`.
    pub unit: Option<String>,
}

/// A plot of the report.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlotSpec {
    /// Kind of plot.
    pub kind: Spanned<PlotKind>,
    /// Title [default: derived from the quantities].
    pub title: Option<String>,
    /// One or several quantities.
    pub quantity: Spanned<Value>,
    /// Variables whose values are drawn as separate curves, bars or boxes of one panel. Arms that
    /// differ in other variables get their own panels [default: all variables].
    pub by: Option<Spanned<Value>>,
    /// For `fit`: the quantities or variables whose product is the x value. For `map`: the variable
    /// of the horizontal axis.
    pub x: Option<Spanned<Value>>,
    /// For `map`: the variable of the vertical axis.
    pub y: Option<Spanned<String>>,
    /// For `map`: values of variables that select the arms of the numerator.
    #[serde(default)]
    pub of: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// For `map`: values of variables that select the arms of the denominator.
    #[serde(default)]
    pub to: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Restricts the plot to arms with these values of variables.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// For `fit`: whether to detect the knee and to fit only the points before the knee. The knee
    /// is the first point at which y is below 98 % of x. The units of x and y must be the same.
    #[serde(default)]
    pub knee: bool,
    /// For `fit` with a knee: a quantity that measures the latency tail. An earlier point is the
    /// knee if this quantity there exceeds three times its value at the first point.
    pub tail: Option<Spanned<String>>,
    /// Whether the value axis is logarithmic.
    #[serde(default)]
    pub log: bool,
}

/// The kind of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Series over time, with the mean, minimum and maximum of the rounds.
    Time,
    /// Medians with 95 % confidence intervals.
    Bars,
    /// Box plot of the quartiles, with a point for every value.
    Box,
    /// Empirical distribution function.
    Ecdf,
    /// Values of a histogram by percentile. The percentile axis is logarithmic, so that 90 %, 99 %
    /// and 99.9 % are equally far apart.
    Percentiles,
    /// Heat map of the ratio of two arms. The axes are two variables.
    Map,
    /// Linear fit with residuals.
    Fit,
}

/// Returns the names in a value, which is either one name or a list of names. Returns `None` for
/// any other value.
pub fn as_name_list(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(all) if !all.is_empty() => all.iter().map(Value::as_str).collect(),
        _ => None,
    }
}
