#!/bin/sh
# supervise.sh NAME COMMAND…: runs a command again PAUSE seconds (default 0) after it ended, and appends its process id to
# NAME.pid.
name=$1
shift
: > "$name.pid"
trap 'kill "$child" 2>/dev/null; exit 0' TERM INT
while :; do
  "$@" &
  child=$!
  echo "$child" >> "$name.pid"
  wait "$child"
  sleep "${PAUSE:-0}" &
  child=$!
  wait "$child"
done
