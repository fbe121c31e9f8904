//! `headwater lab report`, `compare` and `index`.

use super::command_error::CommandError;
use super::experiment::{argument_value, parse_plan, read_document_text, scale_argument};
use super::output::print_output;
use crate::experiment::{FileError, MachineDescription, RunPlan, RunRecord};
use crate::report::{
    ExperimentReport, FolderComparison, ResultSet, index_reports as index_of, read_report,
};
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FORMS: [&str; 3] = ["html", "json", "markdown"];

fn define_format_arguments() -> [Arg; 3] {
    FORMS.map(|name| {
        let arg = Arg::new(name).long(name).value_name("FILE");
        arg.help(format!("Write the report as {name}; - for standard output"))
    })
}

/// Defines the commands.
pub(super) fn define_commands() -> [Command; 3] {
    let dir = || Arg::new("dir").required(true).value_name("DIR");
    [
        Command::new("report")
            .about("Regenerate the report of a result folder")
            .after_help(
                "Writes the report to standard output and to DIR/report.html, .json, .md and plots. With \
                 --html,\n--json or --markdown, writes only these files. A folder needs document.toml, machine.jsonl \
                 and\nruns.jsonl or runs.jsonl.zst. In a folder with nothing but report.json or report.json.gz, \
                 regenerates\nreport.md and plots.\n\n\
                 Example:\n  headwater lab report results/congestion --html congestion.html",
            )
            .arg(dir().help("Result folder of a run"))
            .arg(scale_argument())
            .args(define_format_arguments()),
        Command::new("compare")
            .about("Compare runs of one experiment, such as two days or two machines")
            .after_help(
                "Compares each folder with the first one: ratios of means with 95 % intervals, changes beyond the \
                 noise of rounds, and differences of machines and programs.\n\n\
                 Example:\n  headwater lab compare results/monday results/tuesday --html compared.html",
            )
            .arg(dir().num_args(2..).help("Result folders of runs"))
            .args(define_format_arguments()),
        Command::new("index")
            .about("Write a list of a folder's reports into its README.md")
            .after_help("Example:\n  headwater lab index docs/results")
            .arg(dir().help("A folder of folders with report.json or report.json.gz")),
    ]
}

/// `report`.
pub(super) fn run_report_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let dir = PathBuf::from(argument_value(flags, "dir"));
    let scale = flags.get_one::<String>("scale").map(String::as_str);
    if !dir.join("document.toml").exists()
        && let Some(report) = read_report(&dir)?
    {
        return render_stored_report(&report, &dir);
    }
    let held = ResultFolder::read_result_folder(&dir, scale)?;
    let report = ExperimentReport::new(&held.plan, &held.text, &held.records, held.machines);
    let json = report.json()?;
    if !write_requested_formats(
        flags,
        [&|| report.html(), &|| json.clone(), &|| report.markdown()],
    )? {
        write_report(&report, &dir)?;
        print_output(report.markdown());
    }
    Ok(exit_code(&report))
}

/// Writes the Markdown and the images of a stored report.
fn render_stored_report(report: &ExperimentReport, dir: &Path) -> Result<ExitCode, CommandError> {
    write_illustrated(report, dir)?;
    print_output(report.markdown());
    Ok(ExitCode::SUCCESS)
}

/// `compare`.
pub(super) fn run_compare(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let mut folders = Vec::new();
    for dir in flags.get_many::<String>("dir").into_iter().flatten() {
        let held = ResultFolder::read_result_folder(Path::new(dir), None)?;
        folders.push(ResultSet {
            name: dir.trim_end_matches('/').to_owned(),
            plan: held.plan,
            records: held.records,
            machines: held.machines,
        });
    }
    let found = FolderComparison::new(&folders);
    let json = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())? + "\n";
    if !write_requested_formats(
        flags,
        [&|| found.html(), &|| json.clone(), &|| found.markdown()],
    )? {
        print_output(found.markdown());
    }
    Ok(ExitCode::SUCCESS)
}

/// `index`.
pub(super) fn run_index_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    let dir = Path::new(argument_value(flags, "dir"));
    let text = index_of(dir)?;
    write_file(&dir.join("README.md"), &text)?;
    print_output(text);
    Ok(ExitCode::SUCCESS)
}

/// Writes all formats of the report for `lab run`. Prints a summary and the path of the HTML page.
pub(super) fn report_results(
    plan: &RunPlan,
    text: &str,
    dir: &Path,
) -> Result<ExitCode, CommandError> {
    let records = RunRecord::read_all_records(dir)?;
    let report = ExperimentReport::new(
        plan,
        text,
        &records,
        MachineDescription::read_machine_descriptions(dir)?,
    );
    write_report(&report, dir)?;
    let page = dir.join("report.html");
    print_output(format_args!("{}\n{}\n", report.summary(), page.display()));
    Ok(exit_code(&report))
}

fn exit_code(report: &ExperimentReport) -> ExitCode {
    match report.has_failed() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

fn write_report(report: &ExperimentReport, dir: &Path) -> Result<(), CommandError> {
    RunRecord::compress_records(dir)?;
    write_file(&dir.join("report.html"), &report.html())?;
    write_file(&dir.join("report.json"), &report.json()?)?;
    write_illustrated(report, dir)
}

fn write_illustrated(report: &ExperimentReport, dir: &Path) -> Result<(), CommandError> {
    let plots = dir.join("plots");
    // Removes old images, because some of their plots may be missing from the new report.
    match std::fs::remove_dir_all(&plots) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FileError::new(&plots, error).into());
        }
        _ => {}
    }
    std::fs::create_dir_all(&plots).map_err(|error| FileError::new(&plots, error))?;
    for (path, image) in report.images() {
        write_file(&dir.join(path), &image)?;
    }
    write_file(&dir.join("report.md"), &report.illustrated_markdown())
}

/// Contents of a result folder.
struct ResultFolder {
    plan: RunPlan,
    text: String,
    machines: Vec<MachineDescription>,
    records: Vec<RunRecord>,
}

impl ResultFolder {
    /// Reads a folder. If `scale` is `None`, uses the scale of the last recorded run.
    fn read_result_folder(dir: &Path, scale: Option<&str>) -> Result<ResultFolder, CommandError> {
        let machines = MachineDescription::read_machine_descriptions(dir)?;
        let ran = machines.last().and_then(|machine| machine.scale.clone());
        let path = dir.join("document.toml").display().to_string();
        let text = read_document_text(&path)?;
        let scale = scale.map(str::to_owned).or(ran);
        let (plan, text) = parse_plan(&path, &text, scale.as_deref())?;
        Ok(ResultFolder {
            plan,
            records: RunRecord::read_all_records(dir)?,
            machines,
            text,
        })
    }
}

/// Writes the requested formats of a report. `forms` contains one function per format, in the order
/// of [`FORMS`]. Returns whether any format was requested.
fn write_requested_formats(
    flags: &ArgMatches,
    forms: [&dyn Fn() -> String; 3],
) -> Result<bool, CommandError> {
    let mut any = false;
    for (name, form) in FORMS.into_iter().zip(forms) {
        if let Some(path) = flags.get_one::<String>(name) {
            any = true;
            match path.as_str() {
                "-" => print_output(form()),
                path => write_file(Path::new(path), &form())?,
            }
        }
    }
    Ok(any)
}

fn write_file(path: &Path, text: &str) -> Result<(), CommandError> {
    let done = std::fs::write(path, text);
    Ok(done.map_err(|error| format!("{}: {error}", path.display()))?)
}
