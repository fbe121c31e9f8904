#!/usr/bin/env bash
# Runs random faults against the edge for FAULT_SECONDS (default 60), and checks that they find every planted bug.
#
#   FAULT_SEED=17 scripts/faults.sh      replays a seed
set -euo pipefail
cd "$(dirname "$0")/.."
export FAULT_SECONDS=${FAULT_SECONDS:-60}
# The tests of other sections use the binary without planted bugs.
trap 'cargo build --locked --quiet' EXIT
cargo test --locked --features planted-bugs --test faults -- --nocapture --test-threads=1
