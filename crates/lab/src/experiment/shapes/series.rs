//! Values over time.

use super::Said;
use crate::experiment::document::Series;
use serde_json::Value;

/// Most points of a series.
const POINTS_MAX: usize = 20_000;

pub(super) fn read(said: &Said<'_>, series: &Series) -> Result<Vec<[f64; 2]>, String> {
    let place = series.from.get_ref();
    let items = match super::parts(place) {
        (Some(_), None) => lines(&said.text(place)?.0)?,
        _ => match said.json(place)? {
            Value::Array(items) => items,
            _ => return Err(format!("no array at {place}")),
        },
    };
    if items.len() > POINTS_MAX {
        let n = items.len();
        return Err(format!("{n} points; at most {POINTS_MAX}"));
    }
    let points = items.iter().enumerate().map(|(number, item)| {
        point(number, item, series)
            .ok_or_else(|| format!("item {number} of {place} is no point: {item:.80}"))
    });
    points.collect()
}

/// A JSON array, or a value a line.
fn lines(text: &str) -> Result<Vec<Value>, String> {
    if let Ok(Value::Array(items)) = serde_json::from_str(text) {
        return Ok(items);
    }
    let filled = text.lines().enumerate();
    let filled = filled.filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
    };
    filled.map(read).collect()
}

fn point(number: usize, item: &Value, series: &Series) -> Option<[f64; 2]> {
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
