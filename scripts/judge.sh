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
# A selection of tests is one of the tests in tests/judge.
peers=0
[ $# -gt 0 ] || cargo test --workspace --locked --test hostile -- --ignored || peers=$?
cd tests/judge
node --test --test-concurrency=2 --test-reporter=tap "$@" | grep --line-buffered -vE '^ *(duration_ms|type:|---|\.\.\.)'
exit $peers
