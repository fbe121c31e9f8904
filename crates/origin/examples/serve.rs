//! A program that contains only `headwater serve`. `bench/callgrind.py` counts the CPU instructions
//! of this program, and therefore need not build the other programs.

use std::process::ExitCode;

fn main() -> ExitCode {
    origin::serve(&origin::config::define_serve_command().get_matches())
}
