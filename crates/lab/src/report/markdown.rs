//! Formats the report as Markdown.

use super::arms::{SPREAD_MAX, describe_arm};
use super::claims::ClaimResult;
use super::plots::{PanelContent, PlotData};
use super::svg::draw_plot;
use super::table::{
    ReportTable, format_interval_or_range, format_number, format_percent, format_time,
};
use super::{ExperimentReport, MachineDescription};
use std::fmt::Write;

impl ExperimentReport {
    /// Returns the report as Markdown, without images.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_report_markdown(&mut out, false);
        out
    }

    /// Returns the report as Markdown that shows the images of [`ExperimentReport::images`].
    pub fn illustrated_markdown(&self) -> String {
        let mut out = String::new();
        let _ = self.write_report_markdown(&mut out, true);
        out
    }

    /// Returns the path and the SVG image of each plot. The path is relative to the report.
    pub fn images(&self) -> impl Iterator<Item = (String, String)> {
        let plots = self.plots.iter().enumerate();
        plots.map(|(number, plot)| (image_path(number, plot), draw_plot(plot)))
    }

    fn write_report_markdown(&self, out: &mut String, images: bool) -> std::fmt::Result {
        writeln!(
            out,
            "# {}\n\n**{}**\n",
            escape_line(&self.name),
            escape_line(&self.finding.sentence)
        )?;
        for one in &self.finding.lines {
            writeln!(out, "- {}", escape_line(one))?;
        }
        writeln!(out, "\nQuestion: {}", escape_line(&self.question))?;
        if !self.found.is_empty() {
            writeln!(out, "\nFinding of the source: {}", escape_line(&self.found))?;
        }
        if !self.claims.is_empty() {
            writeln!(
                out,
                "\n## Expected and measured\n{}",
                self.claims_table().markdown()
            )?;
        }
        for (number, plot) in self.plots.iter().enumerate() {
            if images {
                let (title, path) = (escape_line(&plot.title), image_path(number, plot));
                writeln!(
                    out,
                    "\n## {title}\n\n{}\n\n![{title}]({path})",
                    escape_line(&plot.about)
                )?;
            }
            for panel in &plot.panels {
                // Skips the tables of bars and boxes, because the table of the arms contains the
                // same figures.
                let repeated = matches!(
                    panel.shape,
                    PanelContent::Bars { .. } | PanelContent::Boxes { .. }
                );
                if !repeated && !panel.table.rows.is_empty() {
                    if !images {
                        writeln!(out, "\n## {}\n", escape_line(&plot.title))?;
                    }
                    if !panel.title.is_empty() {
                        writeln!(out, "\n{}", escape_line(&panel.title))?;
                    }
                    write!(out, "{}", panel.table.markdown())?;
                }
            }
        }
        writeln!(out, "\n## Arms\n{}", self.arms_table().markdown())?;
        writeln!(out, "{}", self.summarize_runs())?;
        if !self.discarded.is_empty() {
            writeln!(
                out,
                "\n## Discarded runs\n{}",
                self.discarded_table().markdown()
            )?;
        }
        for machine in &self.machines {
            let of = machine.agent.as_ref();
            let of = of.map_or(String::new(), |name| {
                format!(" of agent {}", escape_line(name))
            });
            writeln!(
                out,
                "\n## Machine{of}\n{}",
                machine_table(machine).markdown()
            )?;
        }
        writeln!(out, "\n## Commands\n{}", self.commands_table().markdown())
    }

    /// Returns the name of the experiment, its finding, and a summary of the runs, each on its own
    /// line.
    pub fn summary(&self) -> String {
        let (name, finding) = (&self.name, &self.finding.sentence);
        format!("{name}\n{finding}\n{}", self.summarize_runs())
    }

    /// Summarizes the number of runs, their dates, and how much the machine disturbed them.
    pub(super) fn summarize_runs(&self) -> String {
        let size = self
            .scale
            .as_ref()
            .map_or(String::new(), |name| format!(" (scale {name})"));
        format!(
            "{} runs in {} rounds count{size}, {} were discarded; {} to {}. At most, links were {} µs late \
             (p99), {} of processor time was stolen, and {} processes were running or runnable.",
            self.runs,
            self.rounds,
            self.discarded.len(),
            format_time(self.began_unix_s),
            format_time(self.ended_unix_s),
            self.link_late_us,
            format_percent(self.steal),
            format_number(self.load),
        )
    }

    pub(super) fn claims_table(&self) -> ReportTable {
        let head = [
            "expected",
            "where",
            "source",
            "rounds",
            "measured",
            "95 % interval",
            "geometric mean, ratio of means",
            "bounds",
            "verdict",
            "reason",
        ];
        let mut table = ReportTable::new(head);
        table.rows.extend(self.claims.iter().map(claim_row));
        table
    }

    pub(super) fn arms_table(&self) -> ReportTable {
        let head = [
            "arm",
            "quantity",
            "rounds",
            "median",
            "95 % interval",
            "mean",
            "min",
            "max",
            "spread",
        ];
        let mut table = ReportTable::new(head);
        for of in &self.arms {
            for (name, sample) in &of.values {
                let spread = sample.spread.map_or("–".into(), format_percent);
                table.rows.push(vec![
                    describe_arm(&of.arm),
                    name.clone(),
                    sample.n.to_string(),
                    format_number(sample.median),
                    sample.format_interval(),
                    format_number(sample.mean),
                    format_number(sample.min),
                    format_number(sample.max),
                    if sample.is_unstable() {
                        format!("{spread} unstable")
                    } else {
                        spread
                    },
                ]);
            }
            if of.runs == 0 {
                let mut row = vec![describe_arm(&of.arm), "no run counts".into(), "0".into()];
                row.resize(head.len(), "–".into());
                table.rows.push(row);
            }
        }
        table
    }

    pub(super) fn explain_spread_column() -> String {
        format!(
            "Spread is the standard deviation of the rounds' values divided by their mean. Above {}, an arm is \
             called unstable. The interval is that of the median, by order statistics; it \
             needs six rounds.",
            format_percent(SPREAD_MAX)
        )
    }

    pub(super) fn discarded_table(&self) -> ReportTable {
        let mut table = ReportTable::new(["arm", "round", "attempt", "reason"]);
        table.rows.extend(self.discarded.iter().map(|discarded| {
            vec![
                describe_arm(&discarded.arm),
                (discarded.round + 1).to_string(),
                (discarded.attempt + 1).to_string(),
                discarded.why.clone(),
            ]
        }));
        table
    }

    pub(super) fn commands_table(&self) -> ReportTable {
        let mut table = ReportTable::new(["component", "place", "command", "arms"]);
        table.rows.extend(self.commands.iter().map(|command| {
            vec![
                command.of.clone(),
                command.at.clone().unwrap_or("–".into()),
                command.run.trim().to_owned(),
                if command.arms.is_empty() {
                    "every arm".into()
                } else {
                    command.arms.join("; ")
                },
            ]
        }));
        table
    }
}

