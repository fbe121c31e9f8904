//! Formats the report as a self-contained HTML page. Texts and tables work without scripts. The
//! library uPlot (MIT license) draws the plots from embedded data.

use super::markdown::machine_table;
use super::plots::{PanelContent, PlotData, PlotPanel};
use super::svg::draw_single_panel;
use super::table::{escape_html, format_interval_or_range, format_number};
use super::{ExperimentReport, FindingOutcome};
use std::fmt::Write;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

// Defines `UPLOT`, which contains the script and the style of uPlot. `UPLOT` is `None` if
// `vendor/fetch.sh` did not fetch uPlot before the build.
include!(concat!(env!("OUT_DIR"), "/uplot.rs"));

/// Fills in the page template. `body` is HTML, and `data` is the input of the script.
fn render_page(title: &str, body: &str, data: &str) -> String {
    let (library, library_style) = UPLOT.unwrap_or_default();
    // Escapes `<`, because `</script>` in the data would end the script element.
    let data = data.replace('<', "\\u003c");
    let parts = [
        ("title", escape_html(title)),
        ("style", format!("{library_style}\n{STYLE}")),
        ("plots", library.to_owned()),
        ("script", SCRIPT.to_owned()),
        ("body", body.to_owned()),
        ("data", data),
    ];
    // Scans the template once from start to end, so that inserted text is not searched for
    // placeholders.
    let mut out = String::new();
    let mut rest = PAGE;
    while let Some((before, from)) = rest.split_once("{{") {
        let (name, after) = from.split_once("}}").unwrap_or(("", from));
        out += before;
        let part = parts.iter().find(|(known, _)| *known == name);
        out += part.map_or("", |(_, text)| text.as_str());
        rest = after;
    }
    out + rest
}

/// Returns a page with plots between two HTML fragments. The first panel is visible, and the other
/// panels are in a collapsible section.
pub(super) fn render_page_with_plots(
    title: &str,
    above: &str,
    plots: &[PlotData],
    below: &str,
) -> String {
    let mut body = above.to_owned();
    // Writing to a string cannot fail.
    let _ = write_plots_html(&mut body, plots);
    body += below;
    let shapes = |plot: &PlotData| {
        plot.panels
            .iter()
            .map(|panel| panel.shape.clone())
            .collect()
    };
    let shapes: Vec<Vec<PanelContent>> = plots.iter().map(shapes).collect();
    render_page(
        title,
        &body,
        &serde_json::to_string(&shapes).unwrap_or_default(),
    )
}

impl ExperimentReport {
    /// Returns the report as an HTML page.
    pub fn html(&self) -> String {
        let (mut above, mut below) = (String::new(), String::new());
        // Writing to a string cannot fail.
        let _ = self.write_above_plots(&mut above);
        let _ = self.write_below_plots(&mut below);
        render_page_with_plots(&self.name, &above, &self.plots, &below)
    }

    /// Writes the part above the plots.
    fn write_above_plots(&self, out: &mut String) -> std::fmt::Result {
        let class = match self.finding.outcome {
            FindingOutcome::Repeated => "good",
            FindingOutcome::Contradicted => "bad",
            FindingOutcome::Mixed | FindingOutcome::NoClaim => "open",
        };
        writeln!(out, "<header><h1>{}</h1>", escape_html(&self.name))?;
        writeln!(
            out,
            "<div class=\"finding {class}\"><p>{}</p></div>",
            escape_html(&self.finding.sentence)
        )?;
        writeln!(
            out,
            "<dl><dt>Question</dt><dd>{}</dd>",
            escape_html(&self.question)
        )?;
        if !self.found.is_empty() {
            writeln!(
                out,
                "<dt>Finding of the source</dt><dd>{}</dd>",
                escape_html(&self.found)
            )?;
        }
        writeln!(
            out,
            "<dt>Measured</dt><dd>{}</dd></dl></header>",
            escape_html(&self.summarize_runs())
        )
    }

    /// Writes the part below the plots.
    fn write_below_plots(&self, out: &mut String) -> std::fmt::Result {
        if !self.claims.is_empty() {
            let lines = self.finding.lines.iter();
            let lines: String = lines
                .map(|line| format!("<li>{}</li>", escape_html(line)))
                .collect();
            let claims = format!("<ul>{lines}</ul>{}", self.claims_table().html());
            write_section(out, "Expected and measured", &claims)?;
        }
        let arms = format!(
            "<p>{}</p>{}",
            escape_html(&ExperimentReport::explain_spread_column()),
            self.arms_table().html()
        );
        write_section(out, "Arms", &arms)?;
        let discarded = match self.discarded.is_empty() {
            true => "<p>None.</p>".into(),
            false => self.discarded_table().html(),
        };
        let title = format!("Discarded runs ({})", self.discarded.len());
        write_section(out, &title, &discarded)?;
        let machines: String = self
            .machines
            .iter()
            .map(|machine| machine_table(machine).html())
            .collect();
        let none = "<p>The runs contain no description of the machine.</p>".to_owned();
        write_section(
            out,
            "Machine and programs",
            if machines.is_empty() {
                &none
            } else {
                &machines
            },
        )?;
        let repeat_command = "headwater lab run document.toml --out DIR";
        let scale = self
            .scale
            .as_ref()
            .map_or(String::new(), |name| format!(" --scale {name}"));
        let commands = format!(
            "<p>To repeat the experiment, save the document below and run <code>{repeat_command}{}</code>. Names in \
             braces are placeholders.</p>{}<details><summary>Document</summary><pre>{}</pre></details>",
            escape_html(&scale),
            self.commands_table().html(),
            escape_html(&self.text)
        );
        write_section(out, "Commands, and how to repeat the experiment", &commands)
    }
}

