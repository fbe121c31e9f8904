#!/usr/bin/env bash
# Runs the checks by other programs (tests/judge) with the debug binary, or $HEADWATER.
#
#   scripts/judge.sh [TEST…]      such as hls.test.mjs; default: all
set -euo pipefail
cd "$(dirname "$0")/.."
fixtures/make.sh
scripts/packager.sh || true
scripts/schema.sh
scripts/api.sh
scripts/ttconv.sh
scripts/cpix.sh
scripts/modules.sh
cd tests/judge
result=0
# Three browsers use two cores fully.
run=(node run_all.mjs 3)
[ $# = 0 ] || run=(node --test --test-concurrency=3 --test-reporter=tap "$@")
"${run[@]}" | grep --line-buffered -vE '^ *(duration_ms|type:|---|\.\.\.)' || result=$?
# A selection of tests is one of the tests in tests/judge.
[ $# -gt 0 ] || (cd ../.. && cargo test --workspace --locked --test hostile -- --ignored) || result=$?
exit $result
