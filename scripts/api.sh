#!/usr/bin/env bash
# Installs schemathesis and jsonpath-rfc9535 from PyPI into target/api, for the tests of the Workflow
# Manager's API. Does nothing when they are there. Without them, the tests report SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -e target/api/whole ] && exit 0
mkdir -p target
python3 -m venv target/api >/dev/null &&
  target/api/bin/pip install --quiet --disable-pip-version-check schemathesis==4.32.5 jsonpath-rfc9535==1.0.1 &&
  touch target/api/whole ||
  echo "SKIPPED schemathesis could not be installed" >&2
