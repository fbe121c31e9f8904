#!/usr/bin/env bash
# Runs the judges that are not ours (tests/judge) against the debug binary, or $HEADWATER.
set -euo pipefail
cd "$(dirname "$0")/.."
fixtures/make.sh
scripts/packager.sh || true
scripts/schema.sh
scripts/api.sh
cd tests/judge
stamp=node_modules/.stamp
if [ "$(cat $stamp 2>/dev/null)" != "$(sha256sum < package-lock.json)" ]; then
  npm ci --no-audit --no-fund --ignore-scripts
  sha256sum < package-lock.json > $stamp
fi
node --test --test-concurrency=2 --test-reporter=tap "$@" | grep --line-buffered -vE '^ *(duration_ms|type:|---|\.\.\.)'
