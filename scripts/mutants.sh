#!/usr/bin/env bash
# Changes the code in a sample of places, and checks that the tests of the changed crate fail.
#
#   scripts/mutants.sh [CRATE…]                       by default the crates of the servers
#   MUTANTS_FILES='crates/edge/src/disk*' scripts/mutants.sh edge
#
# MUTANTS_SAMPLE (default 12) is the least number of mutants per crate, and MUTANTS_SEED (default 1) selects
# them: the same seed selects the same mutants of the same code. Works on a clone of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export PATH=$root/target/tools/bin:$PATH
scripts/cargo_tool.sh cargo-mutants
tree=$root/target/mutants/tree
# Kept between runs, so that the dependencies are built once.
export CARGO_TARGET_DIR=$root/target/mutants/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
rm -rf "$tree"
mkdir -p "$root/target/mutants"
git clone --quiet --shared "$root" "$tree"
cd "$tree"
crates=("$@")
[ $# -gt 0 ] || crates=(http1 net store upstream media edge origin)

count() { cat "$1/mutants.out/$2.txt" 2> /dev/null | wc -l; }

for crate in "${crates[@]}"; do
  options=(--package "$crate" ${MUTANTS_FILES:+--file "$MUTANTS_FILES"})
  total=$(cargo mutants --list "${options[@]}" | wc -l)
  shards=$((total / ${MUTANTS_SAMPLE:-12}))
  [ "$shards" -gt 0 ] || shards=1
  out=$root/target/mutants/$crate
  rm -rf "$out"
  mkdir -p "$out"
  # Exit status 2 and 3 mean that mutants survived or timed out.
  cargo mutants --in-place "${options[@]}" --shard "$((${MUTANTS_SEED:-1} % shards))/$shards" \
    --sharding round-robin --minimum-test-timeout 120 --output "$out" > "$out/log" 2>&1 ||
    { status=$?; [ $status -eq 2 ] || [ $status -eq 3 ] || { tail -n 40 "$out/log"; exit $status; }; }
  caught=$(($(count "$out" caught) + $(count "$out" timeout)))
  echo "$crate: $caught of $((caught + $(count "$out" missed))) caught, shard $((${MUTANTS_SEED:-1} % shards))/$shards"
  sed 's/^/  missed: /' "$out/mutants.out/missed.txt"
done
