//! Means with intervals, and boxes with every value.

use super::super::arms::Sample;
use super::super::runs::Runs;
use super::super::table::{Table, number, percent, range};
use super::wanted::Wanted;
use super::{Axis, Group, OneBox, Panel, Shape, Together, neat, panels, title};

/// Bars of several quantities stand beside each other.
pub(super) fn bars(wanted: &Wanted, runs: &Runs<'_>, seed: u64) -> (&'static str, Vec<Panel>) {
    let panel = |together: Together<'_>| {
        let mut table = Table::new(["arm", "quantity", "rounds", "mean", "95 %", "spread"]);
        let mut any = false;
        let groups = wanted.quantities.iter().map(|quantity| {
            let values = together.arms.iter().map(|(name, arm)| {
                let sample = Sample::of(&runs.values(arm, quantity), seed)?;
                table.rows.push(vec![
                    name.clone(),
                    runs.with_unit(quantity),
                    sample.n.to_string(),
                    number(sample.mean),
                    range(sample.interval),
                    sample.spread.map_or("–".into(), percent),
                ]);
                any = true;
                let [low, high] = sample.interval.unwrap_or([sample.mean; 2]);
                Some([sample.mean, low, high].map(neat))
            });
            Group {
                values: values.collect(),
                name: runs.label(quantity),
            }
        });
        let groups = groups.collect();
        let [first, ..] = wanted.quantities.as_slice() else {
            return None;
        };
        let shape = Shape::Bars {
            y: Axis {
                label: runs.with_unit(first),
                log: wanted.log,
                ..Axis::default()
            },
            names: together.arms.iter().map(|(name, _)| name.clone()).collect(),
            groups,
        };
        any.then(|| Panel {
            title: title(&together.cell, None),
            shape,
            table,
        })
    };
    let about = "Means of the rounds with their 95 % bootstrap intervals.";
    (
        about,
        panels(wanted, runs).into_iter().filter_map(panel).collect(),
    )
}

/// A panel for each quantity.
pub(super) fn boxes(wanted: &Wanted, runs: &Runs<'_>) -> (&'static str, Vec<Panel>) {
    let several = wanted.quantities.len() > 1;
    let mut found = Vec::new();
    for quantity in &wanted.quantities {
        for together in panels(wanted, runs) {
            let head = [
                "arm", "rounds", "least", "25 %", "median", "75 %", "greatest",
            ];
            let mut table = Table::new(head);
            let each = together.arms.iter().filter_map(|(name, arm)| {
                let values = runs.values(arm, quantity);
                if values.is_empty() {
                    return None;
                }
                let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| stats::quantile(&values, q));
                let cells = [name.clone(), values.len().to_string()];
                table
                    .rows
                    .push(cells.into_iter().chain(quartiles.map(number)).collect());
                Some(OneBox {
                    name: name.clone(),
                    values: values.into_iter().map(neat).collect(),
                    quartiles: quartiles.map(neat),
                })
            });
            let boxes: Vec<OneBox> = each.collect();
            let label = runs.with_unit(quantity);
            if !boxes.is_empty() {
                found.push(Panel {
                    title: title(&together.cell, several.then_some(label.as_str())),
                    shape: Shape::Boxes {
                        y: Axis {
                            label,
                            log: wanted.log,
                            ..Axis::default()
                        },
                        boxes,
                    },
                    table,
                });
            }
        }
    }
    (
        "A point for every run; the box is from quartile to quartile, its line the median.",
        found,
    )
}
