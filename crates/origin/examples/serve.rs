//! `headwater serve` and nothing else, so that its instructions can be counted without building
//! the other programs: see `bench/callgrind.py`.

use std::process::ExitCode;

fn main() -> ExitCode {
    origin::serve(&origin::config::serve_command().get_matches())
}
