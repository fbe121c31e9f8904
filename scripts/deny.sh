#!/usr/bin/env bash
# Licences, bans and sources of our dependencies; advisories when their database can be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$PATH
if ! command -v cargo-deny >/dev/null; then
  cargo install --quiet --locked --debug --root target/tools cargo-deny || {
    echo "SKIPPED cargo deny: cargo-deny cannot be had"
    exit 0
  }
fi
cargo deny --locked check licenses bans sources
if timeout 60 cargo deny --locked fetch db 2>/dev/null; then
  cargo deny --locked check --disable-fetch advisories
else
  echo "SKIPPED advisories: the advisory database cannot be reached"
fi
