//! Series and distributions that a sink measures.

use serde::Deserialize;
use toml::Spanned;

/// The source of a series, which is a list of values over time or by step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SeriesSource {
    /// Location of the array. `/POINTER` points into the sink's output. `FILE` is a file in the
    /// run's folder that contains a JSON array, or one JSON value per line. `FILE#/POINTER` points
    /// into such a file.
    pub from: Spanned<String>,
    /// JSON pointer to the position on the x axis, within each item [default: the first value of a
    /// pair, `/t`, or the index of the item].
    pub t: Option<Spanned<String>>,
    /// JSON pointer to the value, within each item [default: the second value of a pair, the item
    /// itself if it is a number, or `/value`].
    pub value: Option<Spanned<String>>,
    /// Factor by which the values are multiplied [default: 1].
    pub times: Option<Spanned<f64>>,
}

/// The source of an HDR histogram.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HistogramSource {
    /// Location, in the syntax of [`SeriesSource`]. It contains a V2 histogram in base64, or an
    /// interval log.
    pub from: Spanned<String>,
    /// For an interval log: the tag of the intervals to add up; `*` matches any text.
    pub tag: Option<Spanned<String>>,
    /// Factor by which the values are multiplied [default: 1].
    pub times: Option<Spanned<f64>>,
}
