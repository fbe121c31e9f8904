#!/usr/bin/env bash
# Runs each fuzz target for a few seconds from the committed corpus, one target per core at a time.
#
#   scripts/fuzz.sh SECONDS [TARGET…]      0 seconds: only build the targets
#
# FUZZ_SEED (default 1) seeds the mutations: the same seed tries the same inputs in the same order.
# FUZZ_RECORD=1 adds time, inputs and coverage to fuzz/record.tsv.
set -euo pipefail
cd "$(dirname "$0")/.."
export seconds=${1:?seconds per target}
shift
[ -f fuzz/Cargo.toml ] || { echo "SKIPPED fuzzing: no fuzz targets"; exit 0; }
export PATH=$PWD/target/tools/bin:$PATH
scripts/cargo_tool.sh cargo-fuzz || {
  echo "SKIPPED fuzzing: cargo-fuzz is unavailable"
  exit 0
}
# Coverage and sanitizer flags are unstable; this makes a stable compiler accept them.
export RUSTC_BOOTSTRAP=1
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
[ $# -eq 1 ] && only=$1 || only=
mkdir -p target/fuzz-finds
# One build for all targets; each run below then starts at once.
cargo fuzz build ${only:+"$only"} > target/fuzz-finds/build.log 2>&1 || {
  tail -n 40 target/fuzz-finds/build.log
  echo "FAILED: the fuzz targets do not compile"
  exit 1
}
[ "$seconds" -gt 0 ] || exit 0

# fuzz TARGET: writes failing inputs and new corpus files to target/; only the seeds in fuzz/corpus are
# committed.
fuzz() {
  local target=$1 log=target/fuzz-finds/$1.log seeds=() runs edges
  mkdir -p "target/fuzz-corpus/$target"
  [ -d "fuzz/corpus/$target" ] && seeds=("fuzz/corpus/$target")
  if ! cargo fuzz run "$target" "target/fuzz-corpus/$target" "${seeds[@]}" -- \
    -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix=target/fuzz-finds/ > "$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz target $target FAILED; the input is in target/fuzz-finds"
    return 1
  fi
  runs=$(sed -n 's/stat::number_of_executed_units: *//p' "$log")
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d ' ' -f 2)
  echo "fuzzed $target for $seconds s: ${runs:-?} inputs, ${edges:-?} edges"
  [ -z "${FUZZ_RECORD:-}" ] || flock fuzz/record.tsv scripts/fuzz_record.sh "$target" "$seconds" "$runs" "$edges"
}
export -f fuzz
# A target uses one core. Exit status 255 makes xargs start no further target after a failure.
printf '%s\n' "${targets[@]}" |
  xargs -n 1 -P "$(nproc)" bash -c 'fuzz "$0" || exit 255' || exit 1 # not 124, which is a timeout elsewhere
