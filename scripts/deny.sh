#!/usr/bin/env bash
# Checks licences, bans and sources of all dependencies, and advisories where their database can be
# fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$PATH
scripts/cargo_tool.sh cargo-deny || {
  echo "SKIPPED cargo deny: cargo-deny is unavailable"
  exit 0
}
cargo deny --locked check licenses bans sources
if timeout 60 cargo deny --locked fetch db 2> /dev/null; then
  cargo deny --locked check --disable-fetch advisories
else
  echo "SKIPPED advisories: the advisory database cannot be fetched"
fi
