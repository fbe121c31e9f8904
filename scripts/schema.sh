#!/usr/bin/env bash
# Fetches the DASH schema from its publisher into target/schema. It is not redistributable, so it is never
# committed. Without it, its test reports SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f target/schema/DASH-MPD.xsd ] && exit 0
mkdir -p target/schema
from=https://raw.githubusercontent.com/MPEGGroup/DASHSchema/5th-Ed-AMD1/DASH-MPD.xsd
# An interrupted download must not look complete.
partial=target/schema/.partial
if curl -fsSL --max-time 30 -o $partial "$from" 2>/dev/null; then mv $partial target/schema/DASH-MPD.xsd; else rm -f $partial; fi
