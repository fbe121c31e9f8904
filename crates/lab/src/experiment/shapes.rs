//! Series and distributions, out of what a sink printed and the files that it wrote.

mod histogram;
mod series;

use super::document::Sink;
use super::histograms::{add, decode, encode};
use super::record::Counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Most bytes of an output or file that are read.
const BYTES_MAX: u64 = 64 << 20;

/// What a sink measured besides single numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shapes {
    /// By name: place on the axis, and value.
    pub(super) series: BTreeMap<String, Vec<[f64; 2]>>,
    /// By name.
    pub(super) histograms: BTreeMap<String, Counted>,
}

impl Shapes {
    /// Those of a sink that has ended, after what it printed into this file.
    ///
    /// # Errors
    /// What is not where the document says.
    pub(super) fn find(sink: &Sink, output: &Path) -> Result<Shapes, String> {
        let said = Said { output };
        let mut found = Shapes::default();
        for (name, series) in &sink.series {
            let name = name.get_ref();
            let points = series::read(&said, series).map_err(|what| format!("{name}: {what}"))?;
            found.series.insert(name.clone(), points);
        }
        for (name, wanted) in &sink.histogram {
            let name = name.get_ref();
            let counted =
                histogram::read(&said, wanted).map_err(|what| format!("{name}: {what}"))?;
            found.histograms.insert(name.clone(), counted);
        }
        Ok(found)
    }

    /// With another part's: counts are added.
    ///
    /// # Errors
    /// That a series is of several parts, or counts do not add up.
    pub(super) fn join(&mut self, other: &Shapes) -> Result<(), String> {
        for (name, points) in &other.series {
            if self.series.insert(name.clone(), points.clone()).is_some() {
                return Err(format!(
                    "{name}: series of a sink in parts cannot be put together"
                ));
            }
        }
        for (name, counted) in &other.histograms {
            let joined = match self.histograms.get(name) {
                None => counted.clone(),
                Some(own) => {
                    let mut all = Some(decode(&own.v2)?);
                    add(&mut all, decode(&counted.v2)?)?;
                    let v2 = all.as_ref().map_or(Ok(String::new()), encode)?;
                    Counted {
                        v2,
                        times: own.times,
                    }
                }
            };
            self.histograms.insert(name.clone(), joined);
        }
        Ok(())
    }
}

/// A place, as written: `/POINTER`, `FILE` or `FILE#/POINTER`.
pub(super) fn parts(place: &str) -> (Option<&str>, Option<&str>) {
    match place.split_once('#') {
        _ if place.starts_with('/') => (None, Some(place)),
        Some((file, pointer)) => (Some(file), Some(pointer)),
        None => (Some(place), None),
    }
}

/// Why a place cannot be one.
pub(super) fn wrong_place(place: &str) -> Option<&'static str> {
    let (file, pointer) = parts(place);
    let outside = |file: &str| file.is_empty() || file.split('/').any(|part| part == "..");
    if file.is_some_and(outside) {
        return Some("a file lies in the run's folder: such as load.json#/summary");
    }
    let rooted = |pointer: &str| pointer.is_empty() || pointer.starts_with('/');
    (!pointer.is_none_or(rooted)).then_some("a place in JSON is a pointer, such as /time/total")
}

/// What a sink left behind.
struct Said<'a> {
    output: &'a Path,
}

impl Said<'_> {
    /// The text that a place lies in, and the pointer into it.
    fn text<'p>(&self, place: &'p str) -> Result<(String, Option<&'p str>), String> {
        let (file, pointer) = parts(place);
        let path = match file {
            None => self.output.to_owned(),
            Some(file) => self.output.with_file_name(file),
        };
        let shown = file.unwrap_or("what it printed");
        let failed = |error: std::io::Error| format!("{shown}: {error}");
        let mut text = String::new();
        let opened = std::fs::File::open(path).map_err(failed)?;
        let read = opened.take(BYTES_MAX + 1).read_to_string(&mut text);
        if read.map_err(failed)? as u64 > BYTES_MAX {
            return Err(format!("{shown} is longer than {BYTES_MAX} bytes"));
        }
        Ok((text, pointer))
    }

    /// The value at a place: in the whole text, or else in its last line.
    fn json(&self, place: &str) -> Result<Value, String> {
        let (text, pointer) = self.text(place)?;
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        let mut json: Value = serde_json::from_str(&text)
            .or_else(|_| serde_json::from_str(last))
            .map_err(|_| match parts(place).0 {
                None => "printed no JSON".to_owned(),
                Some(file) => format!("{file} is no JSON"),
            })?;
        let found = json.pointer_mut(pointer.unwrap_or_default());
        found
            .map(Value::take)
            .ok_or_else(|| format!("nothing at {place}"))
    }
}

#[cfg(test)]
mod tests;
