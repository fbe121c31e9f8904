#!/usr/bin/env bash
# Fetches the players of others for the page, as pinned by its lock file. The page works without.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x player/vendor.sh ] || exit 0
player/vendor.sh || echo "SKIPPED vendored players: player/vendor.sh failed; the page offers our own and native playing" >&2
