#!/usr/bin/env bash
# Installs the packages and the Rust toolchain that are missing on a Debian machine.
#
#   scripts/install.sh run|dist|test|bench|aarch64
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:?run, dist, test, bench or aarch64}
case $purpose in run | dist | test | bench | aarch64) ;; *) echo "$0: unknown purpose $purpose" >&2; exit 2 ;; esac

packages=()
# need COMMAND PACKAGE…: requests the packages if the command is missing.
need() {
  local command=$1
  shift
  command -v "$command" >/dev/null 2>&1 || packages+=("$@")
}

install_packages() {
  [ ${#packages[@]} -gt 0 ] || return 0
  local sudo=""
  if [ "$(id -u)" != 0 ]; then
    sudo=$(command -v sudo) || {
      echo "These packages are missing and there is no sudo: ${packages[*]}" >&2
      return 1
    }
  fi
  command -v apt-get >/dev/null || {
    echo "apt-get is missing; install what provides these Debian packages: ${packages[*]}" >&2
    return 1
  }
  echo "installing: ${packages[*]}"
  local apt=($sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || true
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null
}

# Installs rustup's stable toolchain, unless cargo is as new as Cargo.toml requires.
install_rust() {
  local required have
  required=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  have=$(cargo --version 2>/dev/null | cut -d ' ' -f 2 || true)
  if [ -n "$have" ] && printf '%s\n%s\n' "$required" "$have" | sort -CV; then return; fi
  echo "installing Rust (found: ${have:-none}, required: $required or newer)"
  if command -v rustup >/dev/null; then
    rustup update stable
  else
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c rustfmt -c clippy
  fi
}

# A C toolchain, and the programs that download Rust and the JavaScript players.
need cc gcc libc6-dev
need curl curl ca-certificates
if [ "$purpose" != run ]; then
  need npm nodejs npm
  need dpkg-deb dpkg
  need strip binutils
  need python3 python3
fi
if [ "$purpose" = aarch64 ]; then
  need ffprobe ffmpeg
  need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  need qemu-aarch64-static qemu-user-static
fi
if [ "$purpose" = test ] || [ "$purpose" = bench ]; then
  need ffmpeg ffmpeg
  need chromium chromium
  need xmllint libxml2-utils
  need ip iproute2
  need nginx nginx-light
  need dnsmasq dnsmasq-base
  need varnishd varnish
  need perl perl
  need g++ g++
  need haproxy haproxy
  need openssl openssl
  need systemd-socket-activate systemd
  need perf linux-perf
  need valgrind valgrind
  need debootstrap debootstrap
  need systemd-nspawn systemd-container
  need podman podman iptables
  need promtool prometheus
  python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3 python3-venv)
fi
if [ "$purpose" = bench ]; then
  need wrk wrk
  need h2load nghttp2-client
  need hey hey
fi
install_packages
install_rust
