//! A comparison's pictures: of each quantity, the means of all folders beside each other.

use super::compare::{Compared, Comparison};
use super::plots::{Axis, Drawn, Group, PANELS_MAX, Panel, Shape, neat};
use super::table::Table;
use crate::experiment::Arm;

/// From so many times the least mean on, an axis is logarithmic.
const WIDE: f64 = 30.0;

/// A panel for each quantity.
pub(super) fn beside(comparison: &Comparison) -> Drawn {
    let mut quantities: Vec<&String> = Vec::new();
    for row in &comparison.rows {
        if !quantities.contains(&&row.quantity) {
            quantities.push(&row.quantity);
        }
    }
    let mut about = "Means of the rounds with their 95 % bootstrap intervals.".to_owned();
    if let Some(more) = quantities.len().checked_sub(PANELS_MAX).filter(|n| *n > 0) {
        about += &format!(" {more} more quantities stand in the table only.");
        quantities.truncate(PANELS_MAX);
    }
    Drawn {
        title: "Beside each other".into(),
        about,
        panels: quantities
            .into_iter()
            .map(|quantity| panel(comparison, quantity))
            .collect(),
    }
}

fn panel(comparison: &Comparison, quantity: &str) -> Panel {
    let of = |row: &&Compared| row.quantity == quantity;
    let rows: Vec<&Compared> = comparison.rows.iter().filter(of).collect();
    let group = |(number, folder): (usize, &String)| Group {
        name: folder.clone(),
        values: rows.iter().map(|row| mean(row, number)).collect(),
    };
    let groups: Vec<Group> = comparison.folders.iter().enumerate().map(group).collect();
    let all = || {
        groups
            .iter()
            .flat_map(|group| group.values.iter().flatten())
    };
    let least = all().map(|value| value[1]).fold(f64::INFINITY, f64::min);
    let greatest = all().map(|value| value[2]).fold(0.0, f64::max);
    Panel {
        title: quantity.to_owned(),
        shape: Shape::Bars {
            y: Axis {
                label: quantity.to_owned(),
                log: least > 0.0 && greatest / least > WIDE,
                ..Axis::default()
            },
            names: names(&rows),
            groups,
        },
        // The page has one for all quantities.
        table: Table::new([""; 0]),
    }
}

fn mean(row: &Compared, folder: usize) -> Option<[f64; 3]> {
    let sample = row.samples.get(folder)?.as_ref()?;
    let [low, high] = sample.interval.unwrap_or([sample.mean; 2]);
    Some([sample.mean, low, high].map(neat))
}

/// Arms by what is not the same in all of them.
fn names(rows: &[&Compared]) -> Vec<String> {
    let differs = |name: &String| {
        let first = rows.first().and_then(|row| row.arm.get(name));
        rows.iter().any(|row| row.arm.get(name) != first)
    };
    let short = |row: &&Compared| {
        let mut arm: Arm = row.arm.clone();
        arm.retain(|name, _| differs(name));
        arm.into_values().collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(short).collect()
}
