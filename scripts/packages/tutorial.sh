#!/usr/bin/env bash
# Runs the commands of docs/tutorials/first-film.md with the debug binary, in a network of their own, in which the ports of
# the page are free.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" != inside ]; then
  [ "$(id -u)" = 0 ] || { echo "SKIPPED tutorial: a network of its own needs root"; exit 0; }
  # Every process ends with this one.
  exec unshare --net --pid --fork --mount-proc --kill-child "$0" inside
fi
ip link set lo up
export PATH=$PWD/target/debug:$PATH
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run SECTION [NUMBER]
run() {
  python3 "$root/scripts/packages/documented_commands.py" "$root/docs/tutorials/first-film.md" "$@" > "$work/commands"
  (cd "$work" && bash -euo pipefail commands)
}

# start PORT SECTION [NUMBER]: the block is one server.
start() {
  local port=$1
  shift
  run "$@" > "$work/$port.log" 2>&1 &
  for _ in $(seq 600); do
    ! headwater health "http://127.0.0.1:$port/readyz" > /dev/null 2>&1 || return 0
    sleep 0.1
  done
  cat "$work/$port.log"
  exit 1
}

expect() {
  grep -q "$2" "$work/output" || { echo "FAILED tutorial, $1: no $2 in"; cat "$work/output"; exit 1; }
}

start 8090 Serve
run "Look at what a player receives" > "$work/output"
expect "playlist" '#EXT-X-STREAM-INF'
run "Check a film"
start 8091 "Cache it" 1
run "Cache it" 2 > /dev/null
run "Cache it" 2 > "$work/output"
expect "second request" 'headwater; hit'
expect "second request" '^age:'
# The expectation of the page is for a machine that is idle; 1 is its exit code.
run "Put load on it" 1 || [ $? = 1 ]
[ -s "$work/report.html" ]
run "Put load on it" 2 > "$work/output"
echo "ran the commands of docs/tutorials/first-film.md"
