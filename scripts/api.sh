#!/usr/bin/env bash
# Brings judges of the Workflow Manager's API (schemathesis, a JSONPath of others, both from PyPI)
# into target/api. Quick when they are there; where they cannot be had, their tests say so.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -e target/api/whole ] && exit 0
mkdir -p target
python3 -m venv target/api >/dev/null &&
  target/api/bin/pip install --quiet --disable-pip-version-check schemathesis==4.32.5 jsonpath-rfc9535==1.0.1 &&
  touch target/api/whole ||
  echo "SKIPPED schemathesis could not be installed" >&2
