//! Series and distributions that a sink measures.

use serde::Deserialize;
use toml::Spanned;

/// A source of values over time or by step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SeriesSource {
    /// Location of the array: `/POINTER` into the sink's output, `FILE` in the run's folder (a JSON
    /// array, or one value per line), or `FILE#/POINTER`.
    pub from: Spanned<String>,
    /// JSON pointer to the position on the axis, within each item [default: the first value of a
    /// pair, `/t`, or the index of the item].
    pub t: Option<Spanned<String>>,
    /// JSON pointer to the value, within each item [default: the second value of a pair, the item
    /// itself if it is a number, or `/value`].
    pub value: Option<Spanned<String>>,
    /// Factor of the values [default: 1].
    pub times: Option<Spanned<f64>>,
}

/// A source of an HDR histogram.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HistogramSource {
    /// Location, as in [`SeriesSource`]: a V2 histogram in base64, or an interval log with a tag.
    pub from: Spanned<String>,
    /// For a log: intervals with this tag; `*` matches any text.
    pub tag: Option<Spanned<String>>,
    /// Factor of the values [default: 1].
    pub times: Option<Spanned<f64>>,
}
