//! Draws plots as static SVG images, for Markdown and for pages without the plotting library.

mod axis_scale;

use super::plots::{
    BarSeries, CurveJoin, HeatMapRow, PanelContent, PlotAxis, PlotCurve, PlotData, PlotPanel,
    QuartileBox,
};
use super::table::{escape_html, format_number};
use axis_scale::{AxisScale, tick_label};
use std::fmt::{Result, Write};

const PANEL_WIDTH: f64 = 400.0;
const PLOT_HEIGHT: f64 = 210.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 36.0;
const LEGEND_LINE: f64 = 13.0;
const COLUMNS: usize = 2;

const COLOURS: [&str; 8] = [
    "#2a6fbb", "#d1602f", "#2f8f5b", "#8a55b5", "#b8860b", "#c23b6a", "#3a9aa8", "#6b6b6b",
];

const HEAD: &str = "<style>text{font:11px sans-serif;fill:#777}.t{font-weight:bold}\
    .g{stroke:#8884;fill:none}.w{stroke:#777;fill:none}</style>";

/// Returns the image of a plot, with the panels in a grid.
pub(super) fn draw_plot(plot: &PlotData) -> String {
    let columns = plot.panels.len().clamp(1, COLUMNS);
    let rows: Vec<&[PlotPanel]> = plot.panels.chunks(columns).collect();
    let heights: Vec<f64> = rows.iter().map(|row| panel_row_height(row)).collect();
    let (width, height) = (columns as f64 * PANEL_WIDTH, heights.iter().sum::<f64>());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" role=\"img\" aria-label=\"{}\">{HEAD}\n",
        escape_html(&plot.title)
    );
    let mut y = 0.0;
    for (row, height) in rows.iter().zip(&heights) {
        for (column, panel) in row.iter().enumerate() {
            let x = column as f64 * PANEL_WIDTH;
            let _ = writeln!(out, "<g transform=\"translate({x:.0} {y:.0})\">");
            // Writing to a string cannot fail.
            let _ = draw_panel(&mut out, panel);
            out += "</g>\n";
        }
        y += height;
    }
    out + "</svg>\n"
}

/// Returns the image of a single panel.
pub(super) fn draw_single_panel(panel: &PlotPanel) -> String {
    draw_plot(&PlotData {
        title: panel.title.clone(),
        about: String::new(),
        panels: vec![panel.clone()],
    })
}

fn panel_row_height(row: &[PlotPanel]) -> f64 {
    let legend_lines = row
        .iter()
        .map(|panel| legend_names(panel).len().div_ceil(2));
    let lines = legend_lines.max().unwrap_or(0);
    TOP + PLOT_HEIGHT + BOTTOM + lines as f64 * LEGEND_LINE
}

