#!/usr/bin/env bash
# Builds a static binary that is not optimized, target/static/headwater, for check.sh.
#
#   scripts/packages/static_binary.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED static binary: packages are built on x86_64 only"; exit 0; }
# Only the last step links libraries statically, so that most crates are those that the tests use.
cargo rustc --locked --bin headwater --features debug-embed -- -C target-feature=+crt-static -C strip=symbols
mkdir -p target/static
# A copy, because the tests need the usual binary at the same path.
cp target/debug/headwater target/static/.headwater
mv target/static/.headwater target/static/headwater
cargo build --locked --bin headwater
