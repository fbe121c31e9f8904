#!/usr/bin/env bash
# Builds the documentation site with mdBook into target/book.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH
if ! command -v mdbook >/dev/null; then
  cargo install --quiet --locked --root target/tools --version '^0.5' --no-default-features --features search mdbook
fi
mdbook build
echo "open target/book/index.html"
