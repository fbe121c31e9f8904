#!/usr/bin/env bash
# Installs each package that build.sh made with the commands of docs/how-to/install.md, each in a bare root of its own,
# and plays a film from it.
#
#   scripts/packages/test.sh [archive|wheel|debian_package|image]…
#
# Needs root. The image needs a static binary. PACKAGES is the folder of the packages, by default target/dist.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/${PACKAGES:-target/dist}
roots=$PWD/target/package-roots
for tool in systemd-nspawn debootstrap ffprobe; do
  command -v "$tool" > /dev/null || { echo "SKIPPED packages: $tool is not installed"; exit 0; }
done
if [ "$(id -u)" != 0 ]; then
  echo "SKIPPED packages: machines of their own need root"
  exit 0
fi
. scripts/packages/bare_machine.sh
cleanup() {
  end_machine
  # An interrupted debootstrap leaves its mounts.
  rm -rf --one-file-system "$roots"
}
trap cleanup EXIT
rm -rf "$roots"
mkdir -p "$roots"

# Builds without the players embed none.
if [ -f player/vendor/dash.all.min.js ] && ! grep -q '"pkg:npm/hls.js@' "$out"/*.cdx.json; then
  echo "FAILED bill of materials: the players are missing"
  exit 1
fi
if grep '"name": "windows' "$out"/*.cdx.json; then
  echo "FAILED bill of materials: it has crates of another system"
  exit 1
fi

documented() {
  python3 scripts/packages/documented_commands.py docs/how-to/install.md "$@"
}

# prepare NAME: a root with the packages and a film.
prepare() {
  root=$roots/$1
  make_root "$root"
  fill_root "$root"
}

# test_in_foreground NAME SECTION [BLOCK]: the last command is the server.
test_in_foreground() {
  local name=$1
  shift
  { documented Install; documented "$@"; } > "$root/packages/commands"
  start_machine "$root" --as-pid2 sh -eux commands
  play "$name" 8080
  stop_servers
}

test_archive() {
  prepare archive
  test_in_foreground archive Archive
  [ -s "$root/usr/local/share/man/man1/headwater-serve.1" ]
}

# Debian's own packages come over the host's network, once.
install_python() {
  local copy=$copies/python.tar
  if [ -f "$copy" ]; then
    mkdir "$1"
    tar -C "$1" -xf "$copy"
    return
  fi
  make_root "$1"
  cp /etc/resolv.conf "$1/etc/resolv.conf"
  chroot "$1" apt-get -qq update > "$roots/apt.log" 2>&1
  documented "Python wheel" 1 | chroot "$1" env DEBIAN_FRONTEND=noninteractive sh -eux > "$roots/apt.log" 2>&1
  pack_root "$1" "$copy"
}

test_wheel() {
  root=$roots/wheel
  install_python "$root"
  fill_root "$root"
  test_in_foreground wheel "Python wheel" 2
}

has_booted() {
  inside systemctl is-system-running 2> /dev/null | grep -qE 'running|degraded'
}

# Boots systemd: the documented commands start services.
test_debian_package() {
  prepare debian
  start_machine "$root" --boot
  wait_until "the machine boots" has_booted
  { documented Install; documented "Debian package"; } | inside sh -eux > "$roots/commands.log" 2>&1
  play "Debian package" 8080
  play "Debian package, edge" 8081
  . scripts/packages/test_units.sh
  grep -q '^License: MIT or Apache-2.0$' "$root/usr/share/doc/headwater/copyright" \
    || { echo "FAILED Debian package: copyright does not name both licences"; exit 1; }
  inside apt-get purge headwater > "$roots/purge.log"
  [ ! -e "$root/usr/bin/headwater" ]
  ! ls -d "$root"/var/cache/private/headwater* 2> /dev/null || { echo "FAILED Debian package: purged, but caches remain"; exit 1; }
  ! pgrep --ns "$leader" --nslist pid --exact headwater || { echo "FAILED Debian package: purged, but running"; exit 1; }
  end_machine
}

test_image() {
  . scripts/packages/test_image.sh
}

[ $# -gt 0 ] || set -- archive wheel debian_package image
for name in "$@"; do
  "test_$name"
done
