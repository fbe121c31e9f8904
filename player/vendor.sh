#!/bin/sh
# Fetches hls.js, dash.js and Shaka Player into player/vendor/, as pinned by package-lock.json, and
# checks each archive against its integrity hash there. Needs curl and tar, but no npm.
#
# Does nothing when they are there. Without a registry it prints a line and succeeds, because the
# page works without them; `vendor.sh --required` fails instead.
set -eu
cd "$(dirname "$0")"

stamp=$(cksum package-lock.json vendor.sh | tr -s ' \n' '-')
[ "$(cat vendor/.stamp 2>/dev/null)" = "$stamp" ] && exit 0

give_up() {
    echo "player: $1; the page will offer its own player and the browser's only." >&2
    [ "${required:-}" ] && exit 1
    exit 0
}
[ "${1:-}" = --required ] && required=yes
command -v curl >/dev/null || give_up "curl is not installed"

registry=$(npm config get registry 2>/dev/null || true)
case $registry in http*) ;; *) registry=${npm_config_registry:-https://registry.npmjs.org} ;; esac

# Outside player/, because the build embeds every file in it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# lock_field NAME FIELD: reads a package's field from the lock file.
lock_field() {
    sed -n "/\"node_modules\/$1\": {/,/}/s/^ *\"$2\": \"\(.*\)\",\{0,1\}$/\1/p" package-lock.json | head -n 1
}

# fetch NAME: unpacks a package into $work/NAME.
fetch() {
    archive=$work/$1.tgz
    curl -fsSL --retry 3 --max-time 120 -o "$archive" "${registry%/}/$1/-/$1-$(lock_field "$1" version).tgz" || return 1
    expected=$(lock_field "$1" integrity | sed 's/^sha512-//' | base64 -d | od -An -v -tx1 | tr -d ' \n')
    echo "$expected  $archive" | sha512sum --check --status || {
        echo "player: $1 does not match its integrity hash" >&2
        return 1
    }
    mkdir "$work/$1"
    tar -xzf "$archive" -C "$work/$1" --strip-components=1
}

echo "player: fetching hls.js, dash.js and Shaka Player" >&2
pids=
for name in hls.js dashjs shaka-player; do
    fetch "$name" &
    pids="$pids $!"
done
for pid in $pids; do
    wait "$pid" || failed=yes
done
[ -z "${failed:-}" ] || give_up "a package could not be fetched"

rm -rf vendor
mkdir vendor
cp "$work/hls.js/dist/hls.min.js" vendor/
cp "$work/dashjs/dist/modern/umd/dash.all.min.js" vendor/
cp "$work/dashjs/dist/modern/umd/dash.all.min.js.LICENSE.txt" vendor/
cp "$work/shaka-player/dist/shaka-player.compiled.js" vendor/
for name in hls.js dashjs shaka-player; do
    cp "$work/$name"/LICENSE* "vendor/$name.LICENSE.txt"
done
# Browsers would request the source maps, which are not copied.
sed -i '/^\/\/# sourceMappingURL=/d' vendor/*.js
echo "$stamp" >vendor/.stamp
