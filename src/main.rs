//! The command line: dispatches each command to its crate.

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = build_command().get_matches();
    match matches.subcommand() {
        Some(("serve", flags)) => origin::serve(flags),
        Some(("index", flags)) => origin::index_command::run_index(flags),
        Some(("edge", flags)) => edge::run_command(flags),
        Some(("check", flags)) => origin::check::run_check(flags),
        Some(("load", flags)) => load::run(flags),
        Some(("lab", flags)) => lab::run(flags),
        Some(("completions", flags)) => print_completions(flags),
        _ => ExitCode::from(2),
    }
}

fn print_completions(flags: &ArgMatches) -> ExitCode {
    if let Some(shell) = flags.get_one::<Shell>("shell") {
        let mut command = build_command();
        clap_complete::generate(*shell, &mut command, "headwater", &mut std::io::stdout());
    }
    ExitCode::SUCCESS
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
        .subcommand(origin::config::serve_command())
        .subcommand(origin::index_command::index_command())
        .subcommand(edge::config::command())
        .subcommand(origin::check::check_command())
        .subcommand(load::command())
        .subcommand(lab::command())
        .subcommand(
            Command::new("completions")
                .about("Generate shell completions")
                .after_help("Examples:\n  source <(headwater completions bash)\n  headwater completions fish > ~/.config/fish/completions/headwater.fish")
                .arg(shell),
        )
}
