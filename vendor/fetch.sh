#!/bin/sh
# Fetches uPlot, as pinned by package-lock.json, into vendor/uPlot/, where builds find and embed it.
#
# Safe to run again: it does nothing if the files are present. Without npm or a registry it reports
# that and succeeds, because reports then contain static SVG images; `fetch.sh --required` fails.
set -eu
cd "$(dirname "$0")"

stamp=$(cksum package-lock.json fetch.sh | tr -s ' \n' '-')
[ "$(cat uPlot/.stamp 2>/dev/null)" = "$stamp" ] && exit 0

give_up() {
    echo "vendor: $1; HTML reports will contain static plots." >&2
    [ "${required:-}" ] && exit 1
    exit 0
}
[ "${1:-}" = --required ] && required=yes
command -v npm >/dev/null || give_up "npm is not installed"

# Outside this folder: builds watch it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp package.json package-lock.json ../player/.npmrc "$work"
echo "vendor: fetching uPlot" >&2
(cd "$work" && npm ci --omit=dev >npm.log 2>&1) || {
    tail -n 5 "$work/npm.log" >&2
    give_up "npm ci failed"
}

rm -rf uPlot
mkdir uPlot
cp "$work/node_modules/uplot/dist/uPlot.iife.min.js" "$work/node_modules/uplot/dist/uPlot.min.css" uPlot/
cp "$work/node_modules/uplot/LICENSE" uPlot/
echo "$stamp" >uPlot/.stamp
