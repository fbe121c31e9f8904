#!/usr/bin/env bash
# Runs all Rust tests: unit and documentation tests beside the integration tests. Many integration tests
# wait for timers and other processes, and cargo runs one test binary at a time, so that a single run
# would leave the cores idle.
#
#   scripts/rust_tests.sh [FLAG…]      flags of cargo test, such as --no-fail-fast
set -uo pipefail
cd "$(dirname "$0")/.."
# Selecting the whole workspace in every run keeps the features of all crates, and so their builds, equal.
run=(cargo test --workspace --locked "$@")
"${run[@]}" --no-run || exit 1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ "${run[@]}" --lib --bins; units=$?; "${run[@]}" --doc; docs=$?; exit $((units || docs)); } > "$log" 2>&1 &
units=$!
"${run[@]}" --test '*'
integration=$?
wait "$units"
units=$?
cat "$log"
[ $integration -eq 0 ] || echo "FAILED: integration tests (above the unit tests)"
[ $units -eq 0 ] || echo "FAILED: unit or documentation tests"
exit $((integration || units))
