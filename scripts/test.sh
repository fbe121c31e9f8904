#!/usr/bin/env bash
# Everything that can be judged on this machine, section by section; ends with the counts.
# A section that fails does not hide the ones after it. Logs: target/test-logs.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH=$HOME/.cargo/bin:$PATH
# Built once and not again: what incremental builds keep would only fill the disk.
export CARGO_INCREMENTAL=0
logs=target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
began=$SECONDS
failed=()
running=

# section NAME MINUTES COMMAND…: what takes longer than that hangs, and is ended with all it started.
section() {
  local name=$1 minutes=$2 start=$SECONDS said=""
  shift 2
  printf '\n== %s ==\n' "$name"
  # In a group of its own, which the terminal's interrupt does not reach: the trap passes it on.
  exec {out}> >(tee "$logs/$name.log")
  tee=$!
  timeout --kill-after=20 "${minutes}m" "$@" >&"$out" 2>&1 &
  running=$!
  wait "$running"
  case $? in
    0) said=ok ;;
    124 | 137) said="FAILED: ended after $minutes minutes" ;;
    *) said=FAILED ;;
  esac
  exec {out}>&-
  # For tee to write the last of it; who outlives the section, and holds it, is not waited for.
  timeout 5 tail --pid="$tee" -f /dev/null
  printf -- '-- %s: %s, %s s\n' "$name" "$said" $((SECONDS - start))
  [ "$said" = ok ] || failed+=("$name")
}
trap 'kill "$running"; exit 130' INT TERM

install() {
  scripts/install.sh test || return 1
  scripts/players.sh
  scripts/storage.sh
  scripts/baselines.sh || return 1
  scripts/nats.sh
  scripts/nbmp.sh
  rustup component add rustfmt clippy 2>/dev/null || true
  cargo --version && ffmpeg -hide_banner -version | head -n 1
}
export -f install

section install 20 bash -c install
section fixtures 10 fixtures/make.sh
section format 2 cargo fmt --all --check
section clippy 15 cargo clippy --workspace --all-targets --locked -- -D warnings
section docs 15 env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked
section tests 40 cargo test --workspace --locked --no-fail-fast
section judges 25 scripts/judge.sh
section instructions 15 scripts/callgrind.sh
section licences 10 scripts/deny.sh
section fuzz 25 scripts/fuzz.sh "${FUZZ_SECONDS:-20}"

rust=$(awk '/^test result:/ {n += $4; f += $6} END {print n + 0 " Rust tests passed, " f + 0 " failed"}' "$logs/tests.log")
node=$(awk '/^# pass/ {p += $3} /^# fail/ {f += $3} END {print p + 0 " judge tests passed, " f + 0 " failed"}' "$logs/judges.log")
fuzzed=$(grep -c '^fuzzed ' "$logs/fuzz.log" 2>/dev/null)
skipped=$(cat "$logs"/*.log | grep -cE '^(# )?SKIPPED')
printf '\n== summary ==\n'
cat "$logs"/*.log | grep -oE '^(# )?SKIPPED.*' | sed 's/^# //' | sort | uniq -c
[ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[*]}"
echo "make test: $rust; $node; $fuzzed fuzz targets; $skipped skipped; $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ]
