//! Runs `headwater edge` alone, so that `bench/callgrind.py` can count its instructions without
//! building the other programs.

use std::process::ExitCode;

fn main() -> ExitCode {
    edge::run_command(&edge::config::command().get_matches())
}
