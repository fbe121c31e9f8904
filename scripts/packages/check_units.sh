#!/usr/bin/env bash
# Checks the units with systemd's own tools: their syntax, and how much of the system they can reach.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The program is not installed here, and neither are its manual pages.
for unit in deploy/systemd/*.service deploy/systemd/*.socket; do
  systemd-analyze verify --man=no "$unit" 2>&1 | grep -v 'is not executable' && { echo "FAILED: $unit"; exit 1; }
done
for unit in deploy/systemd/*.service; do
  # The scale goes from 0 (nothing is reachable) to 100.
  systemd-analyze security --offline=true --threshold=25 --no-pager "$unit" > /dev/null \
    || { echo "FAILED: $unit can reach too much of the system"; exit 1; }
done
echo "checked the units of deploy/systemd"
