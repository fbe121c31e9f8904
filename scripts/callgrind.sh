#!/usr/bin/env bash
# Counts the instructions of the hot paths and compares them with bench/callgrind.json; see
# bench/callgrind.py, which it hands its words.
set -euo pipefail
cd "$(dirname "$0")/.."
examples=(-p media --example hot -p origin --example serve -p edge --example edge)
# As in `make test`: a program built in increments counts otherwise.
export CARGO_INCREMENTAL=0
cargo build --locked --config bench/callgrind.toml --features origin/counted,edge/counted "${examples[@]}"
exec python3 bench/callgrind.py "$@"