fn claim_row(claim: &ClaimResult) -> Vec<String> {
    let bounds = match (claim.at_least, claim.at_most) {
        _ if claim.source.is_some() => claim.source.clone().unwrap_or_default(),
        (None, None) => "–".into(),
        (Some(min), None) => format!("≥ {min}"),
        (None, Some(max)) => format!("≤ {max}"),
        (Some(min), Some(max)) => format!("{min} – {max}"),
    };
    let beside = claim.geometric_and_of_means;
    let measured = match claim.n {
        0 => "–".into(),
        _ => format_number(claim.value),
    };
    vec![
        claim.that.clone(),
        describe_arm(&claim.cell),
        claim.found.clone().unwrap_or("–".into()),
        claim.n.to_string(),
        measured,
        format_interval_or_range(claim.interval, claim.n, claim.range),
        beside.map_or("–".into(), |[geometric, means]| {
            format!("{}, {}", format_number(geometric), format_number(means))
        }),
        bounds,
        claim.verdict.as_words().into(),
        claim.because.clone().unwrap_or("–".into()),
    ]
}

/// Returns the path of a plot's image, which consists of the number and the title of the plot.
fn image_path(number: usize, plot: &PlotData) -> String {
    let mut name = String::new();
    for c in plot.title.chars().take(40) {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    format!("plots/{:02}-{}.svg", number + 1, name.trim_end_matches('-'))
}

/// Returns a table of the known properties of a machine.
pub(super) fn machine_table(machine: &MachineDescription) -> ReportTable {
    let mut table = ReportTable::new(["since", &format_time(machine.unix_s)]);
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    let cores = machine.cores.to_string();
    if let Some(agent) = &machine.agent {
        table.rows.push(vec!["agent".into(), agent.clone()]);
    }
    for (name, value) in [
        ("processor", machine.cpu.as_str()),
        ("cores", &cores),
        ("memory", &format!("{gib:.1} GiB")),
        ("kernel", &machine.kernel),
        ("system", &machine.system),
    ] {
        table.rows.push(vec![name.into(), value.into()]);
    }
    let versions = machine.versions.iter();
    table
        .rows
        .extend(versions.map(|(name, version)| vec![name.clone(), version.clone()]));
    table
}

/// Escapes a text so that it stays on one line.
pub(super) fn escape_line(text: &str) -> String {
    super::table::escape_html(text).replace(['\n', '\r'], " ")
}
