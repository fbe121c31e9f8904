#!/bin/sh
# Fetches hls.js, dash.js and Shaka Player, as pinned by package-lock.json, into player/vendor/.
#
# Safe to run again; does nothing when they are already there. Without npm or a registry it says
# so and succeeds, because the page works without them; `vendor.sh --required` fails instead.
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
command -v npm >/dev/null || give_up "npm is not installed"

# Not here: whatever lies in player/ is built into the program.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json package-lock.json .npmrc "$work"
echo "player: fetching hls.js, dash.js and Shaka Player" >&2
(cd "$work" && npm ci --omit=dev >npm.log 2>&1) || {
    tail -n 5 "$work/npm.log" >&2
    give_up "npm ci failed"
}

modules=$work/node_modules
rm -rf vendor
mkdir vendor
cp "$modules/hls.js/dist/hls.min.js" vendor/
cp "$modules/dashjs/dist/modern/umd/dash.all.min.js" vendor/
cp "$modules/dashjs/dist/modern/umd/dash.all.min.js.LICENSE.txt" vendor/
cp "$modules/shaka-player/dist/shaka-player.compiled.js" vendor/
for name in hls.js dashjs shaka-player; do
    cp "$modules/$name"/LICENSE* "vendor/$name.LICENSE.txt"
done
# The source maps that they name are not here; browsers would ask for them.
sed -i '/^\/\/# sourceMappingURL=/d' vendor/*.js
echo "$stamp" >vendor/.stamp
