//! A ratio over two variables.

use super::super::arms::words;
use super::super::runs::{Runs, has};
use super::super::table::{Table, number, range};
use super::wanted::Wanted;
use super::{Cell, Panel, Row, Shape, title};
use crate::experiment::Arm;

pub(super) fn map(wanted: &Wanted, runs: &Runs<'_>) -> (&'static str, Vec<Panel>) {
    let mut found: Vec<Panel> = Vec::new();
    let Some(x) = wanted.x.first() else {
        return ("", found);
    };
    let several = wanted.quantities.len() > 1;
    let of = |arm: &&Arm| has(arm, &wanted.of) && has(arm, &wanted.only);
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
            let label = runs.label(quantity);
            let title = title(cell, several.then_some(label.as_str()));
            found.extend(panel(wanted, runs, quantity, x, &inside, title));
        }
    }
    (
        "Each cell is a geometric mean over rounds, with its 95 % interval; faint where that holds 1.",
        found,
    )
}

fn panel(
    wanted: &Wanted,
    runs: &Runs<'_>,
    quantity: &str,
    x: &str,
    arms: &[&Arm],
    title: String,
) -> Option<Panel> {
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
    let mut table = Table::new(["", "ratio", "95 %", "median", "of means", "rounds"]);
    let mut cell = |across: &String, down: &String| {
        let at = |arm: &&&Arm| arm.get(x) == Some(across) && arm.get(&wanted.y) == Some(down);
        let arm = arms.iter().find(at)?;
        let mut other = (*arm).clone();
        other.extend(wanted.to.clone());
        let (n, ratio) = runs.ratio(arm, &other, quantity)?;
        let interval = ratio.interval.map(super::super::arms::pair);
        table.rows.push(vec![
            words(arm),
            number(ratio.geometric),
            range(interval),
            number(ratio.median),
            number(ratio.of_means),
            n.to_string(),
        ]);
        Some(Cell {
            ratio: ratio.geometric,
            interval,
            n,
        })
    };
    let rows = downs.iter().map(|down| Row {
        name: down.clone(),
        cells: columns.iter().map(|across| cell(across, down)).collect(),
    });
    let rows: Vec<Row> = rows.collect();
    let any = rows.iter().any(|row| row.cells.iter().any(Option::is_some));
    let titled = format!("{} ÷ {}", words(&wanted.of), words(&wanted.to));
    any.then(|| Panel {
        title: if title.is_empty() {
            titled
        } else {
            format!("{titled} · {title}")
        },
        shape: Shape::Cells {
            x: x.to_owned(),
            y: wanted.y.clone(),
            columns,
            rows,
        },
        table,
    })
}
