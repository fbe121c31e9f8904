//! `headwater lab report`, `compare` and `index`.

use super::experiment::{plan, read, scale, text_of};
use super::{Stop, say};
use crate::experiment::{Machine, Plan, Record};
use crate::report::{Comparison, Folder, Report, index as index_of};
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FORMS: [&str; 3] = ["html", "json", "markdown"];

fn forms() -> [Arg; 3] {
    FORMS.map(|name| {
        let arg = Arg::new(name).long(name).value_name("FILE");
        arg.help(format!("Write it as {name}; - is standard output"))
    })
}

/// The words.
pub(super) fn commands() -> [Command; 3] {
    let dir = || Arg::new("dir").required(true).value_name("DIR");
    [
        Command::new("report")
            .about("Say again what the runs of a folder showed")
            .long_about(
                "Say again what the runs of a folder showed: on standard output and in DIR/report.html, \
                 .json and .md, or only in the files that are named",
            )
            .after_help(
                "Example:\n  headwater lab report results/congestion --html congestion.html",
            )
            .arg(dir().help("A run's --out"))
            .arg(scale())
            .args(forms()),
        Command::new("compare")
            .about("Set runs of one experiment beside each other, of two days or two machines")
            .after_help(
                "Each is compared with the first: ratios of means with 95 % intervals, changes beyond the \
                 noise of rounds marked, and what differs in machines and programs.\n\n\
                 Example:\n  headwater lab compare results/monday results/tuesday --html compared.html",
            )
            .arg(dir().num_args(2..).help("Runs' --out"))
            .args(forms()),
        Command::new("index")
            .about("List the reports of a folder, in its README.md")
            .after_help("Example:\n  headwater lab index docs/results")
            .arg(dir().help("A folder of folders with report.json")),
    ]
}

/// `report`.
pub(super) fn report(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let dir = PathBuf::from(text_of(flags, "dir"));
    let scale = flags.get_one::<String>("scale").map(String::as_str);
    let held = Held::read(&dir, scale)?;
    let report = Report::new(&held.plan, &held.text, &held.records, held.machines);
    let json = report.json()?;
    if !written(
        flags,
        [&|| report.html(), &|| json.clone(), &|| report.markdown()],
    )? {
        keep(&report, &dir)?;
        say(report.markdown());
    }
    Ok(ended(&report))
}

/// `compare`.
pub(super) fn compare(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let mut folders = Vec::new();
    for dir in flags.get_many::<String>("dir").into_iter().flatten() {
        let held = Held::read(Path::new(dir), None)?;
        folders.push(Folder {
            name: dir.trim_end_matches('/').to_owned(),
            plan: held.plan,
            records: held.records,
            machines: held.machines,
        });
    }
    let found = Comparison::new(&folders);
    let json = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())? + "\n";
    if !written(
        flags,
        [&|| found.html(), &|| json.clone(), &|| found.markdown()],
    )? {
        say(found.markdown());
    }
    Ok(ExitCode::SUCCESS)
}

/// `index`.
pub(super) fn index(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let dir = Path::new(text_of(flags, "dir"));
    let text = index_of(dir)?;
    write(&dir.join("README.md"), &text)?;
    say(text);
    Ok(ExitCode::SUCCESS)
}

/// After a run: all forms beside its records, and in words.
pub(super) fn tell(plan: &Plan, text: &str, dir: &Path) -> Result<ExitCode, Stop> {
    let records = Record::read_all(&dir.join("runs.jsonl"))?;
    let report = Report::new(plan, text, &records, Machine::read_all(dir)?);
    keep(&report, dir)?;
    say(report.markdown());
    Ok(ended(&report))
}

fn ended(report: &Report) -> ExitCode {
    match report.failed() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

fn keep(report: &Report, dir: &Path) -> Result<(), Stop> {
    write(&dir.join("report.html"), &report.html())?;
    write(&dir.join("report.json"), &report.json()?)?;
    write(&dir.join("report.md"), &report.markdown())
}

/// What a run's folder holds.
struct Held {
    plan: Plan,
    text: String,
    machines: Vec<Machine>,
    records: Vec<Record>,
}

impl Held {
    /// In the size that was run, unless another is asked for.
    fn read(dir: &Path, scale: Option<&str>) -> Result<Held, Stop> {
        let machines = Machine::read_all(dir)?;
        let ran = machines.last().and_then(|machine| machine.scale.clone());
        let path = dir.join("document.toml").display().to_string();
        let text = read(&path)?;
        let scale = scale.map(str::to_owned).or(ran);
        let (plan, text) = plan(&path, &text, scale.as_deref())?;
        Ok(Held {
            plan,
            records: Record::read_all(&dir.join("runs.jsonl"))?,
            machines,
            text,
        })
    }
}

/// The forms that are asked for, in the order of [`FORMS`]; whether there was one.
fn written(flags: &ArgMatches, forms: [&dyn Fn() -> String; 3]) -> Result<bool, Stop> {
    let mut any = false;
    for (name, form) in FORMS.into_iter().zip(forms) {
        if let Some(path) = flags.get_one::<String>(name) {
            any = true;
            match path.as_str() {
                "-" => say(form()),
                path => write(Path::new(path), &form())?,
            }
        }
    }
    Ok(any)
}

fn write(path: &Path, text: &str) -> Result<(), Stop> {
    let done = std::fs::write(path, text);
    Ok(done.map_err(|error| format!("{}: {error}", path.display()))?)
}
