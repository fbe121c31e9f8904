//! The report as Markdown: everything but what must be seen.

use super::arms::{SPREAD_MAX, words};
use super::claims::Claim;
use super::plots::Shape;
use super::table::{Table, moment, number, percent, range};
use super::{Machine, Report};
use std::fmt::Write;

impl Report {
    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "# {}\n\n**{}**\n",
            line(&self.name),
            line(&self.finding.says)
        )?;
        for one in &self.finding.lines {
            writeln!(out, "- {}", line(one))?;
        }
        writeln!(out, "\nThe question: {}", line(&self.question))?;
        if !self.found.is_empty() {
            writeln!(out, "\nThe source found: {}", line(&self.found))?;
        }
        if !self.claims.is_empty() {
            writeln!(
                out,
                "\n## Expected and measured\n{}",
                self.claims_table().markdown()
            )?;
        }
        for plot in &self.plots {
            for panel in &plot.panels {
                // What the arms' table says already is not said twice.
                let told = matches!(panel.shape, Shape::Bars { .. } | Shape::Boxes { .. });
                if !told && !panel.table.rows.is_empty() {
                    writeln!(out, "\n## {}\n", line(&plot.title))?;
                    if !panel.title.is_empty() {
                        writeln!(out, "{}", line(&panel.title))?;
                    }
                    write!(out, "{}", panel.table.markdown())?;
                }
            }
        }
        writeln!(out, "\n## Arms\n{}", self.arms_table().markdown())?;
        writeln!(out, "{}", self.conduct())?;
        if !self.thrown.is_empty() {
            writeln!(out, "\n## Thrown away\n{}", self.thrown_table().markdown())?;
        }
        for machine in &self.machines {
            let of = machine.agent.as_ref();
            let of = of.map_or(String::new(), |name| format!(" of agent {}", line(name)));
            writeln!(
                out,
                "\n## Machine{of}\n{}",
                machine_table(machine).markdown()
            )?;
        }
        writeln!(out, "\n## Commands\n{}", self.commands_table().markdown())
    }

    /// How much was run, and how undisturbed.
    pub(super) fn conduct(&self) -> String {
        let size = self
            .scale
            .as_ref()
            .map_or(String::new(), |name| format!(" (scale {name})"));
        format!(
            "{} runs in {} rounds count{size}, {} were thrown away; {} to {}. Links were at most {} µs \
             late (p99), {} of processor time was stolen at most, at most {} processes ran or waited.",
            self.runs,
            self.rounds,
            self.thrown.len(),
            moment(self.began_unix_s),
            moment(self.ended_unix_s),
            self.link_late_us,
            percent(self.steal),
            number(self.load),
        )
    }

    pub(super) fn claims_table(&self) -> Table {
        let head = [
            "expected",
            "where",
            "the source",
            "rounds",
            "measured",
            "95 %",
            "median, of means",
            "bounds",
            "verdict",
            "why",
        ];
        let mut table = Table::new(head);
        table.rows.extend(self.claims.iter().map(claim_row));
        table
    }

    pub(super) fn arms_table(&self) -> Table {
        let head = [
            "arm", "quantity", "n", "mean", "95 %", "median", "least", "greatest", "spread",
        ];
        let mut table = Table::new(head);
        for of in &self.arms {
            for (name, sample) in &of.values {
                let spread = sample.spread.map_or("–".into(), percent);
                table.rows.push(vec![
                    words(&of.arm),
                    name.clone(),
                    sample.n.to_string(),
                    number(sample.mean),
                    range(sample.interval),
                    number(sample.median),
                    number(sample.min),
                    number(sample.max),
                    if sample.unstable() {
                        format!("{spread} unstable")
                    } else {
                        spread
                    },
                ]);
            }
            if of.runs == 0 {
                let mut row = vec![words(&of.arm), "no run counts".into(), "0".into()];
                row.resize(head.len(), "–".into());
                table.rows.push(row);
            }
        }
        table
    }

    pub(super) fn spread_words() -> String {
        format!(
            "Spread is the standard deviation of the rounds' values by their mean; above {} an arm is called \
             unstable.",
            percent(SPREAD_MAX)
        )
    }

    pub(super) fn thrown_table(&self) -> Table {
        let mut table = Table::new(["arm", "round", "try", "why"]);
        table.rows.extend(self.thrown.iter().map(|thrown| {
            vec![
                words(&thrown.arm),
                (thrown.round + 1).to_string(),
                (thrown.attempt + 1).to_string(),
                thrown.why.clone(),
            ]
        }));
        table
    }

    pub(super) fn commands_table(&self) -> Table {
        let mut table = Table::new(["of", "at", "command", "in"]);
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

fn claim_row(claim: &Claim) -> Vec<String> {
    let bounds = match (claim.at_least, claim.at_most) {
        (None, None) => "–".into(),
        (Some(least), None) => format!("≥ {least}"),
        (None, Some(most)) => format!("≤ {most}"),
        (Some(least), Some(most)) => format!("{least} – {most}"),
    };
    let beside = claim.median_and_of_means;
    vec![
        claim.that.clone(),
        words(&claim.cell),
        claim.found.clone().unwrap_or("–".into()),
        claim.n.to_string(),
        number(claim.value),
        range(claim.interval),
        beside.map_or("–".into(), |[median, means]| {
            format!("{}, {}", number(median), number(means))
        }),
        bounds,
        claim.verdict.word().into(),
        claim.because.clone().unwrap_or("–".into()),
    ]
}

/// What is known of a machine.
pub(super) fn machine_table(machine: &Machine) -> Table {
    let mut table = Table::new(["since", &moment(machine.unix_s)]);
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

/// Text that stays text: no element, no line of its own.
pub(super) fn line(text: &str) -> String {
    super::table::escape(text).replace(['\n', '\r'], " ")
}
