//! Reads the time series in the results of a sink.

use super::{SinkFiles, SinkResultFault};
use crate::experiment::document::SeriesSource;
use serde_json::Value;

/// Maximum number of points of a series.
pub(super) const POINTS_MAX: usize = 20_000;

pub(super) fn read_series(
    files: &SinkFiles<'_>,
    series: &SeriesSource,
) -> Result<Vec<[f64; 2]>, SinkResultFault> {
    let place = series.from.get_ref();
    let items = match super::split_result_location(place) {
        (Some(_), None) => parse_series_items(&files.read_text(place)?.0)?,
        _ => match files.read_json(place)? {
            Value::Array(items) => items,
            _ => return Err(SinkResultFault::NoArray(place.clone())),
        },
    };
    if items.len() > POINTS_MAX {
        return Err(SinkResultFault::TooManyPoints(items.len()));
    }
    let points = items.iter().enumerate().map(|(number, item)| {
        let point = parse_point(number, item, series).ok_or_else(|| SinkResultFault::NoPoint {
            number,
            place: place.clone(),
            item: format!("{item:.80}"),
        })?;
        // JSON has no infinite numbers. A record with such a number could not be read back.
        match point.iter().all(|number| number.is_finite()) {
            true => Ok(point),
            false => Err(SinkResultFault::NotFinite {
                number,
                place: place.clone(),
            }),
        }
    });
    points.collect()
}

/// Parses a JSON array, or one JSON value per line.
fn parse_series_items(text: &str) -> Result<Vec<Value>, SinkResultFault> {
    if let Ok(Value::Array(items)) = serde_json::from_str(text) {
        return Ok(items);
    }
    let filled = text.lines().enumerate();
    let filled = filled.filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|source| SinkResultFault::Line {
            number: number + 1,
            source,
        })
    };
    filled.map(read).collect()
}

fn parse_point(number: usize, item: &Value, series: &SeriesSource) -> Option<[f64; 2]> {
    let at = |pointer: &str| item.pointer(pointer)?.as_f64();
    let pair = item.as_array().filter(|pair| pair.len() == 2);
    let t = match &series.t {
        Some(pointer) => at(pointer.get_ref())?,
        None if pair.is_some() => at("/0")?,
        None => at("/t").unwrap_or(number as f64),
    };
    let value = match &series.value {
        Some(pointer) => at(pointer.get_ref())?,
        None if pair.is_some() => at("/1")?,
        None => item.as_f64().or_else(|| at("/value"))?,
    };
    let times = series.times.as_ref().map_or(1.0, |times| *times.get_ref());
    Some([t, value * times])
}
