#!/usr/bin/env bash
# Brings what the servers of baselines/ run on into target/baselines: Node.js and Deno as pinned by
# baselines/package-lock.json, and the C server compiled. Quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target/baselines
# Tests run beside each other, and each may be the first.
exec 9>target/baselines/.lock
flock 9

stamp=target/baselines/node_modules/.stamp
if [ "$(cat $stamp 2>/dev/null)" != "$(sha256sum < baselines/package-lock.json)" ]; then
  cp baselines/package.json baselines/package-lock.json baselines/.npmrc target/baselines/
  if (cd target/baselines && npm ci > npm.log 2>&1); then
    sha256sum < baselines/package-lock.json > $stamp
  else
    echo "SKIPPED Node.js and Deno of the baselines: npm ci failed (target/baselines/npm.log)" >&2
  fi
fi

# compile NAME FLAG…: unless it is newer than its source.
compile() {
  local name=target/baselines/$1
  shift
  [ "$name" -nt baselines/c/server.c ] && return
  gcc -std=c11 -pthread -Wall -Wextra -Wpedantic -Werror "$@" -o "$name.half" baselines/c/server.c &&
    mv "$name.half" "$name"
}
if command -v gcc > /dev/null; then
  compile c-server -O2
  compile c-server-sanitized -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
  echo "SKIPPED the C server of the baselines: there is no gcc" >&2
fi
