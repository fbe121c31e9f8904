#!/usr/bin/env bash
# Fetches hls.js, dash.js and Shaka Player for the page, which also works without them.
set -euo pipefail
cd "$(dirname "$0")/.."
player/vendor.sh || echo "SKIPPED vendored players: player/vendor.sh failed; the page offers its own and native players" >&2
# The plotting library of HTML reports; without it they contain static plots.
vendor/fetch.sh
