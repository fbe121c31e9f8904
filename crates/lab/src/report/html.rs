//! The report as one file that needs no other: words and tables are there without any script; plots
//! (uPlot, MIT) are drawn from data inside.

use super::markdown::machine_table;
use super::plots::{Drawn, Shape};
use super::table::{escape, number, range};
use super::{Outcome, Report};
use std::fmt::Write;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const PLOTS: &str = include_str!("../../../../vendor/uPlot/uPlot.iife.min.js");
const PLOTS_STYLE: &str = include_str!("../../../../vendor/uPlot/uPlot.min.css");

/// A whole page. `body` is HTML, `data` is what the script draws.
fn page(title: &str, body: &str, data: &str) -> String {
    // Text that would end the script element is written otherwise.
    let data = data.replace('<', "\\u003c");
    let parts = [
        ("title", escape(title)),
        ("style", format!("{PLOTS_STYLE}\n{STYLE}")),
        ("plots", PLOTS.to_owned()),
        ("script", SCRIPT.to_owned()),
        ("body", body.to_owned()),
        ("data", data),
    ];
    // Piece by piece: what a part says is not looked at for further places.
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

/// A page with plots between what stands above and below them, both HTML.
pub(super) fn illustrated(title: &str, above: &str, plots: &[Drawn], below: &str) -> String {
    let mut body = above.to_owned();
    for (number, plot) in plots.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = plotted(&mut body, number, plot);
    }
    body += below;
    let shapes = |plot: &Drawn| {
        plot.panels
            .iter()
            .map(|panel| panel.shape.clone())
            .collect()
    };
    let shapes: Vec<Vec<Shape>> = plots.iter().map(shapes).collect();
    page(
        title,
        &body,
        &serde_json::to_string(&shapes).unwrap_or_default(),
    )
}

impl Report {
    /// As a page.
    pub fn html(&self) -> String {
        let (mut above, mut below) = (String::new(), String::new());
        // Writing to a string does not fail.
        let _ = self.before(&mut above);
        let _ = self.after(&mut below);
        illustrated(&self.name, &above, &self.plots, &below)
    }

    /// What stands above the plots.
    fn before(&self, out: &mut String) -> std::fmt::Result {
        let class = match self.finding.outcome {
            Outcome::Reproduced => "good",
            Outcome::NotReproduced => "bad",
            Outcome::Partly | Outcome::Undecided | Outcome::NoClaim => "open",
        };
        writeln!(out, "<header><h1>{}</h1>", escape(&self.name))?;
        writeln!(
            out,
            "<div class=\"finding {class}\"><p>{}</p><ul>",
            escape(&self.finding.says)
        )?;
        for line in &self.finding.lines {
            writeln!(out, "<li>{}</li>", escape(line))?;
        }
        writeln!(out, "</ul></div>")?;
        writeln!(
            out,
            "<dl><dt>The question</dt><dd>{}</dd>",
            escape(&self.question)
        )?;
        if !self.found.is_empty() {
            writeln!(
                out,
                "<dt>The source found</dt><dd>{}</dd>",
                escape(&self.found)
            )?;
        }
        writeln!(
            out,
            "<dt>Measured</dt><dd>{}</dd></dl></header>",
            escape(&self.conduct())
        )?;
        if !self.claims.is_empty() {
            section(
                out,
                "expected",
                "Expected and measured",
                &self.claims_table().html(),
            )?;
        }
        Ok(())
    }

    /// What stands below the plots.
    fn after(&self, out: &mut String) -> std::fmt::Result {
        let arms = format!(
            "<p>{}</p>{}",
            escape(&Report::spread_words()),
            self.arms_table().html()
        );
        section(out, "arms", "Arms", &arms)?;
        let thrown = match self.thrown.is_empty() {
            true => "<p>No run.</p>".into(),
            false => self.thrown_table().html(),
        };
        section(out, "thrown", "Thrown away", &thrown)?;
        let machines: String = self
            .machines
            .iter()
            .map(|machine| machine_table(machine).html())
            .collect();
        let none = "<p>Nothing was written down.</p>".to_owned();
        section(
            out,
            "machine",
            "Machine and programs",
            if machines.is_empty() {
                &none
            } else {
                &machines
            },
        )?;
        let again = "headwater lab run document.toml --out DIR";
        let scale = self
            .scale
            .as_ref()
            .map_or(String::new(), |name| format!(" --scale {name}"));
        let commands = format!(
            "<p>Again: <code>{again}{}</code>, with the document below. Names in braces stand for folders of \
             the run.</p>{}<details><summary>The document</summary><pre>{}</pre></details>",
            escape(&scale),
            self.commands_table().html(),
            escape(&self.text)
        );
        section(out, "commands", "Commands", &commands)
    }
}

fn section(out: &mut String, id: &str, title: &str, inside: &str) -> std::fmt::Result {
    writeln!(
        out,
        "<section aria-labelledby=\"h-{id}\"><h2 id=\"h-{id}\">{title}</h2>{inside}</section>"
    )
}

fn plotted(out: &mut String, number: usize, plot: &Drawn) -> std::fmt::Result {
    let title = escape(&plot.title);
    writeln!(
        out,
        "<section class=\"plot\" aria-labelledby=\"p-{number}\"><h2 id=\"p-{number}\">{title}</h2>"
    )?;
    writeln!(out, "<p>{}</p><div class=\"panels\">", escape(&plot.about))?;
    for (panel_number, panel) in plot.panels.iter().enumerate() {
        let name = if panel.title.is_empty() {
            &plot.title
        } else {
            &panel.title
        };
        writeln!(
            out,
            "<figure><figcaption>{}</figcaption>",
            escape(&panel.title)
        )?;
        match &panel.shape {
            Shape::Cells {
                x,
                y,
                columns,
                rows,
            } => {
                cells(out, x, y, columns, rows)?;
            }
            _ => writeln!(
                out,
                "<div class=\"canvas\" role=\"img\" data-plot=\"{number}\" data-panel=\"{panel_number}\" \
                 aria-label=\"{}\"></div>",
                escape(name)
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

/// A heat map is a table with colours: it can be read aloud, copied and printed.
fn cells(
    out: &mut String,
    x: &str,
    y: &str,
    columns: &[String],
    rows: &[super::plots::Row],
) -> std::fmt::Result {
    writeln!(
        out,
        "<div class=\"wide\"><table class=\"map\"><thead><tr><td>{} ↓ {} →</td>",
        escape(y),
        escape(x)
    )?;
    for column in columns {
        writeln!(out, "<th scope=\"col\">{}</th>", escape(column))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in rows {
        writeln!(out, "<tr><th scope=\"row\">{}</th>", escape(&row.name))?;
        for cell in &row.cells {
            let Some(cell) = cell else {
                writeln!(out, "<td>–</td>")?;
                continue;
            };
            // Eightfold, or an eighth, has the full colour.
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
                number(cell.ratio),
                range(cell.interval)
            )?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}