fn legend_names(panel: &PlotPanel) -> Vec<(&str, &str)> {
    match &panel.shape {
        PanelContent::Curves { curves, .. } => {
            let named = curves.iter().enumerate();
            let named = named
                .filter(|(_, curve)| !matches!(curve.join, CurveJoin::Dashes | CurveJoin::Knee));
            named
                .map(|(n, curve)| (colour(curve.colour.unwrap_or(n)), curve.name.as_str()))
                .collect()
        }
        PanelContent::Bars { groups, .. } if groups.len() > 1 => {
            let named = groups.iter().enumerate();
            named
                .map(|(n, group)| (colour(n), group.name.as_str()))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn draw_panel(out: &mut String, panel: &PlotPanel) -> Result {
    write_text_element(out, [LEFT, 14.0], "class=\"t\"", &shorten(&panel.title, 56))?;
    match &panel.shape {
        PanelContent::Curves { x, y, curves } => draw_curves(out, x, y, curves)?,
        PanelContent::Bars { y, names, groups } => draw_bars(out, y, names, groups)?,
        PanelContent::Boxes { y, boxes } => draw_boxes(out, y, boxes)?,
        PanelContent::Cells {
            x,
            y,
            columns,
            rows,
        } => draw_heat_map(out, [x, y], columns, rows)?,
    }
    for (n, (colour, name)) in legend_names(panel).into_iter().enumerate() {
        let x = LEFT + (n % 2) as f64 * (PANEL_WIDTH - LEFT) / 2.0;
        let y = TOP + PLOT_HEIGHT + BOTTOM + (n / 2) as f64 * LEGEND_LINE + 6.0;
        writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"9\" height=\"9\" fill=\"{colour}\"/>",
            y - 8.0
        )?;
        write_text_element(out, [x + 13.0, y], "", &shorten(name, 26))?;
    }
    Ok(())
}

fn draw_curves(out: &mut String, x: &PlotAxis, y: &PlotAxis, curves: &[PlotCurve]) -> Result {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let bands = curves.iter().flat_map(|curve| curve.band.iter().flatten());
    let xs = points().map(|point| point[0]);
    let ys = points().map(|point| point[1]).chain(bands.copied());
    let x_scale = AxisScale::new(x, xs, [LEFT, PANEL_WIDTH - RIGHT]);
    let y_scale = AxisScale::new(y, ys, [TOP + PLOT_HEIGHT, TOP]);
    draw_axes(out, Some((&x_scale, x)), (&y_scale, y))?;
    for (n, curve) in curves.iter().enumerate() {
        let colour = colour(curve.colour.unwrap_or(n));
        draw_band(out, curve, [&x_scale, &y_scale], colour)?;
        draw_curve(out, curve, [&x_scale, &y_scale], colour)?;
    }
    Ok(())
}

fn draw_band(out: &mut String, curve: &PlotCurve, [x, y]: [&AxisScale; 2], colour: &str) -> Result {
    if !curve.band.iter().any(|[low, high]| high > low) {
        return Ok(());
    }
    let edge = |end: usize| {
        let both = curve.points.iter().zip(&curve.band);
        both.filter_map(move |(point, band)| {
            Some([x.position(point[0])?, y.position(*band.get(end)?)?])
        })
    };
    let back: Vec<[f64; 2]> = edge(1).collect();
    let outline: Vec<[f64; 2]> = edge(0).chain(back.into_iter().rev()).collect();
    writeln!(
        out,
        "<path d=\"{}Z\" fill=\"{colour}\" fill-opacity=\".15\"/>",
        line_path_data(&outline)
    )
}

fn draw_curve(
    out: &mut String,
    curve: &PlotCurve,
    [x, y]: [&AxisScale; 2],
    colour: &str,
) -> Result {
    let points = curve.points.iter();
    let places = points.filter_map(|[at, value]| Some([x.position(*at)?, y.position(*value)?]));
    let places: Vec<[f64; 2]> = places.collect();
    let (path, style) = match curve.join {
        CurveJoin::Lines => (line_path_data(&places), "stroke-width=\"1.5\""),
        CurveJoin::Dashes => (line_path_data(&places), "stroke-dasharray=\"5 3\""),
        CurveJoin::Steps => (step_path_data(&places), "stroke-width=\"1.5\""),
        CurveJoin::Dots => (
            scatter_path_data(&places),
            "stroke-width=\"4\" stroke-linecap=\"round\"",
        ),
        CurveJoin::Knee => (
            scatter_path_data(&places),
            "stroke-width=\"14\" stroke-opacity=\".4\" stroke-linecap=\"round\"",
        ),
    };
    writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" {style}/>"
    )
}

fn draw_bars(out: &mut String, y: &PlotAxis, names: &[String], groups: &[BarSeries]) -> Result {
    let all = groups
        .iter()
        .flat_map(|group| group.values.iter().flatten());
    let zero = (!y.log).then_some(0.0);
    let values = all.flatten().copied().chain(zero);
    let scale = AxisScale::new(y, values, [TOP + PLOT_HEIGHT, TOP]);
    draw_axes(out, None, (&scale, y))?;
    let slot = (PANEL_WIDTH - LEFT - RIGHT) / names.len().max(1) as f64;
    let width = slot * 0.8 / groups.len().max(1) as f64;
    let foot = scale.position(0.0).unwrap_or(TOP + PLOT_HEIGHT);
    for (number, group) in groups.iter().enumerate() {
        for (n, value) in group.values.iter().enumerate() {
            let Some([mean, low, high]) = value.and_then(|value| scale.positions(value)) else {
                continue;
            };
            let left = LEFT + slot * (n as f64 + 0.1) + width * number as f64;
            let middle = left + width / 2.0;
            writeln!(
                out,
                "<path d=\"M{left:.1} {foot:.1}h{width:.1}V{mean:.1}h-{width:.1}z\" fill=\"{}\"/>\
                 <path class=\"w\" d=\"M{middle:.1} {low:.1}V{high:.1}\"/>",
                colour(number)
            )?;
        }
    }
    write_category_names(out, names.iter().map(String::as_str), slot)
}

fn draw_boxes(out: &mut String, y: &PlotAxis, boxes: &[QuartileBox]) -> Result {
    let values = boxes.iter().flat_map(|one| one.quartiles);
    let scale = AxisScale::new(y, values, [TOP + PLOT_HEIGHT, TOP]);
    draw_axes(out, None, (&scale, y))?;
    let slot = (PANEL_WIDTH - LEFT - RIGHT) / boxes.len().max(1) as f64;
    for (n, one) in boxes.iter().enumerate() {
        let Some([min, low, median, high, max]) = scale.positions(one.quartiles) else {
            continue;
        };
        let (left, width) = (LEFT + slot * (n as f64 + 0.25), slot * 0.5);
        let middle = left + width / 2.0;
        writeln!(
            out,
            "<path d=\"M{left:.1} {low:.1}h{width:.1}V{high:.1}h-{width:.1}zM{left:.1} {median:.1}\
             h{width:.1}M{middle:.1} {min:.1}V{low:.1}M{middle:.1} {high:.1}V{max:.1}\" \
             fill=\"{0}33\" stroke=\"{0}\"/>",
            colour(n)
        )?;
        let places: Vec<[f64; 2]> = one
            .values
            .iter()
            .filter_map(|value| Some([middle, scale.position(*value)?]))
            .collect();
        writeln!(
            out,
            "<path d=\"{}\" stroke=\"{}\" stroke-width=\"4\" stroke-linecap=\"round\"/>",
            scatter_path_data(&places),
            colour(n)
        )?;
    }
    write_category_names(out, boxes.iter().map(|one| one.name.as_str()), slot)
}

fn draw_heat_map(
    out: &mut String,
    [x, y]: [&str; 2],
    columns: &[String],
    rows: &[HeatMapRow],
) -> Result {
    let slot = (PANEL_WIDTH - LEFT - RIGHT) / columns.len().max(1) as f64;
    let height = (PLOT_HEIGHT / rows.len().max(1) as f64).min(34.0);
    for (n, row) in rows.iter().enumerate() {
        let top = TOP + height * n as f64;
        let baseline = top + height / 2.0 + 4.0;
        write_text_element(
            out,
            [LEFT - 4.0, baseline],
            "text-anchor=\"end\"",
            &row.name,
        )?;
        for (column, cell) in row.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let left = LEFT + slot * column as f64;
            // The colour reaches its full strength at a ratio of 8 or 1/8.
            let strength = (cell.ratio.ln() / 8f64.ln()).clamp(-1.0, 1.0);
            let colour = COLOURS[usize::from(strength >= 0.0)];
            writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"{colour}\" fill-opacity=\"{:.2}\"/>",
                slot - 1.0,
                height - 1.0,
                strength.abs() * 0.8
            )?;
            let middle = [left + slot / 2.0, baseline];
            write_text_element(
                out,
                middle,
                "text-anchor=\"middle\"",
                &format_number(cell.ratio),
            )?;
        }
    }
    let foot = TOP + height * rows.len() as f64 + 14.0;
    for (n, column) in columns.iter().enumerate() {
        let middle = LEFT + slot * (n as f64 + 0.5);
        write_text_element(out, [middle, foot], "text-anchor=\"middle\"", column)?;
    }
    write_text_element(out, [LEFT, foot + 14.0], "", &format!("{y} ↓ {x} →"))
}

