//! Plots bars of medians, and boxes of all values.

use super::super::arms::QuantitySummary;
use super::super::record_index::RecordIndex;
use super::super::round_to_digits::round_to_digits;
use super::super::table::{ReportTable, format_number, format_percent};
use super::panel_arms::{PanelArms, group_arms_by_panel, panel_title};
use super::plot_requests::PlotRequest;
use super::{BarSeries, PanelContent, PlotAxis, PlotPanel, QuartileBox};

/// Explanation of bar plots in the report.
pub(in crate::report) const MEDIANS_ABOUT: &str = "Medians of the rounds. A line spans the 95 % interval of the median, or the range of all rounds if \
     there are fewer than six.";

/// Draws bar plots, in which several quantities share a panel.
pub(super) fn bar_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let panel = |together: PanelArms<'_>| {
        let mut table = ReportTable::new([
            "arm",
            "quantity",
            "rounds",
            "median",
            "95 % interval",
            "spread",
        ]);
        let mut any = false;
        let groups = wanted.quantities.iter().map(|quantity| {
            let values = together.arms.iter().map(|(name, arm)| {
                let sample = QuantitySummary::from_values(&runs.values(arm, quantity))?;
                table.rows.push(vec![
                    name.clone(),
                    runs.quantity_axis_title(quantity),
                    sample.n.to_string(),
                    format_number(sample.median),
                    sample.format_interval(),
                    sample.spread.map_or("–".into(), format_percent),
                ]);
                any = true;
                Some(sample.as_error_bar())
            });
            BarSeries {
                values: values.collect(),
                name: runs.quantity_display_name(quantity),
            }
        });
        let groups = groups.collect();
        let [first, ..] = wanted.quantities.as_slice() else {
            return None;
        };
        let shape = PanelContent::Bars {
            y: PlotAxis {
                label: runs.quantity_axis_title(first),
                log: wanted.log,
                ..PlotAxis::default()
            },
            names: together.arms.iter().map(|(name, _)| name.clone()).collect(),
            groups,
        };
        any.then(|| PlotPanel {
            title: panel_title(&together.cell, None),
            shape,
            table,
        })
    };
    (
        MEDIANS_ABOUT,
        group_arms_by_panel(wanted, runs)
            .into_iter()
            .filter_map(panel)
            .collect(),
    )
}

/// Draws box plots, in which each quantity has its own panels.
pub(super) fn box_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in group_arms_by_panel(wanted, runs) {
            let head = ["arm", "rounds", "min", "25 %", "median", "75 %", "max"];
            let mut table = ReportTable::new(head);
            let each = together.arms.iter().filter_map(|(name, arm)| {
                let values = runs.values(arm, quantity);
                if values.is_empty() {
                    return None;
                }
                let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| stats::quantile(&values, q));
                let cells = [name.clone(), values.len().to_string()];
                table.rows.push(
                    cells
                        .into_iter()
                        .chain(quartiles.map(format_number))
                        .collect(),
                );
                Some(QuartileBox {
                    name: name.clone(),
                    values: values.into_iter().map(round_to_digits).collect(),
                    quartiles: quartiles.map(round_to_digits),
                })
            });
            let boxes: Vec<QuartileBox> = each.collect();
            let label = runs.quantity_axis_title(quantity);
            if !boxes.is_empty() {
                found.push(PlotPanel {
                    title: panel_title(&together.cell, several.then_some(label.as_str())),
                    shape: PanelContent::Boxes {
                        y: PlotAxis {
                            label,
                            log: wanted.log,
                            ..PlotAxis::default()
                        },
                        boxes,
                    },
                    table,
                });
            }
        }
    }
    (
        "One point per run. The box spans the quartiles, and its line is the median.",
        found,
    )
}
