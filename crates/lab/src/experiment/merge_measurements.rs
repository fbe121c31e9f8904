//! Builds the record of a run from its measurements.

use super::RunRecord;
use super::document::ExperimentDocument;
use super::quantity::{QuantityError, QuantityLocator};
use super::run_error::RunError;
use super::run_sinks::PartMeasurements;
use super::series_and_histograms::SeriesAndHistograms;

/// Merges the measurements of all parts into the record. Without agents, the measurement of this
/// machine is the only part.
///
/// # Errors
/// A quantity has no value, or the parts cannot be merged.
pub(crate) fn merge_measurements(
    document: &ExperimentDocument,
    parts: &[PartMeasurements],
    record: &mut RunRecord,
) -> Result<(), RunError> {
    let mut shapes = SeriesAndHistograms::default();
    for part in parts {
        shapes.merge(&part.shapes)?;
        record.noise = record.noise.combine_worst(part.noise);
        record.link_late_us.extend(part.link_late_us.clone());
        let links = part.links.iter();
        let links = links.map(|(name, count)| (name.clone(), *count as f64));
        record.values.extend(links);
        for (sink, late_ms) in &part.late_ms {
            let worst = record.sink_late_ms.entry(sink.clone()).or_default();
            *worst = worst.max(*late_ms);
        }
    }
    record.series = shapes.series;
    record.histograms = shapes.histograms;
    let sinks = document.sink.iter();
    let all = sinks.flat_map(|(name, sink)| sink.measure.iter().map(move |m| (name, m)));
    for (sink, (name, text)) in all {
        let found = parts
            .iter()
            .filter_map(|part| part.found.get(name.get_ref()).cloned());
        let found: Vec<_> = found.collect();
        let quantity = QuantityLocator::parse_locator(text.get_ref()).map_err(QuantityError::from);
        let value = quantity.and_then(|quantity| quantity.merge_if_enough_samples(&found));
        let value = value.map_err(|source| RunError::QuantityLocator {
            sink: sink.get_ref().clone(),
            quantity: name.get_ref().clone(),
            source,
        })?;
        let measured = value.map(|value| (name.get_ref().clone(), value));
        record.values.extend(measured);
    }
    Ok(())
}
