//! Plots and their shapes as data.

use super::super::table::ReportTable;
use serde::{Deserialize, Serialize};

/// A plot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlotData {
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
    /// Title, such as the values of the variables that all arms of the panel share.
    pub title: String,
    /// Shape to draw.
    pub shape: PanelContent,
    /// Table with the same figures.
    pub table: ReportTable,
}

/// The shape of a panel.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum PanelContent {
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
        /// Groups of bars. Each group has its own colour.
        groups: Vec<BarSeries>,
    },
    /// Box plots that also show every value.
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
        rows: Vec<HeatMapRow>,
    },
}

/// An axis.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PlotAxis {
    /// Label.
    pub label: String,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// Whether the values are `-log10(1 - share)`. The shares 90 %, 99 % and 99.9 % become 1, 2 and
    /// 3.
    pub nines: bool,
}

/// A curve.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PlotCurve {
    /// Name in the legend.
    pub name: String,
    /// Points as `[x, y]`.
    pub points: Vec<[f64; 2]>,
    /// Minimum and maximum y of each point. Empty if the curve has no band.
    pub band: Vec<[f64; 2]>,
    /// Style of the line between the points.
    pub join: CurveJoin,
    /// Number of the colour [default: the position of the curve in the panel].
    pub colour: Option<usize>,
}

/// Style of the line between the points of a curve.
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
    /// A mark at the knee of the curve.
    Knee,
}

/// Bars of one colour.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Median and the two ends of the error bar, for each name below the bars.
    pub values: Vec<Option<[f64; 3]>>,
}

/// A box plot of one arm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QuartileBox {
    /// Name below the box.
    pub name: String,
    /// Values of all rounds, in the order of the rounds.
    pub values: Vec<f64>,
    /// Minimum, the three quartiles, and maximum.
    pub quartiles: [f64; 5],
}

/// A row of a heat map.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeatMapRow {
    /// Value of the vertical variable.
    pub name: String,
    /// Cells; `None` if nothing was measured.
    pub cells: Vec<Option<HeatMapCell>>,
}

/// A cell of a heat map.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeatMapCell {
    /// Median of the ratios of all rounds.
    #[serde(with = "crate::report::json_number")]
    pub ratio: f64,
    /// 95 % confidence interval of the median. `None` if there are fewer than six rounds.
    #[serde(with = "crate::report::json_number", default)]
    pub interval: Option<[f64; 2]>,
    /// Smallest and largest ratio of all rounds.
    #[serde(with = "crate::report::json_number")]
    pub range: [f64; 2],
    /// Number of rounds.
    pub n: usize,
}
