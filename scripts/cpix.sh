#!/usr/bin/env bash
# Installs pycpix (cpix on PyPI) into target/cpix, for tests/judge/speke.test.mjs. Does nothing when it is there.
# Without it, the tests report SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.4.1
dir=target/cpix
[ "$(cat $dir/version 2>/dev/null)" = $version ] && exit 0
mkdir -p target
# It imports pkg_resources, which later versions of setuptools lack.
python3 -m venv $dir >/dev/null &&
  $dir/bin/pip install --quiet --disable-pip-version-check "cpix==$version" "setuptools<81" &&
  echo $version > $dir/version ||
  echo "SKIPPED pycpix could not be installed" >&2
