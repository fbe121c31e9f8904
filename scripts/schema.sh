#!/usr/bin/env bash
# Fetches the DASH schema from its publisher into target/schema. It is not redistributable, so it is never
# committed. Without it, its test reports SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f target/schema/DASH-MPD.xsd ] && exit 0
mkdir -p target/schema
from=https://raw.githubusercontent.com/MPEGGroup/DASHSchema/5th-Ed-AMD1/DASH-MPD.xsd
curl -fsSL --max-time 30 -o target/schema/DASH-MPD.xsd "$from" 2>/dev/null || rm -f target/schema/DASH-MPD.xsd
