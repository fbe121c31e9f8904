#!/usr/bin/env bash
# Builds the packages from a static binary that is not optimized, and tests them. `make dist` builds the
# optimized ones.
#
#   scripts/packages/check.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED packages: they are built on x86_64 only"; exit 0; }
# Only the last step links libraries statically, so that the crates are those that the tests have built. The tests need
# the usual binary at the same path.
usual=target/debug/headwater
static=target/static/headwater
mkdir -p target/static
rm -f $static $static.usual
cargo build --locked --bin headwater
mv $usual $static.usual
cargo rustc --locked --bin headwater --features debug-embed -- -C target-feature=+crt-static -C strip=symbols
mv $usual $static
mv $static.usual $usual
scripts/packages/build.sh $static > /dev/null
if systemd-analyze --version >/dev/null 2>&1; then
  scripts/packages/check_units.sh
else
  echo "SKIPPED unit checks: systemd-analyze is not installed"
fi
scripts/packages/test.sh
scripts/packages/tutorial.sh
