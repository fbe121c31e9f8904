//! Reads series and distributions from a sink's output and files.

mod histogram;
mod series;

use super::document::SinkSpec;
use super::histograms::{HistogramError, add_histogram, decode_histogram, encode_histogram};
use super::record::HistogramRecord;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Size limit of an output or a file, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// A series or distribution that cannot be collected.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {fault}")]
pub(crate) struct SinkResultError {
    name: String,
    fault: SinkResultFault,
}

/// The reason why a series or distribution cannot be collected.
#[derive(Debug, thiserror::Error)]
enum SinkResultFault {
    #[error("no array at {0}")]
    NoArray(String),
    #[error("no text at {0}")]
    NoText(String),
    #[error("no value at {0}")]
    NoValue(String),
    #[error("item {number} of {place} is no point: {item}")]
    NoPoint {
        number: usize,
        place: String,
        item: String,
    },
    #[error("item {number} of {place} is too large for a number; use another factor")]
    NotFinite { number: usize, place: String },
    #[error("{0} points, the limit is {max}", max = series::POINTS_MAX)]
    TooManyPoints(usize),
    #[error("line {number}: {source}")]
    Line {
        number: usize,
        source: serde_json::Error,
    },
    #[error("{0} is no JSON")]
    NoJson(String),
    #[error("cannot read {file}: {source}")]
    File {
        file: String,
        source: std::io::Error,
    },
    #[error("{0} is longer than {BYTES_MAX} bytes")]
    TooLong(String),
    #[error("series of several parts cannot be merged; measure it at one agent")]
    SeveralParts,
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}

/// Series and distributions of a sink.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeriesAndHistograms {
    /// Points (position and value) of each series, by name.
    pub(super) series: BTreeMap<String, Vec<[f64; 2]>>,
    /// Distributions, by name.
    pub(super) histograms: BTreeMap<String, HistogramRecord>,
}

impl SeriesAndHistograms {
    /// Reads the results of a sink that has exited.
    ///
    /// # Errors
    /// A result is invalid, or is not at the location that the document states.
    pub(super) fn read_results(
        sink: &SinkSpec,
        output: &Path,
    ) -> Result<SeriesAndHistograms, SinkResultError> {
        let files = SinkFiles { output };
        let mut found = SeriesAndHistograms::default();
        for (name, series) in &sink.series {
            let name = name.get_ref();
            let points = series::read_series(&files, series)
                .map_err(|fault| sink_result_error(name, fault))?;
            found.series.insert(name.clone(), points);
        }
        for (name, wanted) in &sink.histogram {
            let name = name.get_ref();
            let counted = histogram::read_histogram(&files, wanted)
                .map_err(|fault| sink_result_error(name, fault))?;
            found.histograms.insert(name.clone(), counted);
        }
        Ok(found)
    }

    /// Merges the results of another part by adding the counts of the histograms.
    ///
    /// # Errors
    /// Two parts have the same series, or histograms cannot be added.
    pub(super) fn merge(&mut self, other: &SeriesAndHistograms) -> Result<(), SinkResultError> {
        for (name, points) in &other.series {
            if self.series.insert(name.clone(), points.clone()).is_some() {
                return Err(sink_result_error(name, SinkResultFault::SeveralParts));
            }
        }
        for (name, counted) in &other.histograms {
            let joined = match self.histograms.get(name) {
                None => counted.clone(),
                Some(existing) => merge_histograms(existing, counted)
                    .map_err(|error| sink_result_error(name, error.into()))?,
            };
            self.histograms.insert(name.clone(), joined);
        }
        Ok(())
    }
}

fn sink_result_error(name: &str, fault: SinkResultFault) -> SinkResultError {
    SinkResultError {
        name: name.to_owned(),
        fault,
    }
}

/// Adds the counts of the same histogram in two parts.
fn merge_histograms(
    own: &HistogramRecord,
    other: &HistogramRecord,
) -> Result<HistogramRecord, HistogramError> {
    let mut sum = Some(decode_histogram(&own.v2)?);
    add_histogram(&mut sum, decode_histogram(&other.v2)?)?;
    Ok(HistogramRecord {
        v2: sum.as_ref().map_or(Ok(String::new()), encode_histogram)?,
        times: own.times,
    })
}

/// Splits a location (`/POINTER`, `FILE` or `FILE#/POINTER`) into its file and its JSON pointer.
pub(super) fn split_result_location(place: &str) -> (Option<&str>, Option<&str>) {
    match place.split_once('#') {
        _ if place.starts_with('/') => (None, Some(place)),
        Some((file, pointer)) => (Some(file), Some(pointer)),
        None => (Some(place), None),
    }
}

/// Returns the reason why a location is invalid; `None` if it is valid.
pub(super) fn find_location_fault(place: &str) -> Option<&'static str> {
    let (file, pointer) = split_result_location(place);
    let outside = |file: &str| file.is_empty() || file.split('/').any(|part| part == "..");
    if file.is_some_and(outside) {
        return Some(
            "invalid file; write a name within the run's folder, such as load.json#/summary",
        );
    }
    let rooted = |pointer: &str| pointer.is_empty() || pointer.starts_with('/');
    (!pointer.is_none_or(rooted)).then_some("invalid JSON pointer; write one such as /time/total")
}

/// The output of a sink, and the other files in its folder.
struct SinkFiles<'a> {
    output: &'a Path,
}

impl SinkFiles<'_> {
    /// Reads the file or output that a location names. Returns the text and the location's JSON
    /// pointer into the text.
    fn read_text<'p>(&self, place: &'p str) -> Result<(String, Option<&'p str>), SinkResultFault> {
        let (file, pointer) = split_result_location(place);
        let path = match file {
            None => self.output.to_owned(),
            Some(file) => self.output.with_file_name(file),
        };
        let shown = file.unwrap_or("the output").to_owned();
        let failed = |source| SinkResultFault::File {
            file: shown.clone(),
            source,
        };
        let mut text = String::new();
        let opened = std::fs::File::open(path).map_err(failed)?;
        let read = opened.take(BYTES_MAX + 1).read_to_string(&mut text);
        if read.map_err(failed)? as u64 > BYTES_MAX {
            return Err(SinkResultFault::TooLong(shown));
        }
        Ok((text, pointer))
    }

    /// Returns the value at a location. Parses the whole text as JSON and, if that fails, only its
    /// last line.
    fn read_json(&self, place: &str) -> Result<Value, SinkResultFault> {
        let (text, pointer) = self.read_text(place)?;
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        let mut json: Value = serde_json::from_str(&text)
            .or_else(|_| serde_json::from_str(last))
            .map_err(|_| {
                SinkResultFault::NoJson(
                    split_result_location(place)
                        .0
                        .unwrap_or("the output")
                        .to_owned(),
                )
            })?;
        let found = json.pointer_mut(pointer.unwrap_or_default());
        found
            .map(Value::take)
            .ok_or_else(|| SinkResultFault::NoValue(place.to_owned()))
    }
}

#[cfg(test)]
mod tests;
