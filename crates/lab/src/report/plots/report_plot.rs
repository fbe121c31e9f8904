//! Plots and their shapes as data.

use super::super::table::ReportTable;
use serde::{Deserialize, Serialize};

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
    #[serde(with = "crate::report::json_number")]
    pub ratio: f64,
    /// 95 % interval of the median; `None` below six rounds.
    #[serde(with = "crate::report::json_number", default)]
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest ratio.
    #[serde(with = "crate::report::json_number")]
    pub range: [f64; 2],
    /// Number of rounds.
    pub n: usize,
}
