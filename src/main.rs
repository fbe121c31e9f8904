//! Words to programs.

use clap::{Arg, Command, value_parser};
use clap_complete::Shell;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = command().get_matches();
    match matches.subcommand() {
        Some(("serve", flags)) => origin::serve(flags),
        Some(("index", flags)) => origin::prepare::index(flags),
        Some(("edge", flags)) => edge::edge(flags),
        Some(("check", flags)) => origin::check::check(flags),
        Some(("load", flags)) => load::run(flags),
        Some(("lab", flags)) => lab::run(flags),
        Some(("completions", flags)) => {
            if let Some(shell) = flags.get_one::<Shell>("shell") {
                clap_complete::generate(
                    *shell,
                    &mut command(),
                    "headwater",
                    &mut std::io::stdout(),
                );
            }
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

fn command() -> Command {
    let shell = Arg::new("shell")
        .required(true)
        .value_parser(value_parser!(Shell));
    Command::new("headwater")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Video on demand from plain files")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(origin::config::command())
        .subcommand(origin::prepare::command())
        .subcommand(edge::config::command())
        .subcommand(origin::check::command())
        .subcommand(load::command())
        .subcommand(lab::command())
        .subcommand(
            Command::new("completions")
                .about("Print what makes a shell complete headwater's words")
                .after_help("Examples:\n  source <(headwater completions bash)\n  headwater completions fish > ~/.config/fish/completions/headwater.fish")
                .arg(shell),
        )
}
