//! What a sink measures besides single numbers.

use serde::Deserialize;
use toml::Spanned;

/// Values over time, or by step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Series {
    /// Where the array lies: `/POINTER` into what the sink printed, `FILE` in the run's folder (a
    /// JSON array, or a value a line), or `FILE#/POINTER`.
    pub from: Spanned<String>,
    /// In each item, its place on the axis [default: `/t`, the first of a pair, or its number].
    pub t: Option<Spanned<String>>,
    /// In each item, its value [default: `/value`, the second of a pair, or the item].
    pub value: Option<Spanned<String>>,
    /// What values are multiplied by [default: 1].
    pub times: Option<Spanned<f64>>,
}

/// A distribution with counts, as HDR histograms keep it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Histogram {
    /// Where it lies, as in [`Series`]: a V2 histogram in base64, or an interval log with a tag.
    pub from: Spanned<String>,
    /// Of a log: intervals with this tag, `*` standing for any text.
    pub tag: Option<Spanned<String>>,
    /// What values are multiplied by [default: 1].
    pub times: Option<Spanned<f64>>,
}
