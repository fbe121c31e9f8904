//! Dispatches each command of the command line to its crate.

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

mod health;
mod man_pages;

fn main() -> ExitCode {
    let command = build_command();
    warn_of_unknown_variables(&command);
    let matches = shorten_help(command).get_matches();
    match matches.subcommand() {
        Some(("serve", flags)) => origin::serve(flags),
        Some(("index", flags)) => origin::index_command::run_index(flags),
        Some(("edge", flags)) => edge::run_edge_command(flags),
        Some(("check", flags)) => origin::check::run_check(flags),
        Some(("load", flags)) => load::run(flags),
        Some(("lab", flags)) => lab::run_lab_command(flags),
        Some(("health", flags)) => health::check_health(flags),
        Some(("completions", flags)) => print_completions(flags),
        Some(("man-pages", flags)) => man_pages::write_man_pages(build_command(), flags),
        _ => ExitCode::from(2),
    }
}

fn print_completions(flags: &ArgMatches) -> ExitCode {
    if let Some(shell) = flags.get_one::<Shell>("shell") {
        let (mut command, mut script) = (build_command(), Vec::new());
        clap_complete::generate(*shell, &mut command, "headwater", &mut script);
        let mut output = std::io::stdout().lock();
        let written = output.write_all(&script).and_then(|()| output.flush());
        // The reader may have closed the pipe (`| head`).
        if let Err(error) = written
            && error.kind() != ErrorKind::BrokenPipe
        {
            eprintln!("headwater: cannot write the completions: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Warns about environment variables that look like settings but belong to no command.
fn warn_of_unknown_variables(command: &Command) {
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let settings = command.get_subcommands().flat_map(option_names);
    for warning in origin::config::unknown_variables(settings, variables) {
        // Ignores an error, because the parent process may have closed standard error.
        let _ = writeln!(std::io::stderr(), "headwater: warning: {warning}");
    }
}

/// Returns the names of the options of a command and of all its subcommands.
fn option_names(command: &Command) -> Vec<&str> {
    let own = command
        .get_arguments()
        .map(|option| option.get_id().as_str());
    let others = command.get_subcommands().flat_map(option_names);
    own.chain(others).collect()
}

/// Shows only the most useful options if `-h` requests the help. `--help` shows all options.
fn shorten_help(command: Command) -> Command {
    if !std::env::args_os().any(|argument| argument == "-h") {
        return command;
    }
    command
        .mut_subcommand("serve", origin::config::shorten_serve_help)
        .mut_subcommand("edge", edge::config::shorten_edge_help)
}

fn build_command() -> Command {
    let shell = Arg::new("shell")
        .required(true)
        .value_parser(value_parser!(Shell));
    Command::new("headwater")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Video on demand from plain files")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(origin::config::define_serve_command())
        .subcommand(origin::index_command::define_index_command())
        .subcommand(edge::config::define_edge_command())
        .subcommand(origin::check::define_check_command())
        .subcommand(load::command())
        .subcommand(lab::define_lab_command())
        .subcommand(health::health_command())
        .subcommand(man_pages::man_pages_command())
        .subcommand(
            Command::new("completions")
                .about("Generate shell completions")
                .after_help("Examples:\n  source <(headwater completions bash)\n  headwater completions fish > ~/.config/fish/completions/headwater.fish")
                .arg(shell),
        )
}
