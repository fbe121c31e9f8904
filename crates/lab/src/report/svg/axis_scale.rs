//! Scales and ticks of plot axes.

use super::super::plots::PlotAxis;
use super::super::table::format_number;

/// Approximate number of ticks of a linear axis.
const TICKS: f64 = 5.0;

/// Positions of the labelled percentiles, as `log10(1 / (1 - share))`. The first labels are 0 %, 50
/// % and 90 %, and each further label adds a nine.
const NINES: [f64; 7] = [0.0, std::f64::consts::LOG10_2, 1.0, 2.0, 3.0, 4.0, 5.0];

/// Maps values to positions in the image.
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    log: bool,
    nines: bool,
    ends: [f64; 2],
}

impl AxisScale {
    /// Creates a scale that covers all values, except values that the axis cannot show.
    pub(super) fn new(
        axis: &PlotAxis,
        values: impl Iterator<Item = f64>,
        ends: [f64; 2],
    ) -> AxisScale {
        let shown = values.filter(|value| value.is_finite() && (!axis.log || *value > 0.0));
        let shown = shown.map(|value| if axis.log { value.log10() } else { value });
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in shown {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if low == high {
            (low, high) = (low - 0.5, high + 0.5);
        }
        AxisScale {
            low,
            high,
            log: axis.log,
            nines: axis.nines,
            ends,
        }
    }

    /// Returns the position of a value. Returns `None` if the axis cannot show the value.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        let [from, to] = self.ends;
        share.is_finite().then_some(from + share * (to - from))
    }

    /// Returns the positions of all values. Returns `None` if the axis cannot show one of the
    /// values.
    pub(super) fn positions<const N: usize>(&self, values: [f64; N]) -> Option<[f64; N]> {
        let positions = values.map(|value| self.position(value));
        positions
            .iter()
            .all(Option::is_some)
            .then(|| positions.map(Option::unwrap_or_default))
    }

    /// Returns round numbers within the axis, with their positions.
    pub(super) fn ticks(&self) -> Vec<(f64, f64)> {
        let values: Vec<f64> = match (self.nines, self.log) {
            (true, _) => NINES.into(),
            // Uses powers of ten if the axis spans at least a factor of ten, and otherwise other
            // round numbers.
            (false, true) if self.high - self.low >= 1.0 => {
                let decades = self.low.ceil() as i32..=self.high.floor() as i32;
                decades.map(|decade| 10f64.powi(decade)).collect()
            }
            (false, true) => list_round_numbers(10f64.powf(self.low), 10f64.powf(self.high)),
            (false, false) => list_round_numbers(self.low, self.high),
        };
        let [from, to] = self.ends;
        let inside = |position: &f64| (from.min(to)..=from.max(to)).contains(position);
        let placed = values
            .into_iter()
            .filter_map(|value| Some((value, self.position(value).filter(inside)?)));
        placed.collect()
    }
}

fn list_round_numbers(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors.into_iter().find(|factor| factor * power >= rough);
    let step = factor.unwrap_or(10.0) * power;
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first).clamp(0.0, 20.0) as u32;
    let values = (0..=count).map(|n| (first + f64::from(n)) * step);
    values.collect()
}

/// Returns the label of a tick.
pub(super) fn tick_label(value: f64, axis: &PlotAxis) -> String {
    if axis.nines {
        let percent = format!("{:.4}", 100.0 * (1.0 - 10f64.powf(-value)));
        return trim_zeros(&percent).to_owned() + " %";
    }
    match value.abs() {
        size if size >= 1e6 => format!("{value:.0e}"),
        // Shows a tick near zero as zero, because it differs from zero only by a rounding error.
        size if size < 1e-9 => "0".into(),
        _ => trim_zeros(&format_number(value)).to_owned(),
    }
}

fn trim_zeros(text: &str) -> &str {
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside_the_axis() {
        let ticks = |values: [f64; 2], log| {
            let axis = PlotAxis {
                log,
                ..PlotAxis::default()
            };
            let scale = AxisScale::new(&axis, values.into_iter(), [0.0, 100.0]);
            let labels = scale.ticks().into_iter();
            labels
                .map(|(value, _)| tick_label(value, &axis))
                .collect::<Vec<_>>()
        };
        assert_eq!(ticks([0.0, 10.0], false), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(ticks([0.5, 2000.0], true), ["1", "10", "100", "1000"]);
        assert_eq!(ticks([1.0, 3.0], true), ["1", "1.5", "2", "2.5", "3"]);
        assert!(!ticks([7.0, 7.0], false).is_empty());
    }
}
