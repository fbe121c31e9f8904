#!/usr/bin/env bash
# Builds the packages of a release in target/dist: .tar.gz, .deb, a Python wheel, an OCI image,
# a software bill of materials and checksums.
#
#   scripts/packages/build.sh [BINARY FOLDER]
#
# BINARY replaces the build of a static release binary, and FOLDER replaces target/dist; the tests pass theirs.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$HOME/.cargo/bin:$PATH
target=x86_64-unknown-linux-gnu
[ "$(uname -m)" = x86_64 ] || { echo "packages are built on x86_64 only" >&2; exit 1; }

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The same commit gives the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
out=${2:-target/dist}
name=headwater-$version-x86_64-linux
rm -rf "$out"
mkdir -p "$out/$name/man/man1" "$out/$name/completions"

build_static_binary() {
  RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target "$target" >&2
  echo "target/$target/release/headwater"
}
binary=${1:-$(build_static_binary)}

fill_folder() {
  install -m 755 "$binary" "$1/headwater"
  strip "$1/headwater"
  install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$1"
  "$1/headwater" man-pages "$1/man/man1"
  local shell
  for shell in bash zsh fish; do
    "$1/headwater" completions $shell > "$1/completions/headwater.$shell"
  done
  cp -r deploy/systemd "$1/systemd"
}

# pack FOLDER FILE: a tar archive whose bytes depend on the content only.
pack() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$1" -c . | gzip -6n > "$2"
}

fill_folder "$out/$name"
mkdir "$out/tar"
cp -r "$out/$name" "$out/tar/"
pack "$out/tar" "$out/$name.tar.gz"
scripts/packages/deb.sh "$out/$name" "$version" "$out"
python3 scripts/packages/wheel.py "$out/$name/headwater" "$version" "$out"
python3 scripts/packages/image.py "$out/$name/headwater" "$version" "$out"
cargo metadata --locked --format-version 1 --filter-platform "$target" | python3 scripts/packages/bill_of_materials.py "$version" > "$out/$name.cdx.json"
rm -rf "$out/tar" "${out:?}/$name"
(cd "$out" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
