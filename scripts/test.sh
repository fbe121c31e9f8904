#!/usr/bin/env bash
# Runs every check that this machine can run, section by section, and prints the time of each.
# A section that fails does not hide the ones after it. Logs are in target/test-logs.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH=$HOME/.cargo/bin:$PATH
# Built once only: incremental data would cost time and fill the disk.
export CARGO_INCREMENTAL=0
logs=target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
began=$SECONDS
# Ends the sections that remain by then, so that a run that hangs still prints its summary.
RUN_SECONDS_MAX=4500
failed=()
table=()
running=
beside=()

# measure_cpu: sets cpu_seconds to the CPU time of all commands that finished. `times` would report
# nothing in a subshell, hence the file.
measure_cpu() {
  times > "$logs/.times"
  cpu_seconds=$(tail -n 1 "$logs/.times" | tr 'ms' '  ' | awk '{print int($1 * 60 + $2 + $3 * 60 + $4)}')
}

# section NAME MINUTES COMMAND…: ends the command with all its children after that many minutes.
section() {
  local name=$1 minutes=$2 start=$SECONDS seconds cpu_before result
  seconds=$((RUN_SECONDS_MAX - (SECONDS - began)))
  seconds=$((seconds < 5 ? 5 : seconds < minutes * 60 ? seconds : minutes * 60))
  measure_cpu
  cpu_before=$cpu_seconds
  shift 2
  printf '\n== %s ==\n' "$name"
  # `timeout` puts the command into its own process group. Ctrl-C does not reach that group, so the trap
  # ends it.
  exec {out}> >(tee "$logs/$name.log")
  tee=$!
  timeout --kill-after=20 "$seconds" "$@" >&"$out" 2>&1 &
  running=$!
  wait "$running"
  case $? in
    0) result=ok ;;
    124 | 137) result="FAILED: ended after $seconds seconds" ;;
    *) result=FAILED ;;
  esac
  exec {out}>&-
  # Lets tee write its last lines. A process that outlives its section holds tee; do not wait for it.
  timeout 5 tail --pid="$tee" -f /dev/null
  measure_cpu
  table+=("$(printf '%-14s %6d s %6d s   %s' "$name" $((SECONDS - start)) $((cpu_seconds - cpu_before)) "$result")")
  printf -- '-- %s: %s, %s s\n' "$name" "$result" $((SECONDS - start))
  [ "$result" = ok ] || failed+=("$name")
}
trap 'kill "$running" ${downloads:+"$downloads"} "${beside[@]}"; exit 130' INT TERM

# Exported functions reach every script below, so none is named like a command.
install_tools() {
  scripts/install.sh test || return 1
  rustup component add rustfmt clippy 2>/dev/null || true
  cargo --version && ffmpeg -hide_banner -version | head -n 1
}
# Downloads the tools, servers and players that the section `tests` and the later ones use.
download_tools() {
  local script status=0
  for script in players storage otel nats nbmp packager schema api ttconv cpix modules chart_tools; do scripts/$script.sh; done
  scripts/baselines.sh || status=1
  scripts/cargo_tool.sh cargo-deny
  return $status
}
# keep NAME MINUTES COMMAND…: keeps output and status for `await NAME`.
keep() {
  local name=$1 minutes=$2 start=$SECONDS result
  shift 2
  timeout --kill-after=20 "${minutes}m" "$@" > "$logs/$name.kept" 2>&1 &
  trap "kill $!; exit 130" TERM
  wait $!
  result=$?
  [ $result != 124 ] || echo "It was ended after $minutes minutes." >> "$logs/$name.kept"
  echo "It took $((SECONDS - start)) s beside other sections." >> "$logs/$name.kept"
  echo $result > "$logs/$name.status"
}
# await NAME: waits for a command that runs beside other sections, and reports it as its own section.
await() {
  until [ -e "$logs/$1.status" ]; do sleep 1; done
  cat "$logs/$1.kept"
  return "$(cat "$logs/$1.status")"
}
# Builds in advance what would otherwise block the tests: cargo locks the folder while it builds.
build_programs() {
  scripts/packages/static_binary.sh || return 1
  cargo test --workspace --locked --no-run || return 1
  scripts/callgrind.sh build
}
# Uses the cores while tests and players wait; nothing here depends on time.
run_beside() {
  keep instructions 50 python3 bench/callgrind.py
  # The features `nats` and `nbmp` must be removable. `make faults` compiles `planted-bugs`.
  keep features 15 cargo clippy --no-default-features --locked -- -D warnings
  RUSTDOCFLAGS=-Dwarnings keep docs 15 cargo doc --workspace --no-deps --locked
  keep packages 25 scripts/packages/check.sh
}
export logs
export -f install_tools download_tools keep await build_programs run_beside

section install 20 bash -c install_tools
# Downloads wait for the network while clippy uses the cores.
timeout --kill-after=20 20m bash -c download_tools > "$logs/download.log" 2>&1 &
downloads=$!
section format 2 cargo fmt --all --check
section clippy 15 cargo clippy --workspace --all-targets --locked -- -D warnings
section site 10 scripts/docs.sh --test
section fixtures 10 fixtures/make.sh
section downloads 20 tail --pid="$downloads" -f /dev/null
wait "$downloads" || { failed+=(downloads); cat "$logs/download.log" >> "$logs/downloads.log"; }
downloads=
section build 30 bash -c build_programs
# A lower priority than this would leave most of the work to the end.
nice -n 5 bash -c run_beside &
beside+=($!)
# Runs the bodies of the fuzz targets on mutations of their corpora, too; `make fuzz` searches for new inputs.
section tests 40 scripts/rust_tests.sh --no-fail-fast
# The fleet mostly waits.
bash -c 'keep fleet 15 python3 bench/fleet --small' &
beside+=($!)
section judges 40 scripts/judge.sh
for name in fleet instructions features docs packages; do section $name 30 bash -c "await $name"; done
beside=()
section deployment 10 scripts/deployment.sh
section licences 10 scripts/deny.sh

# print_failures SECTION: the failed tests of a section with their errors; else the end of its log.
print_failures() {
  printf '\n== %s failed ==\n' "$1"
  grep -E -A 10 '^ *not ok|^test .* FAILED|panicked at' "$logs/$1.log" | head -n 80 | grep . || tail -n 30 "$logs/$1.log"
}

rust=$(awk '/^test result:/ {n += $4; f += $6} END {print n + 0 " Rust tests passed, " f + 0 " failed"}' "$logs/tests.log")
node=$(awk '/^# pass/ {p += $3} /^# fail/ {f += $3} END {print p + 0 " judge tests passed, " f + 0 " failed"}' "$logs/judges.log")
skipped=$(cat "$logs"/*.log | grep -cE '^(# )?SKIPPED')
for name in "${failed[@]}"; do print_failures "$name"; done
printf '\n== summary ==\n'
cat "$logs"/*.log | grep -oE '^(# )?SKIPPED.*' | sed 's/^# //' | sort | uniq -c
printf '%-14s %8s %8s   %s\n' section elapsed CPU result
printf '%s\n' "${table[@]}"
[ ${#failed[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failed[*]}"
echo "make test: $rust; $node; $skipped skipped; $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ]
