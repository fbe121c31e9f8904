#!/usr/bin/env bash
# Builds the packages from a static binary that is not optimized, and tests them. `make dist` builds the
# optimized ones.
#
#   scripts/packages/check.sh [--build]      --build: only build the binary
set -euo pipefail
cd "$(dirname "$0")/../.."
target=x86_64-unknown-linux-gnu
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED packages: they are built on x86_64 only"; exit 0; }
# A target folder of its own, since this build runs beside the tests, which lock theirs.
export CARGO_PROFILE_DEV_DEBUG=0
RUSTFLAGS="-C target-feature=+crt-static" CARGO_TARGET_DIR=target/static cargo build --locked --features debug-embed \
  --target "$target"
[ "${1:-}" != --build ] || exit 0
scripts/packages/build.sh "target/static/$target/debug/headwater" > /dev/null
if systemd-analyze --version >/dev/null 2>&1; then
  scripts/packages/check_units.sh
else
  echo "SKIPPED unit checks: systemd-analyze is not installed"
fi
scripts/packages/test.sh
scripts/packages/tutorial.sh
