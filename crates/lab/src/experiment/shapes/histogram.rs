//! Distributions with counts: HDR histograms, alone or in interval logs.

use super::Said;
use crate::experiment::document::Histogram as Wanted;
use crate::experiment::histograms::{add, decode, encode, matches};
use crate::experiment::record::Counted;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn read(said: &Said<'_>, wanted: &Wanted) -> Result<Counted, String> {
    let place = wanted.from.get_ref();
    let text = match super::parts(place) {
        (Some(_), None) => said.text(place)?.0,
        _ => match said.json(place)? {
            Value::String(text) => text,
            _ => return Err(format!("no text at {place}")),
        },
    };
    let tag = wanted.tag.as_ref().map(|tag| tag.get_ref().as_str());
    // A log begins with a comment, or the first of its lines; base64 has neither.
    let all = match text.trim().contains(['#', ',']) {
        true => log(text.as_bytes(), tag)?,
        false => decode(text.trim())?,
    };
    Ok(Counted {
        v2: encode(&all)?,
        times: wanted.times.as_ref().map_or(1.0, |times| *times.get_ref()),
    })
}

/// All intervals together that have the tag.
fn log(text: &[u8], tag: Option<&str>) -> Result<Histogram<u64>, String> {
    let mut all = None;
    let mut tags = BTreeSet::new();
    for entry in IntervalLogIterator::new(text) {
        let entry = entry.map_err(|error| format!("no HDR interval log: {error:?}"))?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        let own = interval.tag().map_or("", |tag| tag.as_str());
        tags.insert(own.to_owned());
        if tag.is_none_or(|tag| matches(tag, own)) {
            add(&mut all, decode(interval.encoded_histogram())?)?;
        }
    }
    match (all, tag) {
        (Some(_), None) if tags.len() > 1 => Err(format!(
            "the log has several tags: say tag = one of {tags:?}, or a pattern"
        )),
        (Some(all), _) => Ok(all),
        (None, _) => Err(format!("the log has no such tag, but {tags:?}")),
    }
}
