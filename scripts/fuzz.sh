#!/usr/bin/env bash
# Runs each fuzz target for a few seconds, starting from the kept corpus.
#
#   scripts/fuzz.sh SECONDS [TARGET…]
#
# FUZZ_SEED: the same seed tries the same inputs in the same order; another looks elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds a target}
shift
[ -f fuzz/Cargo.toml ] || { echo "SKIPPED fuzzing: no fuzz targets"; exit 0; }
export PATH=$PWD/target/tools/bin:$PATH
if ! command -v cargo-fuzz >/dev/null; then
  cargo install --quiet --locked --debug --root target/tools cargo-fuzz || {
    echo "SKIPPED fuzzing: cargo-fuzz cannot be had"
    exit 0
  }
fi
# Coverage and sanitizer flags are unstable; this makes a stable compiler accept them.
export RUSTC_BOOTSTRAP=1
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
# Finds go to target; only the seeds in fuzz/corpus are kept with the code.
for target in "${targets[@]}"; do
  mkdir -p "target/fuzz-corpus/$target" "target/fuzz-finds"
  seeds=()
  [ -d "fuzz/corpus/$target" ] && seeds=("fuzz/corpus/$target")
  log=target/fuzz-finds/$target.log
  if ! cargo fuzz run "$target" "target/fuzz-corpus/$target" "${seeds[@]}" -- \
    -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix=target/fuzz-finds/ >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "fuzz target $target FAILED; the input is in target/fuzz-finds"
    exit 1
  fi
  runs=$(sed -n 's/stat::number_of_executed_units: *//p' "$log")
  echo "fuzzed $target for $seconds s: ${runs:-?} inputs"
done
