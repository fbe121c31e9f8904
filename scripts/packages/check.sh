#!/usr/bin/env bash
# Builds the packages from the binary of static_binary.sh, and tests them. `make dist` builds the optimized ones. Needs
# the debug binary, too.
#
#   scripts/packages/check.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED packages: they are built on x86_64 only"; exit 0; }
# Not target/dist, which may contain a release.
packages=target/static/dist
scripts/packages/build.sh target/static/headwater $packages > /dev/null
if systemd-analyze --version >/dev/null 2>&1; then
  scripts/packages/check_units.sh
else
  echo "SKIPPED unit checks: systemd-analyze is not installed"
fi
PACKAGES=$packages scripts/packages/test.sh
scripts/packages/tutorial.sh
