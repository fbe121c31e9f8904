#!/usr/bin/env bash
# Builds the static binary for aarch64 with Debian's cross compiler, and plays a film from it in an emulator. The
# build takes minutes, so `make test` leaves it out.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$HOME/.cargo/bin:$PATH CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=target/static
target=aarch64-unknown-linux-gnu

scripts/install.sh aarch64
rustup target add $target

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --features debug-embed --target $target
binary=target/static/$target/debug/headwater
aarch64-linux-gnu-readelf --file-header "$binary" | grep -q AArch64
! aarch64-linux-gnu-readelf --program-headers "$binary" | grep -q INTERP || { echo "FAILED aarch64: not static"; exit 1; }

log=$(mktemp)
qemu-aarch64-static "$binary" serve media --listen 127.0.0.1:0 > "$log" 2>&1 &
server=$!
trap 'kill $server 2> /dev/null; rm -f "$log"' EXIT
for _ in $(seq 600); do
  url=$(sed -n 's/^listening on //p' "$log")
  [ -z "$url" ] || break
  kill -0 $server || { cat "$log"; exit 1; }
  sleep 0.1
done
python3 scripts/packages/play.py "$url" demo media/demo/video-540p.mp4
kill $server
wait $server
echo "aarch64: the static binary plays in an emulator"