/// Writes a collapsible section.
pub(super) fn write_section(out: &mut String, title: &str, inside: &str) -> std::fmt::Result {
    writeln!(
        out,
        "<details class=\"section\"><summary>{}</summary>{inside}</details>",
        escape_html(title)
    )
}

/// Writes the first panel, and then all other panels in a collapsible section.
fn write_plots_html(out: &mut String, plots: &[PlotData]) -> std::fmt::Result {
    let panels = plots.iter().map(|plot| plot.panels.len());
    let more = panels.sum::<usize>().saturating_sub(1);
    let mut rest = String::new();
    for (number, plot) in plots.iter().enumerate() {
        match number {
            0 => {
                write_plot_html(out, number, plot, 0..1)?;
                write_plot_html(&mut rest, number, plot, 1..plot.panels.len())?;
            }
            _ => write_plot_html(&mut rest, number, plot, 0..plot.panels.len())?,
        }
    }
    match more {
        0 => Ok(()),
        _ => write_section(out, &format!("More plots ({more})"), &rest),
    }
}

/// Writes the panels with the numbers in the range `panels`. Writes nothing if the plot has no such
/// panel.
fn write_plot_html(
    out: &mut String,
    number: usize,
    plot: &PlotData,
    panels: std::ops::Range<usize>,
) -> std::fmt::Result {
    let shown = plot.panels.iter().enumerate();
    let shown = shown.filter(|(panel, _)| panels.contains(panel));
    if shown.clone().next().is_none() {
        return Ok(());
    }
    let title = escape_html(&plot.title);
    writeln!(out, "<section class=\"plot\"><h2>{title}</h2>")?;
    writeln!(
        out,
        "<p>{}</p><div class=\"panels\">",
        escape_html(&plot.about)
    )?;
    for (panel_number, panel) in shown {
        let name = if panel.title.is_empty() {
            &plot.title
        } else {
            &panel.title
        };
        writeln!(
            out,
            "<figure><figcaption>{}</figcaption>",
            escape_html(&panel.title)
        )?;
        match &panel.shape {
            PanelContent::Cells {
                x,
                y,
                columns,
                rows,
            } => {
                write_heat_map_html(out, x, y, columns, rows)?;
            }
            _ => writeln!(
                out,
                "<div class=\"canvas\" role=\"img\" data-plot=\"{number}\" data-panel=\"{panel_number}\" \
                 aria-label=\"{}\">{}</div>",
                escape_html(name),
                static_plot(panel)
            )?,
        }
        if !panel.table.rows.is_empty() {
            writeln!(
                out,
                "<details><summary>In numbers</summary>{}</details>",
                panel.table.html()
            )?;
        }
        writeln!(out, "</figure>")?;
    }
    writeln!(out, "</div></section>")
}

/// Returns a static image of the panel if the plotting library is missing, and otherwise an empty
/// text.
fn static_plot(panel: &PlotPanel) -> String {
    match UPLOT {
        Some(_) => String::new(),
        None => draw_single_panel(&PlotPanel {
            title: String::new(),
            ..panel.clone()
        }),
    }
}

/// Writes a heat map as a coloured table, which can be copied, printed and read by screen readers.
fn write_heat_map_html(
    out: &mut String,
    x: &str,
    y: &str,
    columns: &[String],
    rows: &[super::plots::HeatMapRow],
) -> std::fmt::Result {
    writeln!(
        out,
        "<div class=\"wide\"><table class=\"map\"><thead><tr><td>{} ↓ {} →</td>",
        escape_html(y),
        escape_html(x)
    )?;
    for column in columns {
        writeln!(out, "<th scope=\"col\">{}</th>", escape_html(column))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in rows {
        writeln!(out, "<tr><th scope=\"row\">{}</th>", escape_html(&row.name))?;
        for cell in &row.cells {
            let Some(cell) = cell else {
                writeln!(out, "<td>–</td>")?;
                continue;
            };
            // The colour reaches its full strength at a ratio of 8 or 1/8.
            let strength = (cell.ratio.ln() / 8f64.ln()).clamp(-1.0, 1.0);
            let side = if strength < 0.0 { "below" } else { "above" };
            let unsure = cell
                .interval
                .is_none_or(|[low, high]| low <= 1.0 && high >= 1.0);
            let faint = if unsure { " unsure" } else { "" };
            writeln!(
                out,
                "<td class=\"{side}{faint}\" style=\"--strength:{:.0}%\"><b>{}</b><span>{}</span></td>",
                strength.abs() * 100.0,
                format_number(cell.ratio),
                format_interval_or_range(cell.interval, cell.n, cell.range)
            )?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}