/// Draws the grid, the ticks and the labels. `x` is `None` for bars and boxes, which have names
/// instead of an x axis.
fn draw_axes(
    out: &mut String,
    x: Option<(&AxisScale, &PlotAxis)>,
    y: (&AxisScale, &PlotAxis),
) -> Result {
    let (foot, right) = (TOP + PLOT_HEIGHT, PANEL_WIDTH - RIGHT);
    for (value, place) in y.0.ticks() {
        writeln!(out, "<path class=\"g\" d=\"M{LEFT} {place:.1}H{right}\"/>")?;
        let label = tick_label(value, y.1);
        write_text_element(
            out,
            [LEFT - 4.0, place + 4.0],
            "text-anchor=\"end\"",
            &label,
        )?;
    }
    if let Some((scale, axis)) = x {
        for (value, place) in scale.ticks() {
            writeln!(out, "<path class=\"g\" d=\"M{place:.1} {TOP}V{foot}\"/>")?;
            let label = tick_label(value, axis);
            write_text_element(out, [place, foot + 13.0], "text-anchor=\"middle\"", &label)?;
        }
        let place = [right, foot + 27.0];
        write_text_element(out, place, "text-anchor=\"end\"", &shorten(&axis.label, 56))?;
    }
    let label = shorten(&y.1.label, 34);
    let turned = format!("transform=\"translate(10 {foot}) rotate(-90)\"");
    write_text_element(out, [0.0, 0.0], &turned, &label)
}

