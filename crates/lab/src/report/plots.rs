//! Computes plots as data. Each panel contains the data to draw (curves, bars, boxes or cells), and
//! a table of the same numbers.

mod bars;
mod distributions;
mod heat_map;
mod linear_fit;
mod panel_arms;
mod plot_data;
mod plot_requests;
mod time_panels;

pub(super) use bars::MEDIANS_ABOUT;
pub use plot_data::PlotData;
pub(super) use plot_data::{
    BarSeries, CurveJoin, HeatMapCell, HeatMapRow, PanelContent, PlotAxis, PlotCurve, PlotPanel,
    QuartileBox,
};

use super::record_index::RecordIndex;
use crate::experiment::RunPlan;
use crate::experiment::document::PlotKind;
use plot_requests::PlotRequest;

/// Maximum number of panels of a plot.
pub(super) const PANELS_MAX: usize = 12;

/// Draws the plots that the document requests. If the document requests no plots, draws plots that
/// suit the measured quantities.
pub(super) fn build_plots(plan: &RunPlan, runs: &RecordIndex<'_>) -> Vec<PlotData> {
    let all = plot_requests::list_plot_requests(plan, runs);
    let drawn = all.iter().map(|wanted| build_requested_plot(wanted, runs));
    drawn.filter(|drawn| !drawn.panels.is_empty()).collect()
}

fn build_requested_plot(wanted: &PlotRequest, runs: &RecordIndex<'_>) -> PlotData {
    let (about, mut panels) = match wanted.kind {
        PlotKind::Time => time_panels::time_panels(wanted, runs),
        PlotKind::Ecdf => distributions::ecdf_panels(wanted, runs),
        PlotKind::Percentiles => distributions::percentile_panels(wanted, runs),
        PlotKind::Bars => bars::bar_panels(wanted, runs),
        PlotKind::Box => bars::box_panels(wanted, runs),
        PlotKind::Map => heat_map::heat_map_panels(wanted, runs),
        PlotKind::Fit => linear_fit::fit_panels(wanted, runs),
    };
    let mut about = about.to_owned();
    if panels.len() > PANELS_MAX {
        let more = panels.len() - PANELS_MAX;
        about += &format!(" {more} more panels are not shown; select them with `where` and `by`.");
        panels.truncate(PANELS_MAX);
    }
    PlotData {
        title: wanted.title.clone(),
        about,
        panels,
    }
}
