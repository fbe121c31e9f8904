//! Presentation of results in a report.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// Label and unit of a quantity.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuantityLabel {
    /// Replaces the name.
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
    /// Title [default: from the quantities].
    pub title: Option<String>,
    /// One or several quantities.
    pub quantity: Spanned<Value>,
    /// Variables whose values share a panel as curves, bars or boxes. Arms that differ in other
    /// variables get their own panels [default: all variables].
    pub by: Option<Spanned<Value>>,
    /// For `fit`: quantities or variables whose product is x. For `map`: the horizontal variable.
    pub x: Option<Spanned<Value>>,
    /// For `map`: the vertical variable.
    pub y: Option<Spanned<String>>,
    /// For `map`: values of variables that select the arms of the numerator
    #[serde(default)]
    pub of: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// For `map`: values of variables that select the arms of the denominator.
    #[serde(default)]
    pub to: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Restricts the plot to these values of variables.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// For `fit`: detect the knee (y falls below 98 % of x, in the same unit), and fit only the
    /// points before it.
    #[serde(default)]
    pub knee: bool,
    /// For `fit` with a knee: a quantity for the latency tail. A point where it exceeds three times
    /// its first value is also beyond the knee.
    pub tail: Option<Spanned<String>>,
    /// Logarithmic value axis.
    #[serde(default)]
    pub log: bool,
}

/// The kind of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Series: the mean of the rounds, with minimum and maximum.
    Time,
    /// Means with confidence intervals.
    Bars,
    /// Quartiles and every value.
    Box,
    /// Empirical distribution function.
    Ecdf,
    /// Histograms by percentile. The percentile axis is logarithmic: 90 %, 99 % and 99.9 % are
    /// equally far apart.
    Percentiles,
    /// Heat map: the ratio of two arms, by two variables.
    Map,
    /// Linear fit with residuals.
    Fit,
}

/// Returns one name or a list of names; `None` for other values.
pub fn list_names(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(all) if !all.is_empty() => all.iter().map(Value::as_str).collect(),
        _ => None,
    }
}
