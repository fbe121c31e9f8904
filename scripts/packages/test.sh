#!/usr/bin/env bash
# Installs each package that build.sh made and plays a film from it. Only the Debian package and the
# image get a root of their own; archive and wheel run on the host.
#
#   scripts/packages/test.sh
#
# Needs root, for chroot. The tests of an image need a static binary.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/target/dist
root=$PWD/target/package-roots
if [ "$(id -u)" != 0 ]; then
  echo "SKIPPED packages: chroot needs root"
  exit 0
fi
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$root"
}
trap cleanup EXIT
rm -rf "$root"
mkdir -p "$root"

(cd "$out" && sha256sum --quiet --check SHA256SUMS)
# Builds without the players embed none.
if [ -f player/vendor/dash.all.min.js ] && ! grep -q '"pkg:npm/hls.js@' "$out"/*.cdx.json; then
  echo "FAILED bill of materials: the players are missing"
  exit 1
fi

# play NAME COMMAND…: starts a server on a free port and decodes the whole film.
play() {
  local name=$1 url frames
  shift
  "$@" --listen 127.0.0.1:0 > "$root/$name.out" 2> "$root/$name.err" &
  server=$!
  for _ in $(seq 600); do
    url=$(sed -n 's/^listening on //p' "$root/$name.out")
    [ -z "$url" ] || break
    kill -0 "$server" || { cat "$root/$name.err"; exit 1; }
    sleep 0.1
  done
  frames=$(ffprobe -v error -count_frames -select_streams v:0 -show_entries stream=nb_read_frames \
    -of csv=p=0 "$url/demo/.m3u8" | sed -n 1p)
  target/debug/headwater health "$url/readyz"
  kill "$server"
  wait "$server"
  server=
  [ "$frames" -gt 100 ] || { echo "FAILED $name: $frames frames"; exit 1; }
  echo "$name: played $frames frames"
}

is_static() {
  ldd "$1" 2>&1 | grep -qE 'statically linked|not a dynamic executable'
}

make_debian_root() {
  local copy=target/debian-root.tar
  if [ ! -f "$copy" ]; then
    debootstrap --variant=minbase bookworm "$root/debian" > "$root/debootstrap.log" || { tail "$root/debootstrap.log"; exit 1; }
    tar -C "$root/debian" -cf "$copy" .
  else
    mkdir "$root/debian"
    tar -C "$root/debian" -xf "$copy"
  fi
}

mkdir "$root/tar" "$root/image"
tar -C "$root/tar" -xzf "$out"/headwater-*-linux.tar.gz
binary=$(echo "$root"/tar/*/headwater)
play tar.gz "$binary" serve media

make_debian_root
cp "$out"/*.deb "$root/debian/package.deb"
chroot "$root/debian" dpkg --install /package.deb > "$root/dpkg.log"
grep -q '^License: MIT or Apache-2.0$' "$root/debian/usr/share/doc/headwater/copyright" \
  || { echo "FAILED deb: copyright does not name both licences"; exit 1; }
mkdir -p "$root/debian/srv/films"
cp -r media/demo "$root/debian/srv/films"
play deb chroot "$root/debian" headwater serve --config /etc/headwater/serve.toml --index-cache memory
chroot "$root/debian" dpkg --purge headwater > "$root/dpkg.log"
[ ! -e "$root/debian/usr/bin/headwater" ]

python3 -m venv "$root/venv"
"$root/venv/bin/pip" install --quiet --no-index "$out"/*.whl
play wheel "$root/venv/bin/headwater" serve media

if is_static "$binary"; then
  python3 scripts/packages/unpack_image.py "$out"/*-image.tar "$root/image"
  cp -r media/demo "$root/image/films"
  play image chroot --userspec=65532:65532 "$root/image" /headwater serve /films
else
  echo "SKIPPED image: the binary is not static"
fi
