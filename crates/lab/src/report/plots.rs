//! Plots as data: panels with shapes for drawing and tables of the same figures.

mod bars;
mod distributions;
mod linear_fit;
mod map;
mod plot_requests;
mod series;

use super::arms::describe_arm;
use super::runs::{RunIndex, has_values};
use super::table::ReportTable;
use crate::experiment::document::PlotKind;
use crate::experiment::{Arm, RunPlan};
use plot_requests::PlotRequest;
use serde::{Deserialize, Serialize};

/// Maximum number of panels of a plot.
pub(super) const PANELS_MAX: usize = 12;
/// Explanation of bars.
pub(super) const MEDIANS_ABOUT: &str = "Medians of the rounds. A line spans the 95 % interval of the median, or the range of all rounds if \
     there are fewer than six.";
/// Maximum number of points of a curve.
const POINTS_MAX: usize = 200;

/// A plot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportPlot {
    /// Title.
    pub title: String,
    /// Explanation.
    pub about: String,
    /// Panels.
    pub panels: Vec<PlotPanel>,
}

/// A panel with its own axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlotPanel {
    /// Values of the variables that its arms share.
    pub title: String,
    /// Shape to draw.
    pub shape: PanelShape,
    /// The same figures as a table.
    pub table: ReportTable,
}

/// The shape of a panel.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum PanelShape {
    /// Curves or points.
    Curves {
        /// Horizontal axis.
        x: PlotAxis,
        /// Vertical axis.
        y: PlotAxis,
        /// The curves.
        curves: Vec<PlotCurve>,
    },
    /// Bars with error bars.
    Bars {
        /// Vertical axis.
        y: PlotAxis,
        /// Names below the bars.
        names: Vec<String>,
        /// Groups; each has its own colour.
        groups: Vec<BarGroup>,
    },
    /// Box plots with every value.
    Boxes {
        /// Vertical axis.
        y: PlotAxis,
        /// Boxes from left to right.
        boxes: Vec<QuartileBox>,
    },
    /// A heat map of ratios.
    Cells {
        /// Horizontal variable.
        x: String,
        /// Vertical variable.
        y: String,
        /// Values of the horizontal variable.
        columns: Vec<String>,
        /// Rows, one per value of the vertical variable.
        rows: Vec<MapRow>,
    },
}

/// An axis.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PlotAxis {
    /// Label.
    pub label: String,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// Whether values are -log10(1 - share).
    pub nines: bool,
}

/// A curve.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PlotCurve {
    /// Name in the legend.
    pub name: String,
    /// Points x, y.
    pub points: Vec<[f64; 2]>,
    /// Minimum and maximum y of each point.
    pub band: Vec<[f64; 2]>,
    /// The line between the points.
    pub join: CurveJoin,
    /// Colour number [default: the curve's own number].
    pub colour: Option<usize>,
}

/// The line between the points of a curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CurveJoin {
    /// Lines.
    #[default]
    Lines,
    /// Steps.
    Steps,
    /// Separate dots.
    Dots,
    /// A dashed line.
    Dashes,
    /// The mark of the knee.
    Knee,
}

/// Bars of one colour.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BarGroup {
    /// Name in the legend.
    pub name: String,
    /// Median, and the ends of its interval or range, for each name.
    pub values: Vec<Option<[f64; 3]>>,
}

/// A box plot of one arm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QuartileBox {
    /// Name below the box.
    pub name: String,
    /// All values by round.
    pub values: Vec<f64>,
    /// Minimum, quartiles, maximum.
    pub quartiles: [f64; 5],
}

/// A row of a heat map.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MapRow {
    /// Value of the vertical variable.
    pub name: String,
    /// Cells; `None` if nothing was measured.
    pub cells: Vec<Option<MapCell>>,
}

/// A cell of a heat map.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MapCell {
    /// Median of the ratios.
    #[serde(with = "super::json_number")]
    pub ratio: f64,
    /// 95 % interval of the median; `None` below six rounds.
    #[serde(with = "super::json_number", default)]
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest ratio.
    #[serde(with = "super::json_number")]
    pub range: [f64; 2],
    /// Number of rounds.
    pub n: usize,
}

/// Draws the plots of the document, or those that its quantities suggest.
pub(super) fn draw_plots(plan: &RunPlan, runs: &RunIndex<'_>) -> Vec<ReportPlot> {
    let all = plot_requests::list_requests(plan, runs);
    let drawn = all.iter().map(|wanted| draw_request(wanted, runs));
    drawn.filter(|drawn| !drawn.panels.is_empty()).collect()
}

fn draw_request(wanted: &PlotRequest, runs: &RunIndex<'_>) -> ReportPlot {
    let (about, mut panels) = match wanted.kind {
        PlotKind::Time => series::time_panels(wanted, runs),
        PlotKind::Ecdf => distributions::ecdf_panels(wanted, runs),
        PlotKind::Percentiles => distributions::percentile_panels(wanted, runs),
        PlotKind::Bars => bars::bar_panels(wanted, runs),
        PlotKind::Box => bars::box_panels(wanted, runs),
        PlotKind::Map => map::map_panels(wanted, runs),
        PlotKind::Fit => linear_fit::fit_panels(wanted, runs),
    };
    let mut about = about.to_owned();
    if panels.len() > PANELS_MAX {
        let more = panels.len() - PANELS_MAX;
        about += &format!(" {more} more panels are not shown; select them with `where` and `by`.");
        panels.truncate(PANELS_MAX);
    }
    ReportPlot {
        title: wanted.title.clone(),
        about,
        panels,
    }
}

/// The arms of one panel with their names.
struct PanelArms<'a> {
    /// Values that they share.
    cell: Arm,
    arms: Vec<(String, &'a Arm)>,
}

/// Groups the arms of a plot by all variables except `by`.
fn group_panels<'a>(wanted: &PlotRequest, runs: &'a RunIndex<'_>) -> Vec<PanelArms<'a>> {
    let mut found: Vec<PanelArms<'a>> = Vec::new();
    for arm in runs.arms().filter(|arm| has_values(arm, &wanted.only)) {
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

/// Returns the title of a panel: shared values, and the quantity if there are several.
fn panel_title(cell: &Arm, quantity: Option<&str>) -> String {
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

/// Rounds to five digits to keep pages small.
pub(super) fn round_to_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let factor = 10f64.powf(4.0 - value.abs().log10().floor());
    match factor.is_finite() && factor > 0.0 {
        true => (value * factor).round() / factor,
        false => value,
    }
}
