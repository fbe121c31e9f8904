//! Plots the medians of all compared folders for each quantity.

use super::compare::{ComparedQuantity, FolderComparison};
use super::plots::{
    BarSeries, MEDIANS_ABOUT, PANELS_MAX, PanelContent, PlotAxis, PlotData, PlotPanel,
};
use super::quantity_names::{axis_title, describe_quantity_name};
use super::table::ReportTable;
use crate::experiment::Arm;

/// If the ratio of the largest to the smallest value exceeds this limit, the axis is logarithmic.
const LOG_AXIS_RATIO: f64 = 30.0;

/// Draws a panel for each quantity.
pub(super) fn plot_comparison(comparison: &FolderComparison) -> PlotData {
    let mut quantities: Vec<&String> = Vec::new();
    for row in &comparison.rows {
        if !quantities.contains(&&row.quantity) {
            quantities.push(&row.quantity);
        }
    }
    let mut about = MEDIANS_ABOUT.to_owned();
    if let Some(more) = quantities.len().checked_sub(PANELS_MAX).filter(|n| *n > 0) {
        about += &format!(" The table contains {more} more quantities.");
        quantities.truncate(PANELS_MAX);
    }
    PlotData {
        title: "Comparison".into(),
        about,
        panels: quantities
            .into_iter()
            .map(|quantity| quantity_panel(comparison, quantity))
            .collect(),
    }
}

fn quantity_panel(comparison: &FolderComparison, quantity: &str) -> PlotPanel {
    let of = |row: &&ComparedQuantity| row.quantity == quantity;
    let rows: Vec<&ComparedQuantity> = comparison.rows.iter().filter(of).collect();
    let group = |(number, folder): (usize, &String)| BarSeries {
        name: folder.clone(),
        values: rows
            .iter()
            .map(|row| median_of_folder(row, number))
            .collect(),
    };
    let groups: Vec<BarSeries> = comparison.folders.iter().enumerate().map(group).collect();
    let all = || {
        groups
            .iter()
            .flat_map(|group| group.values.iter().flatten())
    };
    let least = all().map(|value| value[1]).fold(f64::INFINITY, f64::min);
    let greatest = all().map(|value| value[2]).fold(0.0, f64::max);
    let (words, unit) = describe_quantity_name(quantity);
    PlotPanel {
        title: quantity.to_owned(),
        shape: PanelContent::Bars {
            y: PlotAxis {
                label: axis_title(&words, unit.as_deref()),
                log: least > 0.0 && greatest / least > LOG_AXIS_RATIO,
                ..PlotAxis::default()
            },
            names: short_arm_names(&rows),
            groups,
        },
        // Leaves this table empty, because the page has one table for all quantities.
        table: ReportTable::new([""; 0]),
    }
}

fn median_of_folder(row: &ComparedQuantity, folder: usize) -> Option<[f64; 3]> {
    let sample = row.samples.get(folder)?.as_ref()?;
    Some(sample.as_error_bar())
}

/// Names each arm by the values of the variables that differ between the arms.
fn short_arm_names(rows: &[&ComparedQuantity]) -> Vec<String> {
    let differs = |name: &String| {
        let first = rows.first().and_then(|row| row.arm.get(name));
        rows.iter().any(|row| row.arm.get(name) != first)
    };
    let short = |row: &&ComparedQuantity| {
        let mut arm: Arm = row.arm.clone();
        arm.retain(|name, _| differs(name));
        arm.into_values().collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(short).collect()
}
