//! Divides the arms of a plot among its panels.

use super::super::arms::describe_arm;
use super::super::record_index::{RecordIndex, arm_has_values};
use super::plot_requests::PlotRequest;
use crate::experiment::Arm;

/// Maximum number of points of a curve.
pub(super) const POINTS_MAX: usize = 200;

/// The arms of one panel with their names.
pub(super) struct PanelArms<'a> {
    /// Values of the variables that all arms of the panel share.
    pub(super) cell: Arm,
    pub(super) arms: Vec<(String, &'a Arm)>,
}

/// Groups the arms of a plot into panels. Arms in the same panel differ only in the variables in
/// `by`.
pub(super) fn group_arms_by_panel<'a>(
    wanted: &PlotRequest,
    runs: &'a RecordIndex<'_>,
) -> Vec<PanelArms<'a>> {
    let mut found: Vec<PanelArms<'a>> = Vec::new();
    for arm in runs.arms().filter(|arm| arm_has_values(arm, &wanted.only)) {
        let (mut cell, mut own) = (arm.clone(), arm.clone());
        cell.retain(|name, _| !wanted.by.contains(name));
        own.retain(|name, _| wanted.by.contains(name));
        let name = match own.len() {
            1 => own.values().cloned().collect(),
            _ => describe_arm(&own),
        };
        match found.iter_mut().find(|panel| panel.cell == cell) {
            Some(panel) => panel.arms.push((name, arm)),
            None => found.push(PanelArms {
                cell,
                arms: vec![(name, arm)],
            }),
        }
    }
    found
}

/// Returns the title of a panel. The title consists of the quantity, if `quantity` is given, and of
/// the values that the arms share.
pub(super) fn panel_title(cell: &Arm, quantity: Option<&str>) -> String {
    let shared = if cell.is_empty() {
        String::new()
    } else {
        describe_arm(cell)
    };
    match quantity {
        Some(quantity) if shared.is_empty() => quantity.to_owned(),
        Some(quantity) => format!("{quantity} · {shared}"),
        None => shared,
    }
}
