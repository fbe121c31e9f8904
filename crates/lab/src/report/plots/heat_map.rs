//! Plots heat maps of ratios over two variables.

use super::super::arms::describe_arm;
use super::super::record_index::{RecordIndex, arm_has_values};
use super::super::table::{ReportTable, format_interval_or_range, format_number};
use super::panel_arms::panel_title;
use super::plot_requests::PlotRequest;
use super::{HeatMapCell, HeatMapRow, PanelContent, PlotPanel};
use crate::experiment::Arm;

pub(super) fn heat_map_panels(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
) -> (&'static str, Vec<PlotPanel>) {
    let mut found: Vec<PlotPanel> = Vec::new();
    let Some(x) = wanted.x.first() else {
        return ("", found);
    };
    let several = wanted.quantities.len() > 1;
    let of = |arm: &&Arm| arm_has_values(arm, &wanted.of) && arm_has_values(arm, &wanted.only);
    let arms: Vec<&Arm> = runs.arms().filter(of).collect();
    let rest = |arm: &Arm| -> Arm {
        let mut rest = arm.clone();
        rest.retain(|name, _| name != x && *name != wanted.y && !wanted.of.contains_key(name));
        rest
    };
    let mut cells: Vec<Arm> = arms.iter().map(|arm| rest(arm)).collect();
    let mut seen: Vec<Arm> = Vec::new();
    cells.retain(|cell| {
        !seen.contains(cell) && {
            seen.push(cell.clone());
            true
        }
    });
    for quantity in &wanted.quantities {
        for cell in &cells {
            let inside: Vec<&Arm> = arms
                .iter()
                .copied()
                .filter(|arm| rest(arm) == *cell)
                .collect();
            let label = runs.quantity_display_name(quantity);
            let title = panel_title(cell, several.then_some(label.as_str()));
            found.extend(heat_map_panel(wanted, runs, quantity, x, &inside, title));
        }
    }
    (
        "Each cell is the median of the rounds' ratios, with its 95 % interval, or the range of fewer than six rounds. Cells are faint if their interval contains 1 or is missing.",
        found,
    )
}

fn heat_map_panel(
    wanted: &PlotRequest,
    runs: &RecordIndex<'_>,
    quantity: &str,
    x: &str,
    arms: &[&Arm],
    title: String,
) -> Option<PlotPanel> {
    let values = |name: &str| {
        let mut all: Vec<String> = Vec::new();
        for value in arms.iter().filter_map(|arm| arm.get(name)) {
            if !all.contains(value) {
                all.push(value.clone());
            }
        }
        all
    };
    let (columns, downs) = (values(x), values(&wanted.y));
    let mut table = ReportTable::new([
        "",
        "median ratio",
        "95 % interval",
        "geometric mean",
        "ratio of means",
        "rounds",
    ]);
    let mut cell = |across: &String, down: &String| {
        let at = |arm: &&&Arm| arm.get(x) == Some(across) && arm.get(&wanted.y) == Some(down);
        let arm = arms.iter().find(at)?;
        let mut other = (*arm).clone();
        other.extend(wanted.to.clone());
        let (n, ratio) = runs.ratio(arm, &other, quantity)?;
        let interval = ratio.interval.map(super::super::arms::interval_as_pair);
        table.rows.push(vec![
            describe_arm(arm),
            format_number(ratio.median),
            format_interval_or_range(interval, n, ratio.range()),
            ratio.geometric.map_or("–".into(), format_number),
            format_number(ratio.of_means),
            n.to_string(),
        ]);
        Some(HeatMapCell {
            ratio: ratio.median,
            interval,
            range: ratio.range(),
            n,
        })
    };
    let rows = downs.iter().map(|down| HeatMapRow {
        name: down.clone(),
        cells: columns.iter().map(|across| cell(across, down)).collect(),
    });
    let rows: Vec<HeatMapRow> = rows.collect();
    let any = rows.iter().any(|row| row.cells.iter().any(Option::is_some));
    let titled = format!(
        "{} ÷ {}",
        describe_arm(&wanted.of),
        describe_arm(&wanted.to)
    );
    any.then(|| PlotPanel {
        title: if title.is_empty() {
            titled
        } else {
            format!("{titled} · {title}")
        },
        shape: PanelContent::Cells {
            x: x.to_owned(),
            y: wanted.y.clone(),
            columns,
            rows,
        },
        table,
    })
}
