//! `headwater edge` and nothing else, so that its instructions can be counted without building
//! the other programs: see `bench/callgrind.py`.

use std::process::ExitCode;

fn main() -> ExitCode {
    edge::edge(&edge::config::command().get_matches())
}
