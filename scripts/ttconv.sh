#!/usr/bin/env bash
# Installs ttconv from PyPI into target/ttconv, for tests/judge/cues.test.mjs. Does nothing when it is there.
# Without it, the tests report SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.2.3
dir=target/ttconv
[ "$(cat $dir/version 2>/dev/null)" = $version ] && exit 0
mkdir -p target
python3 -m venv $dir >/dev/null &&
  $dir/bin/pip install --quiet --disable-pip-version-check "ttconv==$version" &&
  echo $version > $dir/version ||
  echo "SKIPPED ttconv could not be installed" >&2