fn write_category_names<'a>(
    out: &mut String,
    names: impl Iterator<Item = &'a str>,
    slot: f64,
) -> Result {
    for (n, name) in names.enumerate() {
        let middle = LEFT + slot * (n as f64 + 0.5);
        let name = shorten(name, (slot / 6.0).max(2.0) as usize);
        let place = [middle, TOP + PLOT_HEIGHT + 13.0];
        write_text_element(out, place, "text-anchor=\"middle\"", &name)?;
    }
    Ok(())
}

fn write_text_element(out: &mut String, [x, y]: [f64; 2], attributes: &str, text: &str) -> Result {
    let text = escape_html(text);
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{text}</text>"
    )
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn line_path_data(places: &[[f64; 2]]) -> String {
    let each = places.iter().map(|[x, y]| format!("{x:.1} {y:.1}"));
    format!("M{}", each.collect::<Vec<_>>().join("L"))
}

fn step_path_data(places: &[[f64; 2]]) -> String {
    let mut path = String::new();
    for (n, [x, y]) in places.iter().enumerate() {
        let _ = match n {
            0 => write!(path, "M{x:.1} {y:.1}"),
            _ => write!(path, "H{x:.1}V{y:.1}"),
        };
    }
    path
}

/// Draws each dot as a stroke of zero length with round caps. Such a stroke needs only a third of
/// the bytes of a `<circle>` element.
fn scatter_path_data(places: &[[f64; 2]]) -> String {
    let each = places.iter().map(|[x, y]| format!("M{x:.1} {y:.1}h0"));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::table::ReportTable;
    use super::*;

    #[test]
    fn every_shape_is_drawn_and_names_are_escaped() {
        let axis = |log| PlotAxis {
            label: "<b>".into(),
            log,
            nines: false,
        };
        let curve = PlotCurve {
            name: "<i>".into(),
            points: vec![[0.0, 1.0], [1.0, 100.0], [2.0, -5.0]],
            ..PlotCurve::default()
        };
        let shapes = [
            PanelContent::Curves {
                x: axis(false),
                y: axis(true),
                curves: vec![curve],
            },
            PanelContent::Bars {
                y: axis(false),
                names: vec!["<a>".into()],
                groups: vec![BarSeries {
                    name: "g".into(),
                    values: vec![Some([2.0, 1.0, 3.0])],
                }],
            },
            PanelContent::Boxes {
                y: axis(true),
                boxes: vec![QuartileBox {
                    name: "<x>".into(),
                    values: vec![1.0, 2.0],
                    quartiles: [1.0, 1.2, 1.5, 1.8, 2.0],
                }],
            },
        ];
        let panels = shapes.map(|shape| PlotPanel {
            title: "</svg>".into(),
            shape,
            table: ReportTable::default(),
        });
        let image = draw_plot(&PlotData {
            title: "t".into(),
            about: String::new(),
            panels: panels.into(),
        });
        assert_eq!(image.matches("</svg>").count(), 1, "{image}");
        assert_eq!(image.matches("<g transform").count(), 3);
        assert!(!image.contains("<b>") && !image.contains("NaN"), "{image}");
    }
}
