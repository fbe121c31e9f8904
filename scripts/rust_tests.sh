#!/usr/bin/env bash
# Runs all Rust tests in three runs beside each other: unit and documentation tests, the tests of whole programs
# (`e2e`), and all other integration tests. Many tests wait for timers and other processes, and cargo runs one test
# binary at a time, so a single run would leave the cores idle.
#
#   scripts/rust_tests.sh [--quick] [FLAG…]      flags of cargo test, such as --no-fail-fast
#
# --quick runs only the unit tests and `tidy`: all tests use about ten minutes of two cores.
set -uo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --quick ]; then
  shift
  exec cargo test --workspace --locked --lib --bins --test tidy "$@"
fi
# Selecting the whole workspace in every run keeps the features of all crates, and so their builds, equal.
run=(cargo test --workspace --locked "$@")
"${run[@]}" --no-run || exit 1

# The names of all integration tests but `e2e`, as flags.
list_others='import json, sys
tests = {t["name"] for p in json.load(sys.stdin)["packages"] for t in p["targets"] if "test" in t["kind"]}
print(*(f"--test={name}" for name in sorted(tests - {"e2e"})))'
read -ra others < <(cargo metadata --no-deps --locked --format-version 1 | python3 -c "$list_others")
[ ${#others[@]} -gt 0 ] || { echo "the integration tests cannot be listed: cargo metadata or python3 failed" >&2; exit 1; }

logs=$(mktemp -d)
# Ctrl-C does not reach commands in the background. Each has a process group of its own (set -m), which the trap ends.
jobs=()
trap 'for job in "${jobs[@]}"; do kill -- "-$job" 2> /dev/null; done; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
set -m
{ "${run[@]}" --lib --bins; units=$?; "${run[@]}" --doc; docs=$?; exit $((units || docs)); } > "$logs/units" 2>&1 < /dev/null &
jobs+=($!)
"${run[@]}" --test e2e > "$logs/e2e" 2>&1 < /dev/null &
jobs+=($!)
"${run[@]}" "${others[@]}" < /dev/null &
jobs+=($!)
set +m
wait "${jobs[2]}"
integration=$?
wait "${jobs[0]}"
units=$?
wait "${jobs[1]}"
e2e=$?
jobs=()
cat "$logs/units" "$logs/e2e"
[ $integration -eq 0 ] || echo "FAILED: integration tests other than e2e (at the top)"
[ $units -eq 0 ] || echo "FAILED: unit or documentation tests"
[ $e2e -eq 0 ] || echo "FAILED: e2e"
exit $((integration || units || e2e))
