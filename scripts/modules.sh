#!/usr/bin/env bash
# Installs the npm packages of tests/judge, as pinned by its lock file. Does nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/../tests/judge"
stamp=node_modules/.stamp
if [ "$(cat $stamp 2>/dev/null)" != "$(sha256sum < package-lock.json)" ]; then
  npm ci --no-audit --no-fund --ignore-scripts
  sha256sum < package-lock.json > $stamp
fi
