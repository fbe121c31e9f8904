#!/usr/bin/env bash
# Builds and counts the instructions of the hot paths, and compares them with bench/callgrind.json. The
# arguments are those of bench/callgrind.py.
#
#   scripts/callgrind.sh build     only builds
set -euo pipefail
cd "$(dirname "$0")/.."
examples=(-p media --example hot -p origin --example serve -p edge --example edge)
# As in `make test`: an incremental build has other instruction counts.
export CARGO_INCREMENTAL=0
cargo build --locked --config bench/callgrind.toml --features origin/counted,edge/counted "${examples[@]}"
# Copies, because `cargo test` writes the same examples, not optimised, to the same folder.
programs=target/callgrind-programs
mkdir -p $programs
for name in hot serve edge; do
  cp target/debug/examples/$name $programs/.$name
  mv $programs/.$name $programs/$name
done
[ "${1:-}" = build ] || exec python3 bench/callgrind.py "$@"
