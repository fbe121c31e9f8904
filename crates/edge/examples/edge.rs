//! Builds `headwater edge` as a separate program. `bench/callgrind.py` counts the instructions of
//! this program without building the other programs.

use std::process::ExitCode;

fn main() -> ExitCode {
    edge::run_edge_command(&edge::config::define_edge_command().get_matches())
}
