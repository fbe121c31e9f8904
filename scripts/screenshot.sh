#!/usr/bin/env bash
# Takes the README's screenshot again: the page in Chromium, playing the built-in film.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh test
scripts/players.sh
scripts/modules.sh
cargo build --locked
node tests/judge/screenshot.mjs
ls -l docs/images/page.jpg
