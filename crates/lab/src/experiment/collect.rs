//! One run's record, from what was measured.

use super::Record;
use super::document::Document;
use super::measure::Measured;
use super::quantity::Quantity;
use super::shapes::Shapes;

/// Puts together what each part has measured; parts are agents, or this machine alone.
///
/// # Errors
/// The sink and the quantity that cannot be had.
pub(crate) fn collect(
    document: &Document,
    parts: &[Measured],
    record: &mut Record,
) -> Result<(), String> {
    let mut shapes = Shapes::default();
    for part in parts {
        shapes.join(&part.shapes)?;
        record.noise = record.noise.worst(part.noise);
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
        let value = Quantity::read(text.get_ref()).and_then(|quantity| quantity.value(&found));
        let value =
            value.map_err(|what| format!("sink {}: {}: {what}", sink.get_ref(), name.get_ref()))?;
        record.values.insert(name.get_ref().clone(), value);
    }
    Ok(())
}
