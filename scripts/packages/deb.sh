#!/usr/bin/env bash
# Builds the Debian package.
#
#   scripts/packages/deb.sh FOLDER VERSION OUT
#
# FOLDER is what build.sh fills: binary, manual pages, completions, units.
set -euo pipefail
folder=$1 version=$2 out=$3
root=$out/deb
control=$root/DEBIAN
doc=$root/usr/share/doc/headwater

# write_copyright: the licences in Debian's machine-readable format.
write_copyright() {
  echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
  printf '\nFiles: *\nCopyright: 2026 The Headwater authors\nLicense: MIT or Apache-2.0\n'
  printf '\nLicense: MIT\n'
  sed '1,/^Copyright/d; s/^$/./; s/^/ /' "$folder/LICENSE-MIT" | sed '1d'
  printf '\nLicense: Apache-2.0\n'
  echo " On Debian systems, the whole text is in /usr/share/common-licenses/Apache-2.0."
}

install -D -m 755 "$folder/headwater" "$root/usr/bin/headwater"
install -d "$control" "$doc" "$root/usr/share/man/man1" "$root/etc/headwater"
install -D -m 644 -t "$root/lib/systemd/system" "$folder"/systemd/*.service "$folder"/systemd/*.socket
install -m 644 -t "$root/etc/headwater" "$folder"/systemd/*.toml
for page in "$folder"/man/man1/*.1; do
  gzip -9n < "$page" > "$root/usr/share/man/man1/$(basename "$page").gz"
done
install -D -m 644 "$folder/completions/headwater.bash" "$root/usr/share/bash-completion/completions/headwater"
install -D -m 644 "$folder/completions/headwater.zsh" "$root/usr/share/zsh/vendor-completions/_headwater"
install -D -m 644 "$folder/completions/headwater.fish" "$root/usr/share/fish/vendor_completions.d/headwater.fish"
write_copyright > "$doc/copyright"
gzip -9n < "$folder/CHANGELOG.md" > "$doc/changelog.gz"

(cd "$root" && find etc -type f | sort | sed 's#^#/#') > "$control/conffiles"
# A dynamic binary needs the C library; a static one needs nothing.
depends=
if ldd "$folder/headwater" 2>/dev/null | grep -q libc.so; then depends="Depends: libc6 (>= 2.34), libgcc-s1"; fi
{
  echo "Package: headwater"
  echo "Version: $version"
  echo "Architecture: amd64"
  echo "Maintainer: The Headwater authors <headwater@localhost>"
  echo "Section: video"
  echo "Priority: optional"
  echo "Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)"
  [ -z "$depends" ] || echo "$depends"
  echo "Description: video on demand from plain files"
  echo " Headwater packages MP4 files just in time into HLS and DASH, caches them close"
  echo " to viewers, plays them on a web page, and measures every step."
} > "$control/control"
cat > "$control/postinst" <<'SH'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # After an upgrade, running services get the new program.
  [ -z "$2" ] || systemctl try-restart headwater.service headwater-edge.service
fi
SH
cat > "$control/prerm" <<'SH'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --quiet disable --now headwater.socket headwater.service headwater-edge.service || true
fi
SH
# With DynamicUser, systemd keeps the cache folders in `private`, with links to them.
cat > "$control/postrm" <<'SH'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  for name in headwater headwater-edge; do
    rm -rf "/var/cache/$name" "/var/cache/private/$name"
  done
fi
SH
chmod 755 "$control/postinst" "$control/prerm" "$control/postrm"
(cd "$root" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum) > "$control/md5sums"
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/headwater_${version}_amd64.deb" >/dev/null
rm -rf "$root"
