#!/usr/bin/env bash
# Prepares the servers of baselines/ in target/baselines: installs Node.js and Deno as pinned by
# baselines/package-lock.json, and compiles the C server. Does nothing when they are up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target/baselines
# Concurrent tests call this script, and any of them may be the first.
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

# compile NAME FLAG…: does nothing if the binary is newer than its source.
compile() {
  local name=target/baselines/$1
  shift
  [ "$name" -nt baselines/c/server.c ] && return
  gcc -std=c11 -pthread -Wall -Wextra -Wpedantic -Werror "$@" -o "$name.partial" baselines/c/server.c &&
    mv "$name.partial" "$name"
}
if command -v gcc > /dev/null; then
  compile c-server -O2
  compile c-server-sanitized -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
  echo "SKIPPED the C server of the baselines: gcc is not installed" >&2
fi
