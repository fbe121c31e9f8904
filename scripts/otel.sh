#!/usr/bin/env bash
# Installs OpenTelemetry's protobuf definitions for Python (from PyPI) into target/otel. Does nothing when
# they are there. Without them, the tests of traces report SKIPPED.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p target
[ -e target/otel/installed ] && exit 0
python3 -m venv target/otel >/dev/null &&
  target/otel/bin/pip install --quiet --disable-pip-version-check opentelemetry-proto==1.45.2 &&
  touch target/otel/installed ||
  echo "SKIPPED opentelemetry-proto could not be installed" >&2
