//! Reads distributions, which are HDR histograms, either alone or in interval logs.

use super::{SinkFiles, SinkResultFault};
use crate::experiment::document::HistogramSource as Wanted;
use crate::experiment::histograms::{decode_histogram, encode_histogram, sum_log_histograms};
use crate::experiment::record::HistogramRecord;
use serde_json::Value;

pub(super) fn read_histogram(
    files: &SinkFiles<'_>,
    wanted: &Wanted,
) -> Result<HistogramRecord, SinkResultFault> {
    let place = wanted.from.get_ref();
    let text = match super::split_result_location(place) {
        (Some(_), None) => files.read_text(place)?.0,
        _ => match files.read_json(place)? {
            Value::String(text) => text,
            _ => return Err(SinkResultFault::NoText(place.clone())),
        },
    };
    let tag = wanted.tag.as_ref().map(|tag| tag.get_ref().as_str());
    // An interval log contains comments (`#`) or commas. A histogram in base64 contains neither.
    let all = match text.trim().contains(['#', ',']) {
        true => sum_log_histograms(text.as_bytes(), tag)?,
        false => decode_histogram(text.trim())?,
    };
    Ok(HistogramRecord {
        v2: encode_histogram(&all)?,
        times: wanted.times.as_ref().map_or(1.0, |times| *times.get_ref()),
    })
}
