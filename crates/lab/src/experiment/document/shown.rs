//! How a report shows what was measured.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// How a quantity is called, and in what it is counted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Quantity {
    /// Instead of its name.
    pub label: Option<String>,
    /// Such as `s` or `Mb/s`.
    pub unit: Option<String>,
}

/// A plot of the report.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plot {
    /// Which kind.
    pub kind: Spanned<Kind>,
    /// Above it [default: from the quantities].
    pub title: Option<String>,
    /// What is shown: a name, or several.
    pub quantity: Spanned<Value>,
    /// Variables whose values are curves, bars or boxes beside each other; arms that differ in
    /// another one go into panels of their own [default: all variables].
    pub by: Option<Spanned<Value>>,
    /// Of `fit`: quantities or variables whose product is x. Of `map`: the variable across.
    pub x: Option<Spanned<Value>>,
    /// Of `map`: the variable down.
    pub y: Option<Spanned<String>>,
    /// Of `map`: values of variables; these arms …
    #[serde(default)]
    pub of: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// … are divided by these.
    #[serde(default)]
    pub to: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Only where variables have these values.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Of `fit`: look for the knee (y below 98 % of x, in the same unit), and fit below it.
    #[serde(default)]
    pub knee: bool,
    /// Of `fit` with a knee: a tail of the latency, three times the first of which is beyond it too.
    pub tail: Option<Spanned<String>>,
    /// Values on a logarithmic axis.
    #[serde(default)]
    pub log: bool,
}

/// What a plot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Series, the mean of rounds with the least and the greatest.
    Time,
    /// Means with intervals.
    Bars,
    /// Every value, quartiles.
    Box,
    /// The share of values within a value.
    Ecdf,
    /// Histograms, by nines.
    Percentiles,
    /// The ratio of arms over two variables.
    Map,
    /// A straight line, with what it leaves.
    Fit,
}

/// The texts of a name or of several; none where it is neither.
pub fn names(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(all) if !all.is_empty() => all.iter().map(Value::as_str).collect(),
        _ => None,
    }
}
