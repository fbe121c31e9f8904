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

# section NAME COMMAND…
section() {
  local name=$1 start=$SECONDS
  shift
  printf '\n== %s ==\n' "$name"
  if "$@" 2>&1 | tee "$logs/$name.log"; then
    printf -- '-- %s: ok, %s s\n' "$name" $((SECONDS - start))
  else
    printf -- '-- %s: FAILED, %s s\n' "$name" $((SECONDS - start))
    failed+=("$name")
  fi
}

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

section install install
section fixtures fixtures/make.sh
section format cargo fmt --all --check
section clippy cargo clippy --workspace --all-targets --locked -- -D warnings
section docs env RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked
section tests cargo test --workspace --locked --no-fail-fast
section judges scripts/judge.sh
section instructions scripts/callgrind.sh
section licences scripts/deny.sh
section fuzz scripts/fuzz.sh "${FUZZ_SECONDS:-20}"

rust=$(awk '/^test result:/ {n += $4; f += $6} END {print n + 0 " Rust tests passed, " f + 0 " failed"}' "$logs/tests.log")
node=$(awk '/^# pass/ {p += $3} /^# fail/ {f += $3} END {print p + 0 " judge tests passed, " f + 0 " failed"}' "$logs/judges.log")
fuzzed=$(grep -c '^fuzzed ' "$logs/fuzz.log" 2>/dev/null)
skipped=$(cat "$logs"/*.log | grep -cE '^(# )?SKIPPED')
printf '\n== summary ==\n'
cat "$logs"/*.log | grep -oE '^(# )?SKIPPED.*' | sed 's/^# //' | sort | uniq -c
[ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[*]}"
echo "make test: $rust; $node; $fuzzed fuzz targets; $skipped skipped; $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ]
